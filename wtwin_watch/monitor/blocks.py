"""Block means of one scale: a ring of the latest, with prefix sums that make a line fit O(1).

A block is the mean of some points in a row, at ``x`` (log of the step, or of the summed learning rate)
with the value ``y``. The ring keeps the latest `RING` of them as prefix sums of x, y, xx and xy about an
origin, in packed arrays of doubles: 32 bytes a block.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from operator import add, mul, sub

from wtwin_watch.monitor.packing import pack, unpack

RING = 112
SLACK = 20
"""The oldest are dropped when so many blocks more are held."""
RENEWED = 320
"""With every so manieth block the sums are built anew about it: rounding stays small."""
SPREAD = 0.25
"""So far from the origin in x the sums would cancel too many digits, and are built anew."""
NEAR = 0.5
"""A reference reaches back so far in x."""
FAR = 0.9
"""So far while a scale is young."""


class Blocks:
    """The latest block means of one scale. Indices count from the oldest one held, as in a list."""

    __slots__ = ("count", "far", "near", "size", "sx", "sxx", "sxy", "sy", "x0", "y0")

    def __init__(self) -> None:
        self.count = 0
        """How many blocks this scale has seen in all."""
        self.clear()

    def clear(self) -> None:
        """Forget the blocks, not how many there were."""
        self.fill([], [])

    def fill(self, xs: list[float], ys: list[float]) -> None:
        """Hold these blocks and no others; `count` stays as it is."""
        x0 = xs[-1] if xs else 0.0
        y0 = ys[-1] if ys else 0.0
        self._sum_up(
            x0, y0, accumulate(map(sub, xs, repeat(x0))), accumulate(map(sub, ys, repeat(y0)))
        )

    def _sum_up(
        self, x0: float, y0: float, sx: Iterable[float], sy: Iterable[float],
        before: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    ) -> None:  # fmt: skip
        """Hold the blocks whose sums about (x0, y0) these are; ``before``: the four sums ahead of them."""
        self.x0, self.y0 = x0, y0
        self.sx = array("d", (before[0], *sx))
        self.sy = array("d", (before[1], *sy))
        self.size = len(self.sx) - 1
        # Of what the sums give back, so that the others follow from these two to the last bit.
        dx = list(map(sub, self.sx[1:], self.sx))
        dy = map(sub, self.sy[1:], self.sy)
        self.sxx = array("d", accumulate(map(mul, dx, dx), initial=before[2]))
        self.sxy = array("d", accumulate(map(mul, dx, dy), initial=before[3]))
        latest = dx[-1] if dx else 0.0
        self.near = bisect_left(dx, latest - NEAR)
        """Index of the oldest block within `NEAR` of the latest one."""
        self.far = bisect_left(dx, latest - FAR)
        """Index of the oldest block within `FAR` of the latest one."""

    def push(self, x: float, y: float) -> None:
        """Take one more block."""
        self.count += 1
        if not self.size:
            self.x0, self.y0 = x, y
        elif x - self.x0 > SPREAD or not self.count % RENEWED:
            self.fill(*self.pairs())
        elif self.size >= RING + SLACK:
            self._drop_oldest(y)
        sx, sy, sxx, sxy = self.sx, self.sy, self.sxx, self.sxy
        x_sum, y_sum = sx[-1], sy[-1]
        x_next = x_sum + (x - self.x0)
        y_next = y_sum + (y - self.y0)
        sx.append(x_next)
        sy.append(y_next)
        dx = x_next - x_sum
        sxx.append(sxx[-1] + dx * dx)
        sxy.append(sxy[-1] + dx * (y_next - y_sum))
        self.size += 1
        j = self.near
        if sx[j + 1] - sx[j] < dx - NEAR:
            self.near = _first_within(sx, j, dx - NEAR)
        if self.count <= YOUNG:
            self.far = _first_within(sx, self.far, dx - FAR)

    def _drop_oldest(self, y: float) -> None:
        if abs(y - self.y0) > abs(y):
            # So far from the origin the sums would cancel too many digits.
            self.fill(*self.pairs())
            return
        gone = self.size - RING
        del self.sx[:gone], self.sy[:gone], self.sxx[:gone], self.sxy[:gone]
        self.size = RING
        self.near = max(0, self.near - gone)
        self.far = max(0, self.far - gone)

    def edge(self, m: int) -> float:
        """Return x between the latest ``m`` blocks, of more, and the one before."""
        b = self.size - m
        return self.x0 + 0.5 * (self.sx[b + 1] - self.sx[b - 1])

    def state(self) -> list[str]:
        """Return origin and sums as text: all the rest follows from them."""
        before = self.sx[0], self.sy[0], self.sxx[0], self.sxy[0]
        return [pack((self.x0, self.y0, *before)), pack(self.sx[1:] + self.sy[1:])]

    def recall(self, state: Sequence[str]) -> None:
        """Hold what `state` describes, to the last bit."""
        x0, y0, *before = unpack(state[0])
        both = unpack(state[1])
        # In the first form the sums began with nothing.
        before = before or [0.0] * 4
        self._sum_up(x0, y0, both[: len(both) // 2], both[len(both) // 2 :], before)

    def pairs(self) -> tuple[list[float], list[float]]:
        """Return x and y of the latest blocks, at most `RING`, oldest first."""
        first = max(0, self.size - RING)
        sx, sy = self.sx[first:], self.sy[first:]
        return (
            list(map(add, map(sub, sx[1:], sx), repeat(self.x0))),
            list(map(add, map(sub, sy[1:], sy), repeat(self.y0))),
        )

    def clone(self) -> Blocks:
        """Return a copy that goes its own way."""
        other = Blocks.__new__(Blocks)
        for name in Blocks.__slots__:
            value = getattr(self, name)
            setattr(other, name, value[:] if isinstance(value, array) else value)
        return other

    def keep(self, x: float) -> None:
        """Drop the blocks that lie beyond ``x``, and one whose middle is there."""
        xs, ys = self.pairs()
        # The edge of two blocks is the middle of the one that they make up: rounding must not decide.
        kept = [i for i, at in enumerate(xs) if at < x - 1e-11]
        if len(kept) < len(xs):
            self.fill([xs[i] for i in kept], [ys[i] for i in kept])


YOUNG = 80
"""A scale is young up to so many blocks."""


def _first_within(sx: Sequence[float], j: int, edge: float) -> int:
    """Return the index of the first block from ``j`` on that isn't before ``edge``."""
    while sx[j + 1] - sx[j] < edge:
        j += 1
    return j
