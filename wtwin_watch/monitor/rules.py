"""Rules that need no forecast: a loss that is no longer a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from wtwin_watch.errors import SnapshotError

SNAPSHOT_VERSION = 1
RESOLVED_AFTER = 64
"""So many finite losses in a row end the alert: a run that diverges logs a finite one now and then."""


class Turn(StrEnum):
    """What an observation changed."""

    BEGAN = "began"
    ENDED = "ended"


class NonFiniteRule:
    """Alerts at the first NaN or infinite loss, and ends after 64 finite ones in a row.

    It has no false alarms: the loss is a number or it isn't. An observation costs the same however many
    there were.

    >>> rule = NonFiniteRule()
    >>> rule.update(1, 2.5), rule.update(2, math.nan), rule.update(3, math.inf), rule.bad_points
    (None, <Turn.BEGAN: 'began'>, None, 2)
    """

    __slots__ = ("active", "bad_points", "finite_run", "last_bad", "last_healthy", "onset")

    def __init__(self) -> None:
        self.active = False
        self.onset: float | None = None
        """Step of the first bad observation of the latest episode."""
        self.last_bad: float | None = None
        """Step of the latest bad observation."""
        self.last_healthy: float | None = None
        """Step of the last finite observation before the latest episode; while all is well, the latest."""
        self.bad_points = 0
        """Bad observations in the latest episode."""
        self.finite_run = 0
        """Finite observations in a row since the latest bad one."""

    def update(self, step: float, value: float) -> Turn | None:
        """Take one observation; say whether an alert began or ended with it."""
        if math.isfinite(value):
            if not self.active:
                self.last_healthy = step
                return None
            self.finite_run += 1
            if self.finite_run < RESOLVED_AFTER:
                return None
            self.active = False
            return Turn.ENDED
        self.finite_run = 0
        self.last_bad = step
        if self.active:
            self.bad_points += 1
            return None
        self.active, self.onset, self.bad_points = True, step, 1
        return Turn.BEGAN

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {"version": SNAPSHOT_VERSION} | {
            name: getattr(self, name) for name in self.__slots__
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> NonFiniteRule:
        """Make the rule that goes on where `snapshot` was taken. Raises `SnapshotError`."""
        if snapshot.get("version") != SNAPSHOT_VERSION:
            raise SnapshotError(
                f"a non-finite rule of version {snapshot.get('version')!r} can't be read"
            )
        rule = cls()
        try:
            for name in cls.__slots__:
                setattr(rule, name, snapshot[name])
        except KeyError as error:
            raise SnapshotError(f"a non-finite rule is damaged: {error} is missing") from error
        return rule
