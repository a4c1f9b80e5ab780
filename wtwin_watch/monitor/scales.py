"""How noisy a loss is: of points, of block means, and over long runs of points, learned as it goes."""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wtwin_watch.monitor.blocks import Blocks
from wtwin_watch.monitor.contrast import Line, as_line
from wtwin_watch.monitor.packing import pack, unpack

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
DOUBT = [2.0 / math.sqrt(max(c, 1)) for c in range(65)]
"""How far the ratio of two variances may be off by chance, after so many differences: two sigma or less."""
ROOTS = [math.sqrt(2.0**q) for q in range(LEVELS)]


class Level:
    """One scale: its blocks, a half block that waits for its other half, and its noise.

    ``a``: mean absolute third difference ÷ sqrt 20. ``r``: noise of block means, times sqrt(2^q), ÷ that of
    level 0 (1 for white noise), remembered long; ``r2``: the same from the run's beginning on.
    """

    __slots__ = (
        "a", "blocks", "c", "floor", "half", "latest", "line", "r", "r2", "r2_count", "r_count", "run", "u",
        "weight",
    )  # fmt: skip

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.half: tuple[float, float] | None = None
        self.latest = (0.0, 0.0)
        """x and y of the latest block."""
        self.line: Line | None = None
        """Through the past, laid anew with every fourth block once there are enough."""
        self.a = 0.0
        self.c = 0
        self.run = 0
        self.r = 0.0
        self.r_count = 0
        self.r2 = 0.0
        self.r2_count = 0
        self.u = 0.0
        """Long-run variance of a point by ``a``, over the points in a block of level 0."""
        self.floor = 0.0
        """Long-run variance is at least so many times that by level 0."""
        self.weight = 0.0
        """How far this level's own estimate is believed in."""

    def clone(self) -> Level:
        """Return a copy that goes its own way."""
        other = Level.__new__(Level)
        for name in Level.__slots__:
            setattr(other, name, getattr(self, name))
        other.blocks = self.blocks.clone()
        return other

    def state(self) -> dict[str, Any]:
        """Return all of it as a JSON-able dict."""
        return {
            "count": self.blocks.count,
            "blocks": self.blocks.state(),
            "half": None if self.half is None else pack(self.half),
            "latest": pack(self.latest),
            "line": None if self.line is None else pack(self.line),
            "noise": pack([getattr(self, name) for name in NOISE]),
        }

    @classmethod
    def revive(cls, state: Mapping[str, Any]) -> Level:
        """Make the level that `state` describes."""
        level = cls()
        level.blocks.count = int(state["count"])
        level.blocks.recall(state["blocks"])
        if state["half"] is not None:
            x, y = unpack(state["half"])
            level.half = (x, y)
        x, y = unpack(state["latest"])
        level.latest = (x, y)
        if state["line"] is not None:
            level.line = as_line(unpack(state["line"]))
        for name, number in zip(NOISE, unpack(state["noise"]), strict=True):
            setattr(level, name, int(number) if name in COUNTS else number)
        return level

    def learn(  # noqa: PLR0912 - twice for eight points: no calls in here
        self, q: int, noise: float, fast: float, least: float
    ) -> float:
        """Learn from the last four blocks; return level 0's fast-moving scale ``fast``, updated for q = 0.

        ``noise``: the noise of level 0's block means. ``least``: a difference below this is rounding.
        """
        blocks = self.blocks
        if blocks.size < 4:
            return fast
        sx, sy = blocks.sx, blocks.sy
        x4, x3, _, x1, x0 = sx[-5:]
        span = x0 - x1 - x3 + x4
        if span >= EARLY_SPAN:
            return fast
        y4, y3, y2, y1, y0 = sy[-5:]
        d = abs(y0 - 4.0 * y1 + 6.0 * y2 - 4.0 * y3 + y4) / THIRD_DIFFERENCE
        if d < least:
            d = 0.0
        steady = span < STEADY_SPAN
        if steady:
            self.c = c = self.c + 1
            a = self.a
            used = d
            if c > 8 and d > CLIP * a:
                self.run += 1
                if self.run <= RELEASE:
                    used = CLIP * a
            elif self.run:
                self.run = 0
            self.a = a = a + (used - a) / (c if c < 64 else 64)
            if c >= 3:
                self.u = (SD_OF_MEAN_ABS * a) ** 2 * (1 << q)
                if c <= 64:
                    self.weight = c / (4.0 + c)
            if q == 0:
                used = d
                if c > 8 and self.run <= RELEASE and d > CLIP * fast:
                    used = CLIP * fast
                return fast + (used - fast) / (c if c < 16 else 16)
        if q and noise > 0.0:
            relative = d * ROOTS[q] / noise
            if steady:
                self.r_count = count = self.r_count + 1
                r = self.r
                used = CLIP * r if count > 8 and relative > CLIP * r else relative
                self.r = r = r + (used - r) / (count if count < 256 else 256)
                if count >= 3:
                    self.floor = 0.8 * r * r
            self.r2_count = count = self.r2_count + 1
            r = self.r2
            used = CLIP * r if count > 8 and relative > CLIP * r else relative
            self.r2 = r + (used - r) / (count if count < 32 else 32)
        return fast


COUNTS = ("c", "run", "r_count", "r2_count")
NOISE = ("a", "r", "r2", "u", "floor", "weight", *COUNTS)


def long_run_variances(
    levels: list[Level], top: int, noise: float, points: int, floor: float
) -> list[float]:
    """Return the variance of a point by the noise of each level's blocks, shrunk towards what finer ones say.

    Where it surely grew from one level to the next it is expected to grow as much once more: noise that
    remembers tells so before there are blocks long enough to see it.

    ``top``: the highest level that is asked for. ``noise``: of level 0's block means. ``points``: in one of
    them. ``floor``: no variance is below.
    """
    v = (SD_OF_MEAN_ABS * noise) ** 2 * points
    v = max(v, floor)
    base = v
    found = [v]
    growth = 1.0
    for level in levels[1 : top + 1]:
        finer = v
        v *= growth
        if level.weight:
            u = level.u * points
            by_ratio = level.floor * base
            v += ((u if u > by_ratio else by_ratio) - v) * level.weight
            growth = 1.0
            if v > finer > 0.0:
                c = level.c
                growth = min(max(v / finer - DOUBT[c if c < 64 else 64], 1.0), 2.0)
        found.append(v)
    return found
