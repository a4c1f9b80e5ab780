"""An alert as Alertmanager has it: labels that name it, annotations that describe it, and two bodies.

`pushed` is what ``/api/v2/alerts`` takes, `webhook` what Alertmanager itself posts to its receivers.
An alert is one and the same there as long as its labels are, so nothing that moves stands in them, and where
one changes nevertheless (the severity, a run's name) the alert under the old labels is ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from wtwin_notifiers.text import block, line, shorten
from wtwin_notifiers.urls import http_url
from wtwin_notifiers.webhook_body import timestamp
from wtwin_watch.model import Alert, AlertState, Companion, Event, Family, Notification, Receipt

Labels = dict[str, str]

NEVER = "0001-01-01T00:00:00Z"
"""The end of an alert that fires still, in Alertmanager's own webhooks."""

_NAMES = {
    Family.LOSS: "TrainingLossAboveTrend",
    Family.NONFINITE: "TrainingNotFinite",
    Family.PROGRESS: "TrainingNotProgressing",
    Family.STATE: "TrainingRunFailed",
    Family.SOURCE: "TrainingSourceDown",
    Family.RECEIVER: "TrainingAlertsUndelivered",
}
_TEST = "WtwinWatchTest"
_GROUPED_BY = ("alertname", "run", "source")
_LABEL_CHARS = 500
_ANNOTATION_CHARS = 2000
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def labels(notification: Notification) -> Labels:
    """Name the alert. Empty values are left out, since to Alertmanager they are none."""
    alert, run = notification.alert, notification.run
    name = _TEST if notification.event is Event.TEST else _NAMES[alert.family]
    given = {
        "alertname": name,
        "severity": str(alert.severity),
        "family": str(alert.family),
        "source": alert.run.source,
        "run": alert.run.run,
        "run_name": run.name,
        "project": run.project,
    }
    cleaned = {label: shorten(line(value), _LABEL_CHARS) for label, value in given.items()}
    return {label: value for label, value in cleaned.items() if value}


def description(notification: Notification) -> dict[str, str]:
    """Return the annotations: title, summary and facts, under names that templates can use."""
    words = notification.message
    given = {
        "summary": words.title,
        "description": words.summary,
        "kind": notification.alert.kind,
        **{re.sub(r"[^a-z0-9]+", "_", label.lower()): value for label, value in words.facts},
    }
    cleaned = {
        name: shorten(block(value), _ANNOTATION_CHARS)
        for name, value in given.items()
        if re.fullmatch(r"[a-z][a-z0-9_]*", name)
    }
    return {name: value for name, value in cleaned.items() if value}


def known_labels(previous: Mapping[str, Any] | None) -> Labels | None:
    """Read the labels out of a receipt, None where there are none in it."""
    known = (previous or {}).get("labels")
    if not isinstance(known, dict) or "alertname" not in known:
        return None
    whole = all(isinstance(part, str) for pair in known.items() for part in pair)
    return dict(known) if whole else None


def receipt(notification: Notification) -> Receipt:
    """What is to be known when the next event of the alert is told: the labels it went by."""
    return (
        Receipt() if notification.event is Event.TEST else Receipt({"labels": labels(notification)})
    )


def pushed(
    notification: Notification, ends_at: float, now: float, *, renewed: bool = False
) -> list[dict[str, Any]]:
    """Return what is to be pushed. What fires ends at ``ends_at`` unless it is pushed again before.

    ``renewed``: it is told again as it was last told, so its labels are those of then.
    """
    alert = notification.alert
    known = known_labels(notification.previous)
    named = known if renewed and known else labels(notification)
    ends = _end(alert, now) if alert.state is AlertState.RESOLVED else ends_at
    entry = {
        "labels": named,
        "annotations": description(notification),
        "startsAt": timestamp(_start(alert)),
        "endsAt": timestamp(ends),
        **_generator(notification),
    }
    if known is None or known == named:
        return [entry]
    return [{**entry, "labels": known, "endsAt": timestamp(_end(alert, now))}, entry]


def webhook(notification: Notification) -> bytes:
    """Return the body of Alertmanager's webhook, version 4: the same bytes at every retry."""
    alert = notification.alert
    named, known = labels(notification), known_labels(notification.previous)
    over = alert.state is AlertState.RESOLVED
    alerts = [_told(notification, named, resolved=over)]
    if known is not None and known != named:
        alerts.insert(0, _told(notification, known, resolved=True))
    alerts += [_companion(notification, other) for other in notification.others]
    common = {
        name: value
        for name, value in named.items()
        if all(a["labels"].get(name) == value for a in alerts)
    }
    group = {name: named[name] for name in _GROUPED_BY if name in named}
    quoted = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in group.items()
    )
    payload = {
        "receiver": line(notification.receiver),
        "status": "resolved" if over else "firing",
        "alerts": alerts,
        "groupLabels": group,
        "commonLabels": common,
        "commonAnnotations": description(notification),
        "externalURL": _address(notification.message.link),
        "version": "4",
        "groupKey": f"{{}}:{{{quoted}}}",
        "truncatedAlerts": 0,
    }
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def _told(notification: Notification, named: Labels, *, resolved: bool) -> dict[str, Any]:
    alert = notification.alert
    end = timestamp(_end(alert, notification.created_at)) if resolved else NEVER
    return {
        "status": "resolved" if resolved else "firing",
        "labels": named,
        "annotations": description(notification),
        "startsAt": timestamp(_start(alert)),
        "endsAt": end,
        "generatorURL": _address(notification.message.link),
        "fingerprint": fingerprint(named),
    }


def _companion(notification: Notification, other: Companion) -> dict[str, Any]:
    """An alert that is told together with the one that the notification is about."""
    alert = other.alert
    own = replace(notification, alert=alert, run=other.run, others=())
    told = _told(own, labels(own), resolved=alert.state is AlertState.RESOLVED)
    said = shorten(block(alert.outcome or alert.detection.summary), _ANNOTATION_CHARS)
    link = _address(other.run.url)
    return {**told, "annotations": {"summary": said, "kind": alert.kind}, "generatorURL": link}


def fingerprint(named: Labels) -> str:
    """Name a set of labels as Alertmanager does: 64-bit FNV-1a of its names and values, in order."""
    total = _FNV_OFFSET
    for name, value in sorted(named.items()):
        for byte in name.encode() + b"\xff" + value.encode() + b"\xff":
            total = ((total ^ byte) * _FNV_PRIME) % 2**64
    return f"{total:016x}"


def _start(alert: Alert) -> float:
    return _a_date(alert.fired_at if alert.fired_at is not None else alert.started_at)


def _end(alert: Alert, now: float) -> float:
    """When it ended, never before its start: Alertmanager refuses that."""
    return max(_a_date(alert.resolved_at if alert.resolved_at is not None else now), _start(alert))


def _a_date(seconds: float) -> float:
    try:
        datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return 0.0
    return seconds


def _generator(notification: Notification) -> dict[str, str]:
    """The link to the run, where it is one: Alertmanager refuses a push with a generator URL that isn't."""
    link = _address(notification.message.link)
    return {"generatorURL": link} if link else {}


def _address(url: str | None) -> str:
    try:
        return http_url(url or "").geturl()
    except ValueError:
        return ""
