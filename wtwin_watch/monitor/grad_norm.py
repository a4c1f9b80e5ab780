"""The gradient norm as a witness: a jump of it is evidence, and a row of infinite ones a finding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wtwin_watch.monitor.rules import RESOLVED_AFTER, Turn
from wtwin_watch.monitor.words import step_text

MEMORY = 128
ENOUGH = 32
"""So many norms show what is usual."""
JUMP_SD = 6.0
JUMP_FACTOR = 2.0
SD_OF_MEAN_ABS = 1.2533
CLIP = 4.0
RECENT = 128
"""A jump is evidence for an alert within so many points."""
BAD_AFTER = 5
BAD_AT_FIRST = 64
"""Before the first finite norm, half-precision training may search its loss scale for this long."""


class GradNormRule:
    """Remembers the latest jump of the gradient norm, and alerts at five norms in a row that aren't finite.

    Single infinite ones are how half-precision training adapts its loss scale; so are the first ones of
    a run, of which up to 64 are passed over. 64 finite ones in a row end the alert. A jump is a norm more
    than twice the usual one whose logarithm lies 6 sigma above that of the last 128.
    """

    __slots__ = (
        "_count", "_deviation", "_finite_run", "_jumped_at", "_mean", "_ratio", "_since", "active",
        "bad", "last_healthy", "onset",
    )  # fmt: skip

    def __init__(self) -> None:
        self._count = 0
        self._mean = 0.0
        """Of ln(norm); ``_deviation`` is the mean absolute one from it."""
        self._deviation = 0.0
        self._jumped_at = 0.0
        self._ratio = 0.0
        self._since = RECENT
        """Points since the latest jump."""
        self.bad = 0
        """Norms in a row that aren't finite."""
        self._finite_run = 0
        self.active = False
        self.onset: float | None = None
        self.last_healthy: float | None = None

    def update(self, step: float, value: float) -> Turn | None:
        """Take one norm; say whether an alert began or ended with it."""
        self._since += 1
        if not math.isfinite(value):
            self._finite_run = 0
            if self.bad == 0 and not self.active:
                self.onset = step
            self.bad += 1
            patience = BAD_AFTER if self._count else BAD_AT_FIRST
            if self.active or self.bad < patience:
                return None
            self.active = True
            return Turn.BEGAN
        self.bad = 0
        if value > 0.0:
            self._learn(step, value)
        if not self.active:
            self.last_healthy = step
            return None
        self._finite_run += 1
        if self._finite_run < RESOLVED_AFTER:
            return None
        self.active = False
        return Turn.ENDED

    def _learn(self, step: float, value: float) -> None:
        excess = math.log(value) - self._mean
        self._count += 1
        count = min(self._count, MEMORY)
        if self._count > ENOUGH:
            sd = SD_OF_MEAN_ABS * self._deviation
            if excess > JUMP_SD * sd and excess > math.log(JUMP_FACTOR):
                self._jumped_at, self._ratio, self._since = step, math.exp(excess), 0
            limit = CLIP * sd if sd > 0.0 else math.inf
            excess = max(-limit, min(limit, excess))
        self._mean += excess / count
        self._deviation += (abs(excess) - self._deviation) / count

    @property
    def evidence(self) -> tuple[str, ...]:
        """What it has to say about an alert that begins now."""
        said = []
        if self.bad:
            said.append("the gradient norm is not finite")
        if self._since < RECENT:
            at = step_text(self._jumped_at)
            said.append(
                f"the gradient norm jumped at step {at} to {self._ratio:.3g} times its usual"
            )
        return tuple(said)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> GradNormRule:
        """Make the rule that goes on where `snapshot` was taken."""
        rule = cls()
        for name in cls.__slots__:
            setattr(rule, name, snapshot[name])
        return rule
