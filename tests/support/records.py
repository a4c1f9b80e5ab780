"""Alerts, runs and outbox entries as tests need them."""

import time
from dataclasses import replace

from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.model import Alert, AlertState, Detection, Event, Family, Run, RunKey, Severity
from wtwin_watch.store import Checkpoint, OutboxEntry, RunRecord

RUN = Run(RunKey("logs", "a.csv"), "a")
DRIFT = Detection(
    Family.LOSS,
    "drift",
    True,
    Severity.WARNING,
    "the loss is 0.40 above its forecast",
    "classic",
    metric="loss",
    step=2210.0,
    onset_step=2205.0,
    last_healthy_step=2204.0,
    observed=1.9,
    expected=1.5,
    sigma=0.02,
    score=18.0,
)


def make_alert(id_="alert-1", *, run=RUN, **changes):
    alert = Alert(
        id=id_,
        run=run.key,
        family=Family.LOSS,
        kind="drift",
        severity=Severity.WARNING,
        state=AlertState.FIRING,
        detection=DRIFT,
        started_at=1000.0,
        fired_at=1000.0,
    )
    return replace(alert, **changes)


def make_entry(id_, receiver="oncall", *, alert=None, event=Event.FIRING, run=RUN):
    at = time.time()
    return OutboxEntry(
        id=id_,
        receiver=receiver,
        event=event,
        alert=alert or make_alert(),
        run=run,
        created_at=at,
        next_at=at,
    )


def make_checkpoint(*entries, run=RUN, cursor=None, alert=None, **record):
    transitions = (
        (Transition(alert, Reason.STARTED, alert.started_at, Event.FIRING),) if alert else ()
    )
    return Checkpoint(
        record=RunRecord(
            run=run,
            cursor=cursor,
            monitor=None,
            backlog=False,
            first_seen_at=1.0,
            **record,
        ),
        transitions=transitions,
        notifications=entries,
    )
