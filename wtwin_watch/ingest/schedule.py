"""When a source is looked at and how much is asked of it: arithmetic of times, no effects."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from wtwin_watch.backoff import delay_s

HINT_GAP_S = 0.2
"""Looks hastened by file events are at least this far apart, and ten times as far as a look is long."""
BACKOFF_CAP_S = 60.0
ASKED_CAP_S = 600.0
"""A source that asks to be left alone for longer is asked again after this."""
BURST = 4.0


@dataclass(slots=True)
class Looks:
    """When one source is looked at, on the clock that never goes back. ``once``: a single time."""

    interval_s: float
    once: bool
    next_at: float
    started_at: float = 0.0
    took_s: float = 0.0
    failures: int = 0
    """In a row."""

    def hasten(self) -> None:
        """There may be something new: look soon."""
        if self.failures == 0 and not self.once:
            soon = self.started_at + max(HINT_GAP_S, 10.0 * self.took_s)
            self.next_at = min(self.next_at, soon)

    def begin(self, now: float) -> None:
        """A look begins."""
        self.started_at = now
        self.next_at = math.inf if self.once else now + self.interval_s

    def succeed(self, now: float) -> None:
        """It brought a list of runs."""
        self.took_s = now - self.started_at
        self.failures = 0

    def fail(self, now: float, chance: float, retry_after_s: float | None) -> None:
        """It failed: the next one waits, longer each time."""
        self.took_s = now - self.started_at
        self.failures += 1
        if not self.once:
            delay = delay_s(self.failures, self.interval_s, BACKOFF_CAP_S, chance)
            asked = min(retry_after_s or 0.0, ASKED_CAP_S)
            self.next_at = now + max(delay, self.interval_s, asked)


@dataclass(slots=True)
class Budget:
    """Lets through ``rate`` requests a second, a few at once after a pause; None: all of them."""

    rate: float | None
    tokens: float = field(default=BURST)
    at: float = -math.inf

    def take(self, now: float) -> bool:
        """Whether one more may go out now; if so, it is counted."""
        if self.rate is None:
            return True
        if self.at > -math.inf:
            self.tokens = min(BURST, self.tokens + (now - self.at) * self.rate)
        self.at = now
        # A few rounding errors less than one is one: else who waits exactly long enough waits again.
        if self.tokens < 1.0 - 1e-9:
            return False
        self.tokens -= 1.0
        return True

    def wait_s(self) -> float:
        """How long until the next one may go out, seconds, after `take` refused one."""
        return 0.0 if self.rate is None else max(0.0, 1.0 - self.tokens) / self.rate
