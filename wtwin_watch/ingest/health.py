"""Whether a source can be read, and the alert about it: one a source, however many runs it hides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.lifecycle import Policy, Transition
from wtwin_watch.model import Alert, Detection, Family, RunKey, Severity
from wtwin_watch.store import SourceRecord


@dataclass(slots=True)
class Health:
    """How a source is doing. ``problem`` None means that it answers."""

    name: str
    policy: Policy
    down_after_s: float
    problem: str | None = None
    partly: bool = False
    """Some runs can't be read; the source as such answers."""
    down_since: float | None = None
    seen_at: float | None = None
    alerts: dict[Family, Alert] = field(default_factory=dict)

    def note(
        self, problem: str | None, now: float, new_id: Callable[[], str], partly: bool = False
    ) -> list[Transition]:
        """Take in how the last look went; returns what changed about the source's alert.

        ``partly``: the problem is some runs' own, and the others are watched.
        """
        patient = replace(self.policy, for_s=self.down_after_s)
        if problem is None:
            self.seen_at, self.down_since = now, None
        elif self.down_since is None:
            self.down_since = now
        changed = (problem is None, partly) != (self.problem is None, self.partly)
        known = self.alerts.get(Family.SOURCE)
        self.problem, self.partly = problem, partly
        moved: list[Transition] = []
        if changed or (known is not None and known.open and problem is None):
            alerts, moved = lifecycle.step(
                RunKey(self.name, ""), self.alerts, [self._detection(problem)], now, patient, new_id
            )
            self.alerts = dict(alerts)
        if problem is not None:
            alerts, fired = lifecycle.advance(self.alerts, now, patient)
            self.alerts = dict(alerts)
            moved += fired
        return moved

    def record(self, adapter: str) -> SourceRecord:
        """What the store keeps of it."""
        return SourceRecord(self.name, adapter, self.seen_at, self.problem, self.down_since)

    def _detection(self, problem: str | None) -> Detection:
        if problem is None:
            summary = f"All of the source {self.name} can be read again."
        elif self.partly:
            summary = f"Part of the source {self.name} is not watched: {problem}"
        else:
            summary = (
                f"The source {self.name} can't be read, so its runs are not watched: {problem}"
            )
        return Detection(
            family=Family.SOURCE,
            kind="source_partly_down" if self.partly else "source_down",
            active=problem is not None,
            severity=Severity.WARNING if self.partly else Severity.CRITICAL,
            summary=summary,
            detector="poll",
        )
