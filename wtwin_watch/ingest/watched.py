"""One watched run: its monitor, its alerts and where reading stands. Fed with batches, it decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.ingest import ending, stalls
from wtwin_watch.ingest.cadence import Cadence
from wtwin_watch.ingest.judging import Judging, Rules
from wtwin_watch.ingest.trouble import Trouble
from wtwin_watch.model import (
    Acknowledgement,
    Alert,
    AlertState,
    Batch,
    Cursor,
    Detection,
    Family,
    Run,
    RunStatus,
    Severity,
)
from wtwin_watch.monitor import curve
from wtwin_watch.monitor.curve import Curve
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.store import Happening, Progress

_LATER = {Reason.LASTED, Reason.FIRST_SIGHT}
LAST_ROWS_S = 60.0
LONE_ROW_S = 60.0
"""After so long a first row is taken to be whole, though no second one came to show it."""
RATE_KNOWN_AFTER_S = 3_600.0
STRONGER = 1.0
"""Evidence that has grown by so much is noted."""
_JUDGED_ANEW = "The whole log was judged anew, and as the detector is set now there is no alert."
_OF_ITS_POINTS = (Family.LOSS, Family.NONFINITE, Family.PROGRESS)


@dataclass(slots=True)
class WatchedRun:
    """A run in the hands of the engine, the only thread that touches it."""

    run: Run
    judging: Judging
    monitor: RunMonitor
    first_seen_at: float
    backlog: bool = True
    """What it logged before it was first seen, or before it counts, isn't read to its end yet."""
    cursor: Cursor | None = None
    alerts: dict[Family, Alert] = field(default_factory=dict)
    position: str | None = None
    step_name: str | None = None
    skipped: dict[str, int] = field(default_factory=dict)
    curve: Curve = field(default_factory=Curve)
    """What a picture of its loss shows."""
    continued: bool = False
    """It was known before this start, and the first fetch since then isn't done yet."""
    cadence: Cadence = field(default_factory=Cadence)
    attempt: int = 1
    anew: bool = False
    """Its history is read once more, so what happened in it is known already."""
    newborn: bool = False
    """It appeared while its source was being watched, so that its end is news."""
    status: RunStatus | None = None
    """What its tracker said when that was last judged."""
    status_since: float = 0.0
    untold: bool = False
    """Its status has changed, and nothing was made of that yet."""
    revived: bool = False
    """Its steps go on, whatever the tracker says."""
    last_lines: tuple[str, ...] = ()
    gone_since: float | None = None
    """When it was first found to be listed no longer."""
    step: float | None = None
    """Of the latest row, whatever was in it."""
    happened: list[Happening] = field(default_factory=list)
    """Not yet saved."""
    # polling
    fetching: bool = False
    """A fetch is in flight, or waits for its turn."""
    asking: bool = False
    """Its last lines were asked for."""
    fetching_version: str | None = None
    fetched_version: str | None = None
    trouble: Trouble = field(default_factory=Trouble)
    dirty: bool = False
    saved_at: float = 0.0
    moved_at: float = 0.0
    """When something last came of it, on the clock that never goes back."""

    def wants_fetch(self, now: float) -> bool:
        """Whether there may be something to read, and nothing forbids to look."""
        if self.fetching or now < self.trouble.retry_at:
            return False
        version = self.run.version
        return version is None or version != self.fetched_version or self.trouble.failures > 0

    def see(self, found: Run, now: float) -> bool:
        """Take in what the source lists of it; whether its status is news that is to be judged."""
        self.run = found
        if self.gone_since is not None:
            self.gone_since, self.dirty = None, True
        before = self.status
        if before is found.status:
            return False
        news = (
            self.newborn and found.status.ended
            if before is None
            else before.ended or found.status.ended
        )
        if news:
            was = "" if before is None else f"{before.value}, now "
            self._note("status", now, f"{was}{found.status.value}")
        self.untold |= news
        self.status, self.status_since, self.dirty = found.status, now, True
        self.revived, self.last_lines = False, ()
        return news

    # -- what its points say ---------------------------------------------------------------------

    def take(self, batch: Batch, now: float, monotonic: float, rules: Rules) -> list[Transition]:
        """Feed ``batch`` to the monitor and the alerts; returns what changed."""
        batch = rules.plan.without_excluded(batch)
        detections = []
        if batch.restart is not None:
            self._begin_attempt(batch.restart.step, batch.restart.reason, now)
            detections += self.monitor.restart(batch.restart.step, batch.restart.reason)
            self.curve.rewind(batch.restart.step)
        detections += self._take_steps(batch, now, monotonic, rules)
        detections += curve.feed(self.monitor, batch.points, self.curve)
        if self.backlog:
            carried = self._carried()
            detections = [d for d in detections if d.family not in carried]
        elif batch.points:
            detections = self._taken_up_again(detections)
        transitions = self._step(detections, now, rules)
        transitions += self._weigh(now)
        grown = self.monitor.points >= rules.patience.min_steps
        if self.backlog and not batch.more and grown:
            transitions += self._end_backlog(now, rules)
        transitions = self._as_it_is_now(transitions)
        self.dirty |= bool(transitions or batch.points) or batch.cursor != self.cursor
        self.cursor = batch.cursor
        self.position = batch.position or self.position
        self.step_name = batch.step_name or self.step_name
        for reason, count in batch.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
        return transitions

    def _take_steps(
        self, batch: Batch, now: float, monotonic: float, rules: Rules
    ) -> list[Detection]:
        """Take note of the steps in ``batch``, which may end a stall, and show that the run goes on."""
        steps, times, self.step = stalls.new_steps(batch.points, self.step)
        interval_s = rules.plan.interval_s
        if not steps:
            self.cadence.looked(monotonic, interval_s)
            return []
        self.moved_at = monotonic
        if self.backlog:
            self.cadence.recall(times)
            self.cadence.begin(monotonic)
            return []
        rewound = batch.restart is not None
        stalled, self.cadence.stalled = self.cadence.stalled, False
        gap = self.cadence.came(monotonic, interval_s, steps, rewound=rewound)
        found = []
        if stalled:
            found += self.monitor.note(stalls.SIGNAL, stalls.over(gap, self.step))
        # Not the rows that a run logged last, which come a little later than the news of its end.
        settled = now - self.status_since > max(LAST_ROWS_S, 2.0 * interval_s)
        if self.run.status.ended and not self.untold and not self.revived and settled:
            self.revived = True
            found.append(ending.goes_on(self.run, self.step))
        return found

    def _begin_attempt(self, step: float | None, reason: str, now: float) -> None:
        self.attempt += 1
        self.step = None
        where = "from its beginning" if step is None else f"from step {step:.15g}"
        self._note("attempt", now, f"attempt {self.attempt} {where}: {reason}", step)

    def _taken_up_again(self, detections: list[Detection]) -> list[Detection]:
        """Add what the monitor still finds wrong though its alert was ended for a reason outside of it."""
        told = {d.family for d in detections}
        return detections + [
            found
            for found in self.monitor.findings
            if found.family not in told and not self._open(found.family)
        ]

    def _end_backlog(self, now: float, rules: Rules) -> list[Transition]:
        carried = self._carried()
        activity = self.run.last_activity
        old = activity is not None and now - activity > rules.patience.old_after_s
        # What had ended before anybody watched is history, however lately it was.
        old |= self.run.status.ended and not self.newborn
        quiet = self._step(self.monitor.settle(), now, rules) if old and not carried else []
        self.backlog = self.anew = False
        alerts, told = lifecycle.end_of_backlog(self.alerts, now, rules.policy, old)
        over = [
            replace(
                alert.detection, active=False, step=self.monitor.last_step, summary=_JUDGED_ANEW
            )
            for family, alert in carried.items()
            if family in _OF_ITS_POINTS and family not in self.monitor.active
        ]
        alerts, ended = lifecycle.step(self.run.key, alerts, over, now, rules.policy, rules.new_id)
        self.alerts = dict(alerts)
        return [*quiet, *told, *ended]

    def _carried(self) -> dict[Family, Alert]:
        """Alerts that were open before the history is read anew: its end decides about them."""
        return {
            family: alert for family, alert in self.alerts.items() if alert.open and not alert.quiet
        }

    # -- what time and its tracker say -----------------------------------------------------------

    def judge(self, now: float, rules: Rules) -> list[Transition]:
        """Say what follows from how long it has been seen, and from what its tracker says of it.

        To be called when all there is was read.
        """
        if self.backlog:
            return []
        transitions: list[Transition] = []
        if self.over or self.cadence.idle_s >= LONE_ROW_S:
            transitions += self._step(self.monitor.settle(), now, rules)
        if self.untold:
            self.untold = False
            transitions += self._judge_status(now, rules)
        if self.over:
            self.cadence.blind()
            transitions += self._close_what_it_leaves(now)
        elif rules.plan.stalls:
            transitions += self._judge_progress(now, rules)
        self.dirty |= bool(transitions)
        return transitions

    def _judge_status(self, now: float, rules: Rules) -> list[Transition]:
        run, step = self.run, self.monitor.last_step
        if run.status.ended and run.status is not RunStatus.FINISHED:
            wait_s = rules.patience.failed_after_s
            found = ending.ended(run, step, self.last_lines, wait_s)
        else:
            found = ending.goes_on(run, step)
        return self._noted(self._step([found], now, rules), now)

    def _judge_progress(self, now: float, rules: Rules) -> list[Transition]:
        cadence, stall_after_s = self.cadence, rules.patience.stall_after_s
        if not cadence.stalled:
            if not cadence.stalls(stall_after_s, rules.plan.interval_s):
                return []
            cadence.stalled = True
            found = stalls.stalled(self.run.status, cadence, self.step)
        elif stalls.is_over(self.run.status, cadence):
            cadence.stalled, cadence.over = False, True
            found = stalls.taken_for_ended(self.step)
        else:
            return []
        return self._step(self.monitor.note(stalls.SIGNAL, found), now, rules)

    def _close_what_it_leaves(self, now: float) -> list[Transition]:
        """End the alerts about a run that is over for good, once that is sure."""
        state = self.alerts.get(Family.STATE)
        unsure = state is not None and state.state is AlertState.PENDING
        if self.run.status not in ending.FINAL or unsure:
            return []
        if self.cadence.stalled:
            self.cadence.stalled = False
            self.monitor.note(stalls.SIGNAL, stalls.over(self.cadence.idle_s, self.step))
        return self.close(_OF_ITS_POINTS, ending.why_closed(self.run), Reason.RUN_ENDED, now)

    @property
    def over(self) -> bool:
        """Whether it has ended, as its tracker says and its steps don't belie."""
        return self.run.status.ended and not self.revived

    def close(
        self, families: Iterable[Family], outcome: str, reason: Reason, now: float
    ) -> list[Transition]:
        """End what is open in ``families`` for a reason that lies outside of it."""
        alerts, transitions = lifecycle.close(self.alerts, families, outcome, reason, now)
        self.alerts = dict(alerts)
        self.dirty |= bool(transitions)
        return transitions

    # -- what people ask -------------------------------------------------------------------------

    def acknowledge(
        self, alert_id: str, seen: Acknowledgement | None, now: float
    ) -> list[Transition]:
        """Note that somebody has seen an alert, or hasn't (None)."""
        alerts, transitions = lifecycle.acknowledge(self.alerts, alert_id, seen, now)
        self.alerts = dict(alerts)
        self.dirty |= bool(transitions)
        return transitions

    def accept(
        self, family: Family, outcome: str, now: float, rules: Rules
    ) -> list[Transition] | None:
        """Take the present level as the new normal, which ends the alert about it with ``outcome``.

        None where nothing in ``family`` is a level. Where more is wrong than that, the alert goes on.
        """
        found = self.monitor.accept(family)
        if found is None:
            return None
        self.dirty = True
        if family in self.monitor.active:
            return self._step(found, now, rules)
        ended = self.close([family], outcome, Reason.ACCEPTED, now)
        for transition in ended:
            alert = replace(transition.alert, resolved_step=self.monitor.last_step)
            self.alerts[family] = alert
        return [replace(transition, alert=self.alerts[family]) for transition in ended]

    # -- what time brings ------------------------------------------------------------------------

    def advance(self, now: float, rules: Rules) -> list[Transition]:
        """Let time fire what is pending."""
        if self.backlog:
            return []
        alerts, transitions = lifecycle.advance(self.alerts, now, rules.policy)
        self.alerts = dict(alerts)
        transitions = self._noted(self._as_it_is_now(transitions), now)
        if transitions and self.over:
            transitions += self._close_what_it_leaves(now)
        return transitions

    def _step(self, found: Sequence[Detection], now: float, rules: Rules) -> list[Transition]:
        capped = [rules.plan.capped(one) for one in found]
        alerts, transitions = lifecycle.step(
            self.run.key, self.alerts, capped, now, rules.policy, rules.new_id, quiet=self.backlog
        )
        self.alerts = dict(alerts)
        return transitions

    def _weigh(self, now: float) -> list[Transition]:
        """Note that an alert has become stronger, since people may be told of it then."""
        alert, strength = self.alerts.get(Family.LOSS), self.monitor.rise_evidence
        if alert is None or not alert.open or alert.quiet or strength is None:
            return []
        before = alert.detection.strength
        if before is None or strength < before + STRONGER:
            return []
        alert = replace(alert, detection=replace(alert.detection, strength=strength))
        self.alerts[Family.LOSS] = alert
        return [Transition(alert, Reason.STRONGER, now)]

    def _noted(self, transitions: list[Transition], now: float) -> list[Transition]:
        """Information about its state has no end: once told, it is done."""
        state = self.alerts.get(Family.STATE)
        if (
            state is None
            or state.state is not AlertState.FIRING
            or state.severity is not Severity.INFO
        ):
            return transitions
        outcome = state.detection.summary
        return transitions + self.close([Family.STATE], outcome, Reason.NOTED, now)

    def _open(self, family: Family) -> bool:
        alert = self.alerts.get(family)
        return alert is not None and alert.open

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

    def _note(self, kind: str, now: float, text: str, step: float | None = None) -> None:
        if not (self.anew and self.backlog):
            self.happened.append(Happening(self.run.key, now, kind, text, step))
        self.dirty = True

    def points_a_second(self, now: float) -> float:
        """Losses a second that it logs, as far as that was watched: in the first hour it counts in part."""
        cadence = self.cadence
        if self.over or not cadence.awaited or cadence.spent_s <= 0.0:
            return 0.0
        watched = min(1.0, max(0.0, now - self.first_seen_at) / RATE_KNOWN_AFTER_S)
        return watched * cadence.counted / cadence.spent_s

    def progress(self) -> Progress:
        """How far it has come, for those who look."""
        monitor = self.monitor
        return Progress(
            self.run.key, monitor.points, monitor.last_step, monitor.last_loss, monitor.status
        )
