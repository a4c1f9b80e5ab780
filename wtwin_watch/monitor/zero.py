"""A loss that is exactly zero though it wasn't near it: what a broken reduction or a NaN filter logs."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.rules import Turn

AFTER = 3
"""So many zeros in a row are an alert."""
RESOLVED_AFTER = 8
MEMORY = 64
ENOUGH = 32
"""So many losses before must show that zero was far."""
NEAR = 0.2
"""Zero is near where the smallest of the losses before is below this share of their mean …"""
QUANTA = 20.0
"""… or below so many steps of a rounded log."""


class ZeroRule:
    """Alerts at the third exact zero in a row of a loss that wasn't near zero; ends after 8 others.

    Zero is near, and then never an alert, where the smallest of the last 64 losses before is below a
    fifth of their mean or 20 times the smallest difference of two of them, or where one of them was zero
    or below. A single zero among losses far from it is passed over.

    >>> rule = ZeroRule()
    >>> calm = [rule.update(step, 2.0 + step % 7 / 1000) for step in range(50)]
    >>> [rule.update(step, 0.0) for step in (50, 51, 52)]
    [None, None, <Turn.BEGAN: 'began'>]
    """

    __slots__ = ("_before", "_far", "active", "last_healthy", "onset", "others", "zeros")

    def __init__(self) -> None:
        self._before: deque[float] = deque(maxlen=MEMORY)
        self._far = False
        """Zero was far when the present row of zeros began."""
        self.active = False
        self.zeros = 0
        """Zeros in a row."""
        self.others = 0
        """Losses in a row that aren't zero, during an alert."""
        self.onset: float | None = None
        self.last_healthy: float | None = None

    @property
    def suspicious(self) -> bool:
        """Whether the latest loss was such a zero; a forecast should not learn from it."""
        return self.zeros > 0 and self._far

    def update(self, step: float, value: float) -> Turn | None:
        """Take one finite loss; say whether an alert began or ended with it."""
        if value != 0.0:
            self.zeros = 0
            self._before.append(value)
            if not self.active:
                self.last_healthy = step
                return None
            self.others += 1
            if self.others < RESOLVED_AFTER:
                return None
            self.active = False
            return Turn.ENDED
        self.others = 0
        if self.zeros == 0 and not self.active:
            self._far = self._zero_is_far()
            self.onset = step
        self.zeros += 1
        if not self._far:
            self._before.append(value)
            return None
        if self.active or self.zeros < AFTER:
            return None
        self.active = True
        return Turn.BEGAN

    def _zero_is_far(self) -> bool:
        before = sorted(self._before)
        if len(before) < ENOUGH or before[0] <= 0.0:
            return False
        steps = [b - a for a, b in pairwise(before) if b > a]
        quantum = min(steps, default=0.0)
        mean = sum(before) / len(before)
        return before[0] >= NEAR * mean and before[0] >= QUANTA * quantum

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "_before"}
        return {**plain, "_before": pack(self._before)}

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> ZeroRule:
        """Make the rule that goes on where `snapshot` was taken."""
        rule = cls()
        for name in cls.__slots__:
            if name != "_before":
                setattr(rule, name, snapshot[name])
        rule._before.extend(unpack(snapshot["_before"]))
        return rule
