"""Silences: for a time, nobody is told about the alerts that are meant. The monitors go on as always."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wtwin_watch.alerting.matching import Labels, Matcher, all_hold


@dataclass(frozen=True, slots=True)
class Silence:
    """Who asked for silence about what, from when to when (unix seconds), and why."""

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: float
    ends_at: float
    author: str
    comment: str
    created_at: float

    def active(self, now: float) -> bool:
        """Whether it holds now."""
        return self.starts_at <= now < self.ends_at

    @property
    def what(self) -> str:
        """Its matchers as they are written."""
        return " ".join(str(matcher) for matcher in self.matchers)


def silencing(silences: Iterable[Silence], labels: Labels, now: float) -> Silence | None:
    """The silence that covers an alert with ``labels`` now; of several the one that ends last."""
    covering = [s for s in silences if s.active(now) and all_hold(s.matchers, labels)]
    return max(covering, key=lambda silence: silence.ends_at, default=None)
