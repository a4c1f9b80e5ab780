"""Notifications to send in tests of notifiers: one alert of one run, at each point of its life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wtwin_watch.model import (
    Acknowledgement,
    Alert,
    AlertState,
    Detection,
    Event,
    Family,
    Message,
    Notification,
    Run,
    RunKey,
    Severity,
)

STARTED = 1_760_000_000.0  # 2025-10-09 08:53:20 UTC

# Names that would ping, link, break markup, steer a terminal or break an encoding if left as they are.
HOSTILE_NAMES = [
    "<!channel>",
    "@here <!here|x> @channel @everyone",
    "<https://evil.example|Your bank>",
    "a&b<c>d &amp; &lt;",
    "*bold* _it_ ~no~ `code` ```block``` >quote",
    "\x1b]0;owned\x07\x1b[31mred\x1b[2J",
    "line one\nline two\r\nthree\x00\x85\u2028end",
    "\u202egnp.exe \u2066x",
    "caf\udce9",
    "🔥" * 200,
    "&" * 5000,
    "x" * 100_000,
    "",
    " ",
]


def digest(name: str = "gpt-small-lr3e4", *, id: str = "digest-01") -> Notification:
    """Make a notification of what happened on a day."""
    given = notification(Event.DIGEST, name=name, id=id)
    alert = replace(
        given.alert,
        id=id,
        kind="digest",
        severity=Severity.INFO,
        state=AlertState.RESOLVED,
        started_at=STARTED,
        resolved_at=STARTED + 86_400,
    )
    words = Message(
        title="Digest: 1 alert in 12 runs",
        summary=f"warning: loss drifts up ({name}), 2h10m, fires still",
        facts=(("Runs watched", "12, 3 of them new"), ("Not told", "4 silenced")),
    )
    return replace(given, alert=alert, message=words)


def notification(
    event: Event = Event.FIRING,
    *,
    name: str = "gpt-small-lr3e4",
    message: Message | None = None,
    previous: Mapping[str, Any] | None = None,
    id: str = "ntf_01",
    url: str | None = "https://tracker.example/run/a1?tab=charts&x=1",
    **seen: Any,
) -> Notification:
    """Make a notification of ``event``; ``seen`` are fields of its detection."""
    key = RunKey("cluster", "a1")
    detection = Detection(
        family=Family.LOSS,
        kind="drift",
        active=True,
        severity=Severity.CRITICAL,
        summary="loss is 0.31 above what this run's own trend expects",
        detector="trend",
        metric="train/loss",
        step=1500.0,
        onset_step=1200.0,
        last_healthy_step=1190.0,
        observed=2.81,
        expected=2.5,
        sigma=0.04,
        score=7.75,
        evidence=("trend 7.8 sigma", "wtwin 5.1 sigma"),
    )
    resolved = event is Event.RESOLVED
    alert = Alert(
        id="alr_01",
        run=key,
        family=Family.LOSS,
        kind="drift",
        severity=Severity.CRITICAL,
        state=AlertState.RESOLVED if resolved else AlertState.FIRING,
        detection=replace(detection, **seen),
        started_at=STARTED,
        fired_at=STARTED + 60,
        resolved_at=STARTED + 600 if resolved else None,
        resolved_step=1900.0 if resolved else None,
        outcome="back to normal after 700 steps" if resolved else "",
        acknowledged=(
            Acknowledgement("ada", STARTED + 120) if event is Event.ACKNOWLEDGED else None
        ),
    )
    begun = {Event.RESOLVED: "Resolved", Event.ACKNOWLEDGED: "Acknowledged"}.get(event, "Critical")
    words = message or Message(
        title=f"{begun}: loss drifts up ({name})",
        summary=alert.outcome or detection.summary,
        facts=(("Run", name), ("Observed", "2.81"), ("Expected", "2.5")),
        link=url,
    )
    return Notification(
        id=id,
        receiver="team",
        event=event,
        alert=alert,
        run=Run(key, name, project="llm", url=url),
        message=words,
        created_at=STARTED + 60,
        previous=previous,
    )
