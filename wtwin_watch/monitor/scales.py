"""How noisy a loss is: of points, of block means, and over long runs of points, learned as it goes."""

from __future__ import annotations

import math
from itertools import islice

from wtwin_watch.monitor.blocks import Blocks

LEVELS = 15
STEADY_SPAN = 0.15
"""Third differences tell noise from trend where the last four blocks span less than this in x."""
EARLY_SPAN = 0.45
"""Where they span less than this they tell enough for a first estimate of correlation."""
CLIP = 4.0
"""A difference above so many scales is an outlier …"""
RELEASE = 4
"""… until so many came in a row: then the scale itself has grown. One jump gives no more."""
SD_OF_MEAN_ABS = 1.2533
"""sigma of a Gaussian ÷ its mean absolute value: sqrt(pi / 2)."""
THIRD_DIFFERENCE = math.sqrt(20.0)


class Level:
    """One scale: its blocks, a half block that waits for its other half, and its noise.

    ``a``: mean absolute third difference ÷ sqrt 20. ``r``: noise of block means × sqrt(2^q) ÷ that of
    level 0 (1 for white noise), remembered long; ``r2``: the same from the run's beginning on.
    ``v``: long-run variance of a point as this scale sees it.
    """

    __slots__ = ("a", "blocks", "c", "half", "r", "r2", "r2_count", "r_count", "run", "v")

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.half: tuple[float, float] | None = None
        self.a = 0.0
        self.c = 0
        self.run = 0
        self.r = 0.0
        self.r_count = 0
        self.r2 = 0.0
        self.r2_count = 0
        self.v = 0.0

    def learn(self, q: int, noise: float, fast: float) -> float:
        """Learn from the last four blocks; return level 0's fast-moving scale ``fast``, updated for q = 0.

        ``noise``: the noise of level 0's block means.
        """
        blocks = self.blocks
        if blocks.size < 4:  # noqa: PLR2004 - a third difference
            return fast
        sx, sy = blocks.sx, blocks.sy
        x4, x3, _, x1, x0 = sx[-5:]
        span = x0 - x1 - x3 + x4
        if span >= EARLY_SPAN:
            return fast
        y4, y3, y2, y1, y0 = sy[-5:]
        d = abs(y0 - 4.0 * y1 + 6.0 * y2 - 4.0 * y3 + y4) / THIRD_DIFFERENCE
        if span < STEADY_SPAN:
            fast = self._learn_steady(d, q, fast)
            noise = self.a if q == 0 else noise
        if q and noise > 0.0:
            relative = d * math.sqrt(2.0**q) / noise
            if span < STEADY_SPAN:
                self.r_count = count = self.r_count + 1
                clipped = min(relative, CLIP * self.r) if count > 8 else relative
                self.r += (clipped - self.r) / min(count, 256)
            self.r2_count = count = self.r2_count + 1
            clipped = min(relative, CLIP * self.r2) if count > 8 else relative
            self.r2 += (clipped - self.r2) / min(count, 32)
        return fast

    def _learn_steady(self, d: float, q: int, fast: float) -> float:
        self.c = c = self.c + 1
        used = d
        limit = CLIP * self.a
        if c > 8 and d > limit:  # noqa: PLR2004 - the first ones set the scale
            self.run += 1
            if self.run <= RELEASE:
                used = limit
        else:
            self.run = 0
        self.a += (used - self.a) / (c if c < 64 else 64)  # noqa: PLR2004 - memory
        if q == 0:
            if c > 8 and self.run <= RELEASE and d > CLIP * fast:  # noqa: PLR2004
                d = CLIP * fast
            fast += (d - fast) / (c if c < 16 else 16)  # noqa: PLR2004 - memory
        return fast


def long_run_variances(
    levels: list[Level], top: int, noise: float, points: int, floor: float
) -> None:
    """Set ``v`` of each level: variance of a point by its blocks' noise, shrunk towards the finer level's.

    ``top``: the highest level that is asked for. ``noise``: of level 0's block means. ``points``: in one of them. ``floor``: no variance is below.
    """
    base = (SD_OF_MEAN_ABS * noise) ** 2 * points
    if base < floor:
        base = floor
    levels[0].v = v = base
    scale = float(points)
    for level in islice(levels, 1, top + 1):
        scale *= 2.0
        c = level.c
        if c >= 3:  # noqa: PLR2004 - fewer say nothing
            u = (SD_OF_MEAN_ABS * level.a) ** 2 * scale
            if level.r_count >= 3:  # noqa: PLR2004
                by_ratio = 0.8 * base * level.r * level.r
                if by_ratio > u:
                    u = by_ratio
            if u < floor:
                u = floor
            if c > 64:  # noqa: PLR2004
                c = 64
            v = (4.0 * v + c * u) / (4.0 + c)
        level.v = v
