"""One test: do the latest blocks of a scale lie above what the blocks before them forecast?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from wtwin_watch.monitor.blocks import YOUNG, Blocks

MIN_REFERENCE = 10
YOUNG_REFERENCE = 20
REFERENCE = 108
"""Blocks of a full reference, before the switch together with the test window."""
LONGEST = 12
"""Blocks of the longest window: where one line serves all windows, its reference ends before it."""
MID_WINDOW = 4
"""Blocks of the window from whose line the mid path has its forecast."""


class Forecast(NamedTuple):
    """A frozen forecast: level ``y`` at ``x``, a slope that dies out as the clock moves on.

    ``flatten``: kappa, the share of the slope no longer believed in, grows by so much a unit of x
    beyond ``middle``; at ``edge`` the future begins.
    """

    x: float
    y: float
    slope: float
    edge: float
    middle: float
    flatten: float

    def reach(self, x: float) -> float:
        """Return how far in x the slope is followed from the anchor to forecast at ``x``."""
        kappa = min(1.0, self.flatten * (x - self.middle))
        return (self.edge - self.x) + (1.0 - kappa) * (x - self.edge)

    def at(self, x: float) -> float:
        """Forecast the loss at ``x``."""
        return self.y + self.slope * self.reach(x)


class Window(NamedTuple):
    """The latest m blocks, as a test sees them: weights 1…m, then a pending half block if there is one."""

    m: int
    half_weight: float
    weight: float
    variance: float
    """Of the weighted mean, in block variances."""
    credit: float
    """ln(m 2^q): what a test of this length is granted for being one of few."""


def windows(lengths: tuple[int, ...], q: int) -> tuple[list[Window], list[Window]]:
    """Return the windows of scale ``q``, without and with a half block."""
    plain, halved = [], []
    for m in lengths:
        w, w2 = m * (m + 1) / 2, m * (m + 1) * (2 * m + 1) / 6
        half = 0.5 * (m + 1.5)
        credit = math.log(m * 2.0**q)
        plain.append(Window(m, 0.0, w, w2 / w**2, credit))
        # A half block has twice the variance of a block.
        halved.append(Window(m, half, w + half, (w2 + 2 * half**2) / (w + half) ** 2, credit))
    return plain, halved


Line = tuple[float, float, float, float, float, float, float, float]
"""A line through some blocks: slope, x and y of its anchor, edge and middle of its `Forecast`, blocks behind
the anchor, Sxx, and the variance of a block. A bare tuple, since there are many."""
Found = tuple[int, Line, float]
"""What a test found: blocks in its window, the line it compared with, and the excess above it."""


def as_forecast(line: Line, flatten: float) -> Forecast:
    """Return the forecast that a line stands for."""
    slope, x, y, edge, middle, _, _, _ = line
    return Forecast(x, y, slope, edge, middle, flatten)


def as_line(numbers: Sequence[float]) -> Line:
    """Return the line whose numbers these are."""
    slope, x, y, edge, middle, n, sxx, variance = numbers
    return slope, x, y, edge, middle, n, sxx, variance


def fit(blocks: Blocks, a: int, b: int, variance: float) -> Line | None:
    """Lay a line through the blocks ``a`` to ``b`` - 1 that flattens where its halves disagree, or None.

    ``variance``: of a block. A slope is believed in only where both halves agree, and never upwards, so a
    curve that flattens isn't taken for one that rises. None where x doesn't move.
    """
    sx, sy, sxx, sxy = blocks.sx, blocks.sy, blocks.sxx, blocks.sxy
    x0, y0 = blocks.x0, blocks.y0
    r = b - a
    c = a + (r >> 1)
    n2 = b - c
    xa, xc, xb = sx[a], sx[c], sx[b]
    ya, yc, yb = sy[a], sy[c], sy[b]
    qa, qc, qb = sxx[a], sxx[c], sxx[b]
    pa, pc, pb = sxy[a], sxy[c], sxy[b]
    xs = xb - xa
    ys = yb - ya
    xm = xs / r
    ss = qb - qa - xs * xm
    x1 = xc - xa
    x2 = xb - xc
    xm1 = x1 / (c - a)
    xm2 = x2 / n2
    s1 = qc - qa - x1 * xm1
    s2 = qb - qc - x2 * xm2
    if s1 <= 0.0 or s2 <= 0.0 or ss <= 0.0:
        return None
    slope = (pb - pa - ys * xm) / ss
    first = (pc - pa - (yc - ya) * xm1) / s1
    second = (pb - pc - (yb - yc) * xm2) / s2
    edge = x0 + 0.5 * (sx[b + 1] - sx[b - 1])
    steepest = max(first, second)
    extra = steepest - slope - 0.5 * math.sqrt(variance / min(s1, s2))
    if extra > 0.0:
        slope += extra
    elif slope <= 0.0:
        return slope, xm + x0, ys / r + y0, edge, xm + x0, r, ss, variance
    slope = min(slope, 0.0)
    return slope, xm2 + x0, (yb - yc) / n2 + y0, edge, xm + x0, n2, ss, variance


def compare(
    blocks: Blocks,
    tests: list[Window],
    half: tuple[float, float] | None,
    noise: float,
    recent: Callable[[int], float] | None,
    flatten: float,
    min_effect: float,
    best: float,
    line: Line,
    least: float,
) -> tuple[float, Found | None]:
    """Test the latest blocks, over several windows, against a line through those before them all.

    ``tests``: the longest first. ``noise``: variance of a block; ``recent`` gives a larger one where the
    points of a window are noisier. ``best``: evidence there is already. ``least``: the line forecasts no less
    within the windows. Returns the best evidence, and the test that gave it (None: nothing better).
    """
    found: Found | None = None
    sx, sy = blocks.sx, blocks.sy
    x0, y0 = blocks.x0, blocks.y0
    y_end = sy[-1]
    least += min_effect * abs(least) - y0
    slope, xa, ya, edge, xm, n, ss, _ = line
    for m, half_weight, weight, w2, credit in tests:
        yr = m * y_end - sum(sy[-m - 1 : -1])
        if half is not None:
            yr += half_weight * (half[1] - y0)
        yr /= weight
        # Most windows are done with here: with no doubt about the line it would not be enough.
        excess = yr - least
        if excess <= 0.0 or excess * excess < 2.0 * (best - credit) * noise * w2:
            continue
        xr = m * sx[-1] - sum(sx[-m - 1 : -1])
        if half is not None:
            xr += half_weight * (half[0] - x0)
        xr = x0 + xr / weight
        reach = edge - xa
        follow = 1.0 - flatten * (xr - xm)
        if follow > 0.0:
            reach += follow * (xr - edge)
        f = ya + slope * reach
        excess = y0 + yr - f - min_effect * abs(f)
        if excess <= 0.0:
            continue
        vb = noise if recent is None else recent(m)
        variance = vb * (w2 + 1.0 / n + reach * reach / ss)
        if not variance > 0.0:
            continue
        evidence = 0.5 * excess * excess / variance + credit
        if evidence > best:
            best = evidence
            found = m, line, excess
    return best, found


def compare_young(
    blocks: Blocks,
    tests: list[Window],
    half: tuple[float, float] | None,
    noise: float,
    recent: Callable[[int], float] | None,
    flatten: float,
    min_effect: float,
    best: float,
) -> tuple[float, Found | None, Line | None]:
    """Do what `compare` does where each window has a line of its own, which ends before it.

    Returns besides the line that the window of `MID_WINDOW` blocks had. There is no test where a reference
    has too few blocks.
    """
    found: Found | None = None
    kept: Line | None = None
    for test in tests:
        m = test.m
        vb = noise if recent is None else recent(m)
        line = fit_before(blocks, blocks.size - REFERENCE, blocks.size - m, vb)
        if m == MID_WINDOW:
            kept = line
        if line is None:
            continue
        best, better = compare(
            blocks, [test], half, vb, None, flatten, min_effect, best, line, -math.inf
        )
        found = better or found
    return best, found, kept


def fit_before(blocks: Blocks, oldest: int, b: int, variance: float) -> Line | None:
    """Lay a line through the reference that ends before block ``b``; None where it has too few blocks."""
    a = max(blocks.near, oldest)
    if blocks.count <= YOUNG:
        a = min(a, max(b - YOUNG_REFERENCE, blocks.far, 0))
    return fit(blocks, a, b, variance) if b - a >= MIN_REFERENCE else None
