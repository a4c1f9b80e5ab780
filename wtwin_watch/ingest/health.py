"""Whether a source can be read, and the alert about it: one a source, however many runs it hides.

`Health` decides, `HealthDesk` says and writes down what it decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.lifecycle import Policy, Transition
from wtwin_watch.errors import OwnershipLost, StoreError
from wtwin_watch.ingest.saving import Saver, new_id
from wtwin_watch.model import Alert, Detection, Family, Run, RunKey, Severity
from wtwin_watch.protocols import Clock
from wtwin_watch.store import SourceRecord, Store

log = structlog.get_logger("wtwin_watch.ingest")

NOTE_GAP_S = 5.0
WRITE_EVERY_S = 60.0


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


class HealthDesk:
    """Says how a source is doing to those who are told, to the log and to the store."""

    def __init__(
        self, name: str, adapter: str, health: Health, store: Store, saver: Saver, clock: Clock
    ) -> None:
        self._name = name
        self._adapter = adapter
        self._health = health
        self._store = store
        self._saver = saver
        self._clock = clock
        self._noted_at = -math.inf
        """When it was last written down."""

    def note(self, look_error: str | None, failing: Sequence[str], runs: int) -> None:
        """Take in what the last look said, and why some of its ``runs`` can't be read."""
        problem, partly = look_error, False
        if problem is None and failing:
            partly = len(failing) < runs
            problem = f"{len(failing)} of {runs} runs can't be read: {failing[0]}"
        was = self._health.problem
        moment = self._clock.monotonic()
        news = problem != was
        if problem and was and look_error is None and moment - self._noted_at < NOTE_GAP_S:
            news = False  # one run more or fewer: where thousands fail, each is no news
        if problem and news:
            log.warning("source can't be read", source=self._name, error=problem)
        elif was and not problem:
            log.info("source can be read again", source=self._name)
        transitions = self._health.note(problem, self._clock.time(), new_id, partly)
        if transitions:
            self._saver.add(Run(RunKey(self._name, ""), self._name), transitions)
            self._saver.write()
        if news or moment - self._noted_at >= WRITE_EVERY_S:
            self._noted_at = moment
            self._write_down()

    def _write_down(self) -> None:
        try:
            self._store.save_source(self._health.record(self._adapter))
        except OwnershipLost:
            raise
        except StoreError as error:
            log.error("state not saved, trying again", error=str(error), retry_in_s=WRITE_EVERY_S)
