"""Block means of one scale: a ring of the latest, with prefix sums that make a line fit O(1).

A block is the mean of some points in a row, at ``x`` (log of the step, or of the summed learning rate)
with the value ``y``. The ring keeps the latest `RING` of them as prefix sums of x, y, xx and xy about an
origin, in packed arrays of doubles: 32 bytes a block.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate
from operator import mul, sub

RING = 108
SLACK = 32
REBASE = 256
"""After so many blocks the sums are built anew about the latest block, so rounding stays bounded."""
SPREAD = 0.25
"""So far from the origin in x the sums would cancel too many digits, and are built anew."""
NEAR = 0.5
"""A reference reaches back so far in x."""
FAR = 0.9
"""So far while a scale is young."""


class Blocks:
    """The latest block means of one scale. Indices count from the oldest one held, as in a list."""

    __slots__ = ("_pushed", "count", "far", "near", "size", "sx", "sxx", "sxy", "sy", "x0", "y0")

    def __init__(self) -> None:
        self.count = 0
        """How many blocks this scale has seen in all."""
        self.clear()

    def clear(self) -> None:
        """Forget the blocks, not how many there were."""
        self.fill([], [])

    def fill(self, xs: list[float], ys: list[float]) -> None:
        """Hold these blocks and no others; `count` stays as it is."""
        self.size = len(xs)
        self.x0 = xs[-1] if xs else 0.0
        self.y0 = ys[-1] if ys else 0.0
        dx = [x - self.x0 for x in xs]
        dy = [y - self.y0 for y in ys]
        self.sx = array("d", accumulate(dx, initial=0.0))
        self.sy = array("d", accumulate(dy, initial=0.0))
        self.sxx = array("d", accumulate(map(mul, dx, dx), initial=0.0))
        self.sxy = array("d", accumulate(map(mul, dx, dy), initial=0.0))
        self._pushed = 0
        self.near = bisect_left(dx, -NEAR)
        """Index of the oldest block within `NEAR` of the latest one."""
        self.far = bisect_left(dx, -FAR)
        """Index of the oldest block within `FAR` of the latest one."""

    def push(self, x: float, y: float) -> None:
        """Take one more block."""
        self.count += 1
        if not self.size:
            self.x0, self.y0 = x, y
        dx = x - self.x0
        if dx > SPREAD:
            self.rebase()
            dx = x - self.x0
        dy = y - self.y0
        sx = self.sx
        sx.append(sx[-1] + dx)
        self.sy.append(self.sy[-1] + dy)
        self.sxx.append(self.sxx[-1] + dx * dx)
        self.sxy.append(self.sxy[-1] + dx * dy)
        self.size += 1
        self._pushed += 1
        if self.size > RING + SLACK:
            self._shorten()
            sx = self.sx
        j, edge = self.near, x - self.x0 - NEAR
        while sx[j + 1] - sx[j] < edge:
            j += 1
        self.near = j
        if self.count <= YOUNG:
            j, edge = self.far, x - self.x0 - FAR
            while sx[j + 1] - sx[j] < edge:
                j += 1
            self.far = j

    def _shorten(self) -> None:
        if self._pushed > REBASE:
            self.rebase()
            return
        for sums in (self.sx, self.sy, self.sxx, self.sxy):
            del sums[:SLACK]
        self.size -= SLACK
        self.near = max(0, self.near - SLACK)
        self.far = max(0, self.far - SLACK)

    def rebase(self) -> None:
        """Build the sums anew: the latest `RING` blocks, fresh rounding."""
        self.fill(*self.pairs())

    def pairs(self) -> tuple[list[float], list[float]]:
        """Return x and y of the latest blocks, at most `RING`, oldest first."""
        first = max(0, self.size - RING)
        sx, sy = self.sx[first:], self.sy[first:]
        return (
            [d + self.x0 for d in map(sub, sx[1:], sx)],
            [d + self.y0 for d in map(sub, sy[1:], sy)],
        )

    def clone(self) -> Blocks:
        """Return a copy that goes its own way."""
        other = Blocks.__new__(Blocks)
        for name in Blocks.__slots__:
            value = getattr(self, name)
            setattr(other, name, value[:] if isinstance(value, array) else value)
        return other

    def keep(self, x: float) -> None:
        """Drop the blocks that lie beyond ``x``."""
        xs, ys = self.pairs()
        kept = [i for i, at in enumerate(xs) if at <= x]
        if len(kept) < len(xs):
            self.fill([xs[i] for i in kept], [ys[i] for i in kept])


YOUNG = 80
"""A scale is young up to so many blocks."""
