"""The life of an alert: pending → firing → resolved, as pure functions of alerts, detections and time.

One run has at most one open alert a family. `step` takes what the monitors say, `advance` what time does,
`end_of_backlog` what the end of the first read does. Each returns the latest alert of every family and
the transitions on the way there; a transition with an ``event`` is told to people, one without is only
stored. Source-down alerts live the same life under a `RunKey` without a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from wtwin_watch.model import (
    WEIGHT,
    Acknowledgement,
    Alert,
    AlertState,
    Detection,
    Event,
    Family,
    RunKey,
    Severity,
)

Alerts = Mapping[Family, Alert]
"""The latest alert of each family of one run, open or resolved."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient alerts are, in seconds.

    ``for_s``: a detection must last this long before its alert fires, and as long as it asks itself.
    ``cooldown_s``: after an alert is resolved, the same family of the same run stays pending this long,
    unless it comes back more severe; what is still wrong then fires.
    """

    for_s: float = 0.0
    cooldown_s: float = 600.0


class Reason(StrEnum):
    """Why an alert changed, or why nobody was told."""

    STARTED = "started"
    LASTED = "lasted"
    FIRST_SIGHT = "wrong at first sight"
    HISTORY = "history before first sight"
    OLD = "the run was already old at first sight"
    KIND = "kind changed"
    ENDED = "ended"
    BRIEF = "ended before it fired"
    COOLDOWN = "cooldown"
    STRONGER = "more evidence"
    NOTED = "information, which has no end"
    RUN_ENDED = "the run ended"
    GONE = "the run is gone"
    UNWATCHED = "the source is no longer watched"
    ACKNOWLEDGED = "acknowledged"
    UNACKNOWLEDGED = "no longer acknowledged"
    ACCEPTED = "accepted as the new normal"


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of an alert, why, and what people are told of it (None: nothing)."""

    alert: Alert
    reason: Reason
    at: float
    event: Event | None = None


def step(
    run: RunKey,
    alerts: Alerts,
    detections: Iterable[Detection],
    now: float,
    policy: Policy,
    new_id: Callable[[], str],
    quiet: bool = False,
) -> tuple[Alerts, list[Transition]]:
    """Apply ``detections`` in order. ``quiet``: they lie in the backlog, so nobody is told."""
    latest = dict(alerts)
    transitions: list[Transition] = []
    for detection in detections:
        alert = latest.get(detection.family)
        if alert is None or not alert.open:
            if not detection.active:
                continue
            begun = Alert(
                id=new_id(),
                run=run,
                family=detection.family,
                kind=detection.kind,
                severity=detection.severity,
                state=AlertState.PENDING,
                detection=detection,
                started_at=now,
                quiet=quiet,
            )
            changes = _begin(alert, begun, now, policy)
        elif detection.active:
            changes = _change(alert, detection, now)
        else:
            changes = _end(alert, detection, now)
        latest[detection.family] = changes[-1].alert
        transitions += changes
    return latest, transitions


def advance(alerts: Alerts, now: float, policy: Policy) -> tuple[Alerts, list[Transition]]:
    """Fire the pending alerts whose time has come."""
    latest = dict(alerts)
    transitions = []
    for family, known in alerts.items():
        if known.state is not AlertState.PENDING:
            continue
        alert = latest[family] = _in_time(known, now, policy)
        if now >= _fires_at(alert, policy):
            fired = _fire(alert, Reason.LASTED, now)
            latest[family] = fired.alert
            transitions.append(fired)
    return latest, transitions


def close(
    alerts: Alerts, families: Iterable[Family], outcome: str, reason: Reason, now: float
) -> tuple[Alerts, list[Transition]]:
    """End the open alerts of ``families`` for a ``reason`` that lies outside of what was detected.

    Who was told of them is told of their end; of one that is `Reason.NOTED` there is nothing to tell.
    """
    latest = dict(alerts)
    transitions = []
    for family in families:
        alert = latest.get(family)
        if alert is None or not alert.open:
            continue
        closed = latest[family] = replace(
            alert,
            state=AlertState.RESOLVED,
            resolved_at=now,
            resolved_step=alert.detection.step,
            outcome=outcome,
        )
        told = alert.state is AlertState.FIRING and not alert.quiet and reason is not Reason.NOTED
        transitions.append(Transition(closed, reason, now, Event.RESOLVED if told else None))
    return latest, transitions


def acknowledge(
    alerts: Alerts, alert_id: str, seen: Acknowledgement | None, now: float
) -> tuple[Alerts, list[Transition]]:
    """Note that somebody has seen an alert, or that it is to count as unseen again (None).

    Changes nothing else. An alert that isn't open, or that nobody is told of, is left as it is.
    """
    latest = dict(alerts)
    for family, alert in alerts.items():
        if alert.id != alert_id or not alert.open or alert.quiet:
            continue
        if alert.acknowledged == seen:
            continue
        noted = latest[family] = replace(alert, acknowledged=seen)
        reason = Reason.UNACKNOWLEDGED if seen is None else Reason.ACKNOWLEDGED
        told = alert.state is AlertState.FIRING
        return latest, [Transition(noted, reason, now, Event.ACKNOWLEDGED if told else None)]
    return latest, []


def end_of_backlog(
    alerts: Alerts, now: float, policy: Policy, old: bool
) -> tuple[Alerts, list[Transition]]:
    """End the quiet of the first read: what is wrong now is told, unless the run is ``old``."""
    latest = dict(alerts)
    transitions = []
    for family, alert in alerts.items():
        if not alert.open or not alert.quiet:
            continue
        if old:
            transitions.append(Transition(alert, Reason.OLD, now))
            continue
        waiting = replace(
            alert, quiet=False, state=AlertState.PENDING, fired_at=None, started_at=now
        )
        change = (
            _fire(waiting, Reason.FIRST_SIGHT, now)
            if now >= _fires_at(waiting, policy)
            else Transition(waiting, Reason.FIRST_SIGHT, now)
        )
        latest[family] = change.alert
        transitions.append(change)
    return latest, transitions


def _begin(previous: Alert | None, begun: Alert, now: float, policy: Policy) -> list[Transition]:
    if begun.quiet:
        fired = replace(begun, state=AlertState.FIRING, fired_at=now)
        return [Transition(fired, Reason.HISTORY, now)]
    until = _cooldown_end(previous, begun.severity, now, policy)
    if until > now:
        return [Transition(replace(begun, held_until=until), Reason.COOLDOWN, now)]
    if now >= _fires_at(begun, policy):
        return [_fire(begun, Reason.STARTED, now)]
    return [Transition(begun, Reason.STARTED, now)]


def _change(alert: Alert, detection: Detection, now: float) -> list[Transition]:
    worse = WEIGHT[detection.severity] > WEIGHT[alert.severity]
    changed = replace(
        alert,
        kind=detection.kind,
        severity=detection.severity,
        detection=detection,
        held_until=None if worse else alert.held_until,
    )
    same = (alert.kind, alert.severity) == (detection.kind, detection.severity)
    told = alert.state is AlertState.FIRING and not alert.quiet and not same
    return [Transition(changed, Reason.KIND, now, Event.CHANGED if told else None)]


def _end(alert: Alert, detection: Detection, now: float) -> list[Transition]:
    resolved = replace(
        alert,
        state=AlertState.RESOLVED,
        resolved_at=now,
        resolved_step=detection.step,
        outcome=detection.summary,
    )
    if alert.state is AlertState.PENDING:
        return [Transition(resolved, Reason.BRIEF, now)]
    return [Transition(resolved, Reason.ENDED, now, None if alert.quiet else Event.RESOLVED)]


def _fire(alert: Alert, reason: Reason, now: float) -> Transition:
    fired = replace(alert, state=AlertState.FIRING, fired_at=now, held_until=None)
    return Transition(fired, reason, now, Event.FIRING)


def _in_time(alert: Alert, now: float, policy: Policy) -> Alert:
    """A pending alert whose times a clock that was set back can't have put far ahead."""
    held_until = alert.held_until
    if held_until is not None:
        held_until = min(held_until, now + policy.cooldown_s)
    started_at = min(alert.started_at, now)
    if (started_at, held_until) == (alert.started_at, alert.held_until):
        return alert
    return replace(alert, started_at=started_at, held_until=held_until)


def _fires_at(alert: Alert, policy: Policy) -> float:
    patience_s = max(policy.for_s, alert.detection.patience_s)
    return max(alert.started_at + patience_s, alert.held_until or 0.0)


def _cooldown_end(previous: Alert | None, severity: Severity, now: float, policy: Policy) -> float:
    """Until when a new alert after ``previous`` waits; an episode nobody was told of starts no cooldown."""
    if (
        previous is None
        or previous.quiet
        or previous.fired_at is None
        or previous.resolved_at is None
    ):
        return 0.0
    if WEIGHT[severity] > WEIGHT[previous.severity]:
        return 0.0
    return min(previous.resolved_at, now) + policy.cooldown_s
