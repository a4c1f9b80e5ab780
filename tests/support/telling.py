"""A dispatcher with a clock, and alerts that begin, get graver and end: what tests of telling share."""

from dataclasses import replace

from wtwin_watch.alerting.dispatch import Dispatcher, Remembered, Subject
from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.alerting.telling import Timing, everybody
from wtwin_watch.model import (
    Acknowledgement,
    Alert,
    AlertState,
    Detection,
    Event,
    Family,
    Run,
    RunKey,
    Severity,
)

TIMING = Timing(wait_s=5.0, interval_s=300.0, window_s=600.0, repeat_s=86_400.0)
NOW = 1_000_000.0


def run_named(name, source="logs", **facts):
    return Run(RunKey(source, name), name, **facts)


class Telling:
    """Plays alerts to a dispatcher. ``told`` is (receiver, event, lead's run, size) in order."""

    def __init__(self, telling=None):
        self.telling = telling or everybody("team", timing=TIMING)
        self.now = NOW
        self.alerts = {}
        self.runs = {}
        self.told = []
        self.messages = []
        self.decisions = []
        self.kept = {}
        self.dispatcher = Dispatcher(self.telling)

    def fire(
        self,
        name,
        family=Family.LOSS,
        severity=Severity.WARNING,
        kind="drift",
        strength=None,
        **facts,
    ):
        """A run's alert begins to fire; returns its id."""
        run = self.runs[name] = run_named(name, **facts)
        detection = Detection(
            family, kind, True, severity, f"{kind} of {name}", "test", strength=strength
        )
        id_ = f"{name or 'source'}-{family.value}-{len(self.alerts)}"
        alert = Alert(
            id_,
            run.key,
            family,
            kind,
            severity,
            AlertState.FIRING,
            detection,
            self.now,
            fired_at=self.now,
        )
        self._happen(alert, run, Reason.STARTED, Event.FIRING)
        return id_

    def change(self, id_, **changes):
        alert = replace(self.alerts[id_], **changes)
        self._happen(alert, self._run(alert), Reason.KIND, Event.CHANGED)

    def end(self, id_, outcome="it is over", reason=Reason.ENDED):
        alert = replace(
            self.alerts[id_], state=AlertState.RESOLVED, resolved_at=self.now, outcome=outcome
        )
        event = None if reason is Reason.NOTED else Event.RESOLVED
        self._happen(alert, self._run(alert), reason, event)

    def acknowledge(self, id_, until=None):
        alert = replace(self.alerts[id_], acknowledged=Acknowledgement("sam", self.now, until))
        self._happen(alert, self._run(alert), Reason.ACKNOWLEDGED, Event.ACKNOWLEDGED)

    def unacknowledge(self, id_):
        alert = replace(self.alerts[id_], acknowledged=None)
        self._happen(alert, self._run(alert), Reason.UNACKNOWLEDGED, Event.ACKNOWLEDGED)

    def silence(self, *silences):
        self.dispatcher.silence(silences)

    def wait(self, seconds, at_once=False, every=None):
        """Let time pass, in steps of half a second or as long as ``every`` says."""
        every = every or 0.5
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + every)
            self._note(self.dispatcher.advance(self.now, at_once=at_once))

    def restart(self, telling=None):
        """Forget everything but what was to be kept, as a process that is killed and started again."""
        subjects = [Subject(alert, self._run(alert)) for alert in self.alerts.values()]
        firing = [s for s in subjects if s.firing]
        kept_ids = {
            id_ for kept in self.kept.values() for id_ in (kept.id, *kept.state.get("members", ()))
        }
        subjects = [s for s in subjects if s in firing or s.alert.id in kept_ids]
        told = [
            (receiver, message.alert.id)
            for (receiver, event, *_), message in zip(self.told, self.messages, strict=True)
            if event == "firing"
        ]
        self.telling = telling or self.telling
        remembered = Remembered(subjects, list(self.kept.values()), told)
        self.dispatcher = Dispatcher(self.telling, remembered)

    def choices(self, id_):
        """(receiver, choice) of every decision about an alert, in order."""
        return [(d.receiver, d.choice.name) for d in self.decisions if d.alert_id == id_]

    def _run(self, alert):
        return self.runs[alert.run.run]

    def _happen(self, alert, run, reason, event):
        self.alerts[alert.id] = alert
        transition = Transition(alert, reason, self.now, event)
        self._note(self.dispatcher.take(run, [transition], self.now))

    def _note(self, outcome):
        for told in outcome.told:
            self.told.append((told.receiver, told.event.value, told.run.name, told.size))
            self.messages.append(told)
        self.decisions += outcome.decisions
        for change in outcome.groups:
            place = (change.receiver, change.id)
            if change.state is None:
                self.kept.pop(place, None)
            else:
                self.kept[place] = change
