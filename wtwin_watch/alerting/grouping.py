"""Alerts that one receiver is told of together: what joins them, and when they are told. Pure functions.

Alerts of one source and family form a group when each begins soon after the last, or when their runs
belong to one sweep. A group bears the id of its first alert, its lead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wtwin_watch.alerting.telling import Timing
from wtwin_watch.model import WEIGHT, Alert, AlertState, Event, Family, Run, Severity

Key = tuple[str, str, str]
"""Source, family, and the group that the tracker puts the run into; the last may be empty."""


@dataclass(slots=True)
class Group:
    """Alerts that ``receiver`` is told of together. Times are unix seconds."""

    receiver: str
    id: str
    """Of the alert that leads it: the first one."""
    key: Key
    began_at: float
    joined_at: float
    """When the last alert joined."""
    members: dict[str, str | None] = field(default_factory=dict)
    """Alert ids in the order they joined, each with what was last told of it; None: nothing yet."""
    told_at: float | None = None
    told_severity: Severity | None = None
    next_at: float = 0.0
    """When there may be something to tell."""

    def not_after(self, now: float) -> None:
        """Let nothing of it lie in the future: the clock may have been set back."""
        self.began_at = min(self.began_at, now)
        self.joined_at = min(self.joined_at, now)
        if self.told_at is not None:
            self.told_at = min(self.told_at, now)

    def stored(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "key": list(self.key),
            "began_at": self.began_at,
            "joined_at": self.joined_at,
            "members": dict(self.members),
            "told_at": self.told_at,
            "told_severity": self.told_severity,
        }


def restored(receiver: str, id_: str, state: Mapping[str, Any]) -> Group:
    """Make the group that `Group.stored` described."""
    source, family, sweep = state["key"]
    severity = state["told_severity"]
    return Group(
        receiver,
        id_,
        (source, family, sweep),
        state["began_at"],
        state["joined_at"],
        dict(state["members"]),
        state["told_at"],
        None if severity is None else Severity(severity),
    )


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be told of a group, and from when on."""

    event: Event
    at: float


def key_of(alert: Alert, run: Run) -> Key:
    """What alerts have in common that may be told together."""
    return (alert.run.source, alert.family.value, run.group or "")


def joins(group: Group, now: float, timing: Timing) -> bool:
    """Whether an alert of the same key that begins ``now`` belongs to ``group``."""
    if timing.window_s <= 0.0:
        return False
    in_a_sweep = bool(group.key[2])
    return in_a_sweep or now - group.joined_at <= timing.window_s


def mark(alert: Alert) -> str:
    """What is told of an alert: it is told again where this differs."""
    if alert.state is AlertState.RESOLVED:
        return "resolved"
    return f"{alert.severity.value} {alert.kind}"


def gravest(alerts: Iterable[Alert]) -> Severity:
    """The highest severity among ``alerts``."""
    return max((alert.severity for alert in alerts), key=WEIGHT.__getitem__)


def is_note(alert: Alert) -> bool:
    """Whether it is information that is over as soon as it is told: there is no end of it to tell."""
    return alert.family is Family.STATE and alert.severity is Severity.INFO


def alive(group: Group, alerts: Sequence[Alert]) -> list[Alert]:
    """Those of ``alerts``, the members of ``group``, that fire, or are notes that weren't told yet."""
    return [
        alert
        for alert in alerts
        if alert.state is AlertState.FIRING or (is_note(alert) and group.members[alert.id] is None)
    ]


def due(group: Group, alerts: Sequence[Alert], now: float, timing: Timing) -> Due | None:
    """What is to be told of ``group`` next, whose members are now ``alerts``; None: nothing.

    None of a group that was told of: all is said until something changes, or it is over and
    there is nothing to say of that. None of one that wasn't: it was over before anybody heard of it.
    """
    living = alive(group, alerts)
    if group.told_at is None or group.told_severity is None:
        return _first(group, living, timing)
    if not living:
        return None if all(map(is_note, alerts)) else Due(Event.RESOLVED, now)
    changed = [alert for alert in alerts if group.members[alert.id] != mark(alert)]
    if changed:
        worse = WEIGHT[gravest(living)] > WEIGHT[group.told_severity]
        if worse or len(alerts) == 1:
            return Due(Event.CHANGED, now)
        urgent = any(
            group.members[alert.id] is None and alert.severity is Severity.CRITICAL
            for alert in changed
        )
        return Due(Event.CHANGED, group.told_at + (timing.wait_s if urgent else timing.interval_s))
    return _again(living, group.told_at, timing)


def _first(group: Group, living: Sequence[Alert], timing: Timing) -> Due | None:
    if not living:
        return None
    urgent = gravest(living) is Severity.CRITICAL
    return Due(Event.FIRING, group.began_at + (0.0 if urgent else timing.wait_s))


def _again(living: Sequence[Alert], told_at: float, timing: Timing) -> Due | None:
    if timing.repeat_s <= 0.0:
        return None
    at = told_at + timing.repeat_s
    if any(alert.acknowledged is None for alert in living):
        return Due(Event.REPEATED, at)
    ends = [a.acknowledged.until for a in living if a.acknowledged and a.acknowledged.until]
    return Due(Event.REPEATED, max(at, min(ends))) if ends else None


def as_one(group: Group, alerts: Sequence[Alert], lead: Alert) -> Alert:
    """``lead`` as it stands for all ``alerts``: firing while one of them is, as grave as the gravest."""
    living = alive(group, alerts)
    if living:
        return replace(
            lead,
            state=AlertState.FIRING,
            severity=gravest(living),
            resolved_at=None,
            resolved_step=None,
            outcome="",
        )
    if len(alerts) == 1:
        return lead
    ended = [alert.resolved_at for alert in alerts if alert.resolved_at is not None]
    return replace(lead, resolved_at=max(ended), outcome="None of these alerts fires any more.")
