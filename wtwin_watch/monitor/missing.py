"""A loss that is no longer logged though the log goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wtwin_watch.monitor.rules import Turn

LEAST_ROWS = 20
TIMES = 5
"""A gap of more than so many times the longest one before is no habit of the log."""
KNOWN_AFTER = 8
"""So many losses show how often the log has one."""


class MissingRule:
    """Alerts when more than max(20, 5 x the longest gap before) rows brought no loss; ends with the next.

    A row is a stretch of points with the same step, whatever their metrics. A run that logs its loss at
    every k-th row by design thus has an alert after 5 k rows without one. Rows are counted from the
    eighth loss on, and only where they come as fast as losses did, at most twice the longest stride
    between two of them after the row before: where a log holds nothing but evaluations any more, that is
    how it was meant.

    >>> rule = MissingRule()
    >>> for step in range(10):
    ...     _ = rule.row(step), rule.loss(step)
    >>> [rule.row(step) for step in range(10, 31)].index(Turn.BEGAN)
    20
    """

    __slots__ = ("active", "last_healthy", "longest", "losses", "rows", "step", "stride")

    def __init__(self) -> None:
        self.active = False
        self.step: float | None = None
        """Of the latest row."""
        self.rows = 0
        """Rows since the latest loss."""
        self.longest = 0
        """The most rows there were between two losses."""
        self.stride = 0.0
        """The longest way between two losses, in steps."""
        self.losses = 0
        self.last_healthy: float | None = None
        """Step of the latest loss."""

    def row(self, step: float) -> Turn | None:
        """Take note of a point of any metric; say whether an alert began with it."""
        before, self.step = self.step, step
        if step == before:
            return None
        if before is not None and self.losses and not 0.0 < step - before <= 2.0 * self.stride:
            return None
        self.rows += 1
        if self.active or self.losses < KNOWN_AFTER or self.rows <= self.patience:
            return None
        self.active = True
        return Turn.BEGAN

    @property
    def patience(self) -> int:
        """So many rows without a loss are no reason to worry."""
        return max(LEAST_ROWS, TIMES * self.longest)

    def loss(self, step: float) -> Turn | None:
        """Take note of a loss; say whether an alert ended with it."""
        was, self.active = self.active, False
        # The gap of an alert is not a habit.
        if not was:
            self.longest = max(self.longest, self.rows) if self.losses else 0
            if self.last_healthy is not None:
                self.stride = max(self.stride, step - self.last_healthy)
        self.rows = 0
        self.losses += 1
        self.last_healthy = step
        return Turn.ENDED if was else None

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> MissingRule:
        """Make the rule that goes on where `snapshot` was taken."""
        rule = cls()
        for name in cls.__slots__:
            setattr(rule, name, snapshot[name])
        return rule
