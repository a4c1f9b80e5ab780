"""Whether a loss that used to fall has stopped falling: information, never an alert."""

from __future__ import annotations

import math

from wtwin_watch.monitor.scales import Level

SHARE = 0.2
"""The latest fifth of the run is compared with the fifth before."""
MOST_BLOCKS = 54
"""Two fifths of a run must lie in a level's ring of 108 blocks."""
LEAST_BLOCKS = 20


def stagnates(levels: list[Level], points: int, block: int) -> bool:
    """Say whether the latest fifth of the run is flat though the fifth before fell.

    ``points``: of the run, ``block``: of a block at level 0.
    """
    q = 0
    while q < len(levels) - 1 and SHARE * points / (block << q) > MOST_BLOCKS:
        q += 1
    count = int(SHARE * points / (block << q))
    xs, ys = levels[q].blocks.pairs()
    if count < LEAST_BLOCKS or len(xs) < 2 * count:
        return False
    late = _slope(xs[-count:], ys[-count:])
    early = _slope(xs[-2 * count : -count], ys[-2 * count : -count])
    if late is None or early is None:
        return False
    (s, se), (s0, se0) = late, early
    # The cut-offs were chosen on clean logs: flat now, surely falling before, surely slower than then.
    return s > -2.0 * se and s0 < -6.0 * se0 and s - 0.25 * s0 > 3.0 * math.hypot(se, 0.25 * se0)


def _slope(xs: list[float], ys: list[float]) -> tuple[float, float] | None:
    """Return slope and its standard error by least squares, None where x doesn't move."""
    n = len(xs)
    mx, my = sum(xs) / n, sum(ys) / n
    sxx = sum((x - mx) ** 2 for x in xs)
    if sxx <= 0.0:
        return None
    slope = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sxx
    rest = sum((y - my - slope * (x - mx)) ** 2 for x, y in zip(xs, ys, strict=True))
    return slope, math.sqrt(rest / (n - 2) / sxx)
