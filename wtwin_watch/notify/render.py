"""A notification in words: what a person reads first, in the order it matters. Pure text, no markup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from wtwin_watch.model import (
    Acknowledgement,
    Alert,
    Companion,
    Detection,
    Event,
    Family,
    Message,
    Run,
)
from wtwin_watch.notify import together

ID_CHARS = 8
"""So much of an alert's id is enough for the commands that take one."""

_WHAT = {
    Family.LOSS: "loss",
    Family.NONFINITE: "loss",
    Family.PROGRESS: "progress",
    Family.STATE: "state",
    Family.SOURCE: "source",
    Family.RECEIVER: "receiver",
}

_TITLES = {
    "drift": "loss drifts up",
    "level_shift": "loss jumped up",
    "spike": "loss spiked",
    "divergence": "loss diverges",
    "transient": "loss was too high",
    "frozen": "loss is frozen",
    "zero": "loss is exactly 0",
    "overfit": "validation loss rises, loss falls",
    "nonfinite": "loss is not finite",
    "grad_nonfinite": "gradient norm is not finite",
    "loss_missing": "loss is no longer logged",
    "throughput_drop": "throughput dropped",
    "stalled": "no new step",
    "failed": "run failed",
    "crashed": "run crashed",
    "killed": "run killed",
    "preempted": "run preempted",
    "stagnation": "loss has stopped falling",
    "source_down": "source can't be read",
    "source_partly_down": "runs can't be read",
    "undelivered": "notifications are refused",
}


def message(
    event: Event, alert: Alert, run: Run, others: Sequence[Companion] = (), size: int = 1
) -> Message:
    """Put ``event`` of ``alert`` into words; it may stand for ``others``, ``size`` of them in all."""
    detection = alert.detection
    subject = what(detection.family, alert.kind)
    where = together.where(run, size)
    if event is Event.RESOLVED:
        title = f"Resolved: {subject} ({where})"
        summary = alert.outcome or "The alert is resolved."
    elif event is Event.ACKNOWLEDGED:
        seen = "Acknowledged" if alert.acknowledged else "No longer acknowledged"
        title = f"{seen}: {subject} ({where})"
        summary = _acknowledged(alert.acknowledged) or detection.summary
    elif event is Event.TEST:
        title = f"Test: this is what an alert looks like ({where})"
        summary = "This is a test; nothing is wrong."
    else:
        grave = alert.severity.value
        how = f"Still {grave}" if event is Event.REPEATED else grave.capitalize()
        title = f"{how}: {subject} ({where})"
        summary = detection.summary
        if size > 1:
            summary += " " + together.in_common(alert, run, others, size)
    facts = []
    if alert.family is not Family.RECEIVER:
        runs = ("Runs", together.listed(run, others, size))
        facts = [runs if size > 1 else ("Run", run.name), ("Source", run.key.source)]
    if run.project:
        facts.append(("Project", run.project))
    facts += [
        (label, text)
        for label, text in (
            ("Metric", detection.metric or ""),
            ("Since step", number(detection.onset_step)),
            ("Seen at step", number(detection.step)),
            ("Resolved at step", number(alert.resolved_step)),
            ("Observed", number(detection.observed)),
            ("Expected", number(detection.expected)),
            ("Excess", _excess(detection)),
            ("Last healthy step", number(detection.last_healthy_step)),
            ("Score W", number(detection.score)),
            ("Detector", detection.detector),
            ("Evidence", "; ".join(detection.evidence)),
            ("Last lines", "\n".join(detection.last_lines)),
            ("Alert", "" if event is Event.TEST else alert.id[:ID_CHARS]),
        )
        if text
    ]
    return Message(title, summary, tuple(facts), run.url)


def caption(detection: Detection, name: str) -> tuple[str, str]:
    """Say on a picture what was found, and below it in which run and how bad: two short lines."""
    headline = f"{detection.severity.value.capitalize()}: {what(detection.family, detection.kind)}"
    observed, expected = number(detection.observed), number(detection.expected)
    bad = f"{observed or 'no number'}, expected {expected}" if expected else ""
    excess = _excess(detection)
    return headline, " · ".join(filter(None, (bad, excess, name)))


def what(family: Family, kind: str) -> str:
    """Say what a kind of alert is, in a few words."""
    return _TITLES.get(kind, f"{_WHAT[family]}: {kind.replace('_', ' ')}")


def _acknowledged(seen: Acknowledgement | None) -> str:
    if seen is None:
        return ""
    until = f", quiet until {_moment(seen.until)}" if seen.until is not None else ""
    said = f": {seen.comment}" if seen.comment else "."
    return f"Seen by {seen.by or 'somebody'}{until}{said}"


def _moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "an unknown time"


def number(value: float | None) -> str:
    """A number as a person writes it: whole ones without a point, others to five digits."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("infinity" if value > 0 else "-infinity")
    if value == int(value) and abs(value) < 10**15:
        return str(int(value))
    return f"{value:.5g}"


def _excess(d: Detection) -> str:
    if d.observed is None or d.expected is None:
        return ""
    excess = d.observed - d.expected
    if not math.isfinite(excess):
        return ""
    # A cross-entropy is in nats; whose loss is another reads its unit there.
    unit = " nats" if d.family is Family.LOSS else ""
    in_sigma = f" ({excess / d.sigma:+.1f} sigma)" if d.sigma else ""
    return f"{excess:+.4g}{unit}{in_sigma}"
