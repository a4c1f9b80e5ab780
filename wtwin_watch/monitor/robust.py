"""The spread of a sliding window, robust and cheap: its median absolute deviation, never sorted anew."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable

MAD_TO_SIGMA = 1.4826
"""The median absolute deviation of a normal distribution, times this, is its standard deviation."""
NO_SPREAD = 1e-10
SMALLEST_SIGMA = 1e-8
ENOUGH = 2
"""Fewer values have no spread."""


class SlidingMad:
    """Sigma of the last ``size`` finite values by their median absolute deviation.

    `push` costs a search and a shift in a sorted list of ``size`` numbers, `sigma` a binary search.
    """

    __slots__ = ("arrived", "ordered", "size")

    def __init__(self, size: int, values: Iterable[float] = ()) -> None:
        self.size = size
        self.arrived: deque[float] = deque(values, maxlen=size)
        self.ordered = sorted(self.arrived)

    def push(self, value: float) -> None:
        """Take in a finite value; the oldest leaves a full window."""
        ordered = self.ordered
        if len(ordered) == self.size:
            del ordered[bisect_left(ordered, self.arrived[0])]
        self.arrived.append(value)
        insort(ordered, value)

    def sigma(self) -> float:
        """Return 1.4826 times the median absolute deviation; 1e-8 where there is no spread."""
        ordered = self.ordered
        n = len(ordered)
        if n < ENOUGH:
            return SMALLEST_SIGMA
        half = n >> 1
        median = ordered[half] if n & 1 else _middle(ordered[half - 1], ordered[half])
        # The half + 1 values nearest to the median stand side by side, first … first + half. Their two
        # ends are the farthest of them, so one search gives the two middle deviations of an even window.
        low, high = 0, n - 1 - half
        while low < high:
            first = (low + high) >> 1
            if ordered[first + half] - median < median - ordered[first]:
                low = first + 1
            else:
                high = first
        first = low
        if first and median - ordered[first - 1] < ordered[first + half] - median:
            first -= 1
        below = median - ordered[first]
        above = ordered[first + half] - median
        farthest = below if below > above else above
        if n & 1:
            mad = farthest
        else:
            if below > above:
                below = median - ordered[first + 1]
            else:
                above = ordered[first + half - 1] - median
            mad = _middle(below if below > above else above, farthest)
        sigma = MAD_TO_SIGMA * mad
        if sigma <= NO_SPREAD:
            return SMALLEST_SIGMA
        return min(sigma, sys.float_info.max)


def _middle(a: float, b: float) -> float:
    middle = 0.5 * (a + b)
    return middle if math.isfinite(middle) else 0.5 * a + 0.5 * b
