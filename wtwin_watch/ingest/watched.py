"""One watched run: its monitor, its alerts and where reading stands. Fed with batches, it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.lifecycle import Policy, Reason, Transition
from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Names
from wtwin_watch.model import Alert, Batch, Cursor, Family, Run
from wtwin_watch.monitor import curve
from wtwin_watch.monitor.curve import Curve
from wtwin_watch.monitor.options import DetectorOptions
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.store import Progress, RunRecord

_LATER = {Reason.LASTED, Reason.FIRST_SIGHT}
_JUDGED_ANEW = "The whole log was judged anew, and as the detector is set now there is no alert."


@dataclass(frozen=True, slots=True)
class Judging:
    """What a run is judged by: the names of its metrics and the settings of its detector."""

    names: Names
    detector: DetectorOptions

    def new_monitor(self) -> RunMonitor:
        """A monitor that has seen nothing. It keeps its latest state, for the run's curve."""
        return RunMonitor(self.names, self.detector, history_limit=1)


@dataclass(slots=True)
class WatchedRun:
    """A run in the hands of the engine, the only thread that touches it."""

    run: Run
    judging: Judging
    monitor: RunMonitor
    first_seen_at: float
    backlog: bool = True
    cursor: Cursor | None = None
    alerts: dict[Family, Alert] = field(default_factory=dict)
    position: str | None = None
    step_name: str | None = None
    skipped: dict[str, int] = field(default_factory=dict)
    curve: Curve = field(default_factory=Curve)
    """What a picture of its loss shows."""
    continued: bool = False
    """It was known before this start, and the first fetch since then isn't done yet."""
    # polling
    fetching: bool = False
    """A fetch is in flight."""
    fetching_version: str | None = None
    fetched_version: str | None = None
    failures: int = 0
    retry_at: float = 0.0
    error: str | None = None
    dirty: bool = False
    saved_at: float = 0.0

    def wants_fetch(self, now: float) -> bool:
        """Whether there may be something to read, and nothing forbids to look."""
        if self.fetching or now < self.retry_at:
            return False
        version = self.run.version
        return version is None or version != self.fetched_version or self.failures > 0

    def take(
        self,
        batch: Batch,
        now: float,
        policy: Policy,
        old_after_s: float,
        new_id: Callable[[], str],
    ) -> list[Transition]:
        """Feed ``batch`` to the monitor and the alerts; returns what changed."""
        detections = []
        if batch.restart is not None:
            detections += self.monitor.restart(batch.restart.step, batch.restart.reason)
            self.curve.rewind(batch.restart.step)
        detections += curve.feed(self.monitor, batch.points, self.curve)
        if self.backlog:
            carried = self._carried()
            detections = [d for d in detections if d.family not in carried]
        alerts, transitions = lifecycle.step(
            self.run.key, self.alerts, detections, now, policy, new_id, quiet=self.backlog
        )
        if self.backlog and not batch.more:
            self.backlog = False
            activity = self.run.last_activity
            old = activity is not None and now - activity > old_after_s
            alerts, told = lifecycle.end_of_backlog(alerts, now, policy, old)
            over = [
                replace(
                    alert.detection, active=False, step=self.monitor.last_step, summary=_JUDGED_ANEW
                )
                for family, alert in carried.items()
                if family not in self.monitor.active
            ]
            alerts, ended = lifecycle.step(self.run.key, alerts, over, now, policy, new_id)
            transitions += [*told, *ended]
        self.alerts = dict(alerts)
        transitions = self._as_it_is_now(transitions)
        self.dirty |= bool(transitions or batch.points) or batch.cursor != self.cursor
        self.cursor = batch.cursor
        self.position = batch.position or self.position
        self.step_name = batch.step_name or self.step_name
        for reason, count in batch.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
        return transitions

    def _carried(self) -> dict[Family, Alert]:
        """Alerts that were open before the history is read anew: its end decides about them."""
        return {
            family: alert for family, alert in self.alerts.items() if alert.open and not alert.quiet
        }

    def advance(self, now: float, policy: Policy) -> list[Transition]:
        """Let time fire what is pending."""
        if self.backlog:
            return []
        alerts, transitions = lifecycle.advance(self.alerts, now, policy)
        self.alerts = dict(alerts)
        return self._as_it_is_now(transitions)

    def _as_it_is_now(self, transitions: list[Transition]) -> list[Transition]:
        """Add the present loss to what fires long after it was detected."""
        loss, step = self.monitor.last_loss, self.monitor.last_step
        told = []
        for transition in transitions:
            alert = transition.alert
            if transition.reason in _LATER and alert.detection.step != step and loss is not None:
                now = f"now {loss:.5g} at step {step:.10g}"
                evidence = (*alert.detection.evidence, now)
                alert = replace(alert, detection=replace(alert.detection, evidence=evidence))
                self.alerts[alert.family] = alert
                told.append(replace(transition, alert=alert))
            else:
                told.append(transition)
        return told

    def progress(self) -> Progress:
        """How far it has come, for those who look."""
        monitor = self.monitor
        return Progress(
            self.run.key, monitor.points, monitor.last_step, monitor.last_loss, monitor.status
        )

    def record(self) -> RunRecord:
        """What a checkpoint keeps of it."""
        return RunRecord(
            run=self.run,
            cursor=self.cursor,
            monitor={
                "judging": asdict(self.judging),
                "state": self.monitor.snapshot(),
                "curve": self.curve.snapshot(),
            },
            backlog=self.backlog,
            first_seen_at=self.first_seen_at,
            position=self.position,
            step_name=self.step_name,
            skipped=dict(self.skipped),
            roles={role.value: name for role, name in self.monitor.roles.items()},
            points=self.monitor.points,
            last_step=self.monitor.last_step,
            last_loss=self.monitor.last_loss,
            judging=self.monitor.status,
            error=self.error,
        )


def restored(record: RunRecord, alerts: dict[Family, Alert], judging: Judging) -> WatchedRun:
    """A run as it was last saved.

    Raises `SnapshotError` where its monitor's state can't be read, or was made by other settings: its
    history then has to be read anew, so that what follows is what these settings say of the whole run.
    """
    monitor, seen = judging.new_monitor(), Curve()
    if record.monitor is not None:
        stored: Mapping[str, Any] = record.monitor
        if stored.get("judging") != asdict(judging):
            raise SnapshotError("the settings of its detector or the names of its metrics changed")
        monitor = RunMonitor.restore(stored["state"], judging.names, judging.detector)
        if "curve" in stored:
            seen = Curve.restore(stored["curve"])
    return WatchedRun(
        run=record.run,
        judging=judging,
        monitor=monitor,
        first_seen_at=record.first_seen_at,
        backlog=record.backlog,
        cursor=record.cursor,
        alerts=alerts,
        position=record.position,
        step_name=record.step_name,
        skipped=dict(record.skipped),
        curve=seen,
        continued=record.cursor is not None,
    )
