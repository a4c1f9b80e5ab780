"""A run that can't be read or judged: when it is tried again, and from when on it is set aside."""

from __future__ import annotations

from dataclasses import dataclass, field

from wtwin_watch.backoff import delay_s

BACKOFF_CAP_S = 300.0
SET_ASIDE_AFTER = 5
"""So many failures in a row, while other runs of the source are read, and the run is set aside."""
ASIDE_S = 1_800.0
MOST_HUNG = 2
"""A run of which so many fetches hang isn't fetched until one of them ends."""


@dataclass(slots=True)
class Trouble:
    """What went wrong with one run, if anything. Times are of the clock that never goes back."""

    failures: int = 0
    """In a row."""
    reason: str | None = None
    retry_at: float = 0.0
    aside: bool = False
    hung: list[int] = field(default_factory=list)
    """Tickets of fetches that were given up."""

    def fail(
        self,
        reason: str,
        now: float,
        interval_s: float,
        chance: float,
        *,
        others_are_read: bool,
        retry_after_s: float | None = None,
    ) -> None:
        """Note a failure and decide when to try again."""
        self.failures += 1
        self.reason = reason
        self.aside = others_are_read and self.failures >= SET_ASIDE_AFTER
        delay = (
            delay_s(1, ASIDE_S, ASIDE_S, chance)
            if self.aside
            else delay_s(self.failures, interval_s, BACKOFF_CAP_S, chance)
        )
        self.retry_at = now + max(delay, min(retry_after_s or 0.0, ASIDE_S))

    def over(self) -> None:
        """It could be read."""
        self.failures, self.reason, self.aside = 0, None, False

    @property
    def shown(self) -> str | None:
        """What a person is told about it."""
        if self.reason is None or not self.aside:
            return self.reason
        return (
            f"set aside after {self.failures} failures in a row, tried again within"
            f" {ASIDE_S / 60:.0f} minutes: {self.reason}"
        )
