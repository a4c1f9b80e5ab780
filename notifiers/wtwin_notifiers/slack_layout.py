"""A notification as a Slack message: Block Kit blocks and the text that stands for them in a notification.

Everything a run supplied is escaped and cut to Slack's limits, so that no name can ping anybody, form a
link or get the message refused. Texts are plain text where that will do; the rest is ``verbatim``
mrkdwn, in which Slack links no names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from wtwin_notifiers import text
from wtwin_notifiers.urls import http_url
from wtwin_watch.model import Alert, Event, Notification, Severity

# Slack's own limits are 150 a header, 3000 a section, 2000 a field and 10 fields a section. All blocks
# together are refused above an unpublished number of characters; 11,341 were refused in one report
# (bolt-js#2867), so the sum stays below 10,000: 150 + 3000 + 1500 + 4500 + 500.
_HEADER_CHARS = 150
_SECTION_CHARS = 3000
_LINK_CHARS = 1500
_FIELD_CHARS = 1000
_ALL_FIELDS_CHARS = 4500
_NAME_CHARS = 100
_FIELDS_A_SECTION = 10
_TEXT_CHARS = 3000

_LISTED_CHARS = 140
_LINES_A_SECTION = 15
_MOST_LISTED = 45
"""45 lines of 140 characters and a sign are three sections of less than 3000, 7,000 characters in all."""
_TOGETHER = (
    "They came faster than Slack takes messages. What becomes of each is told in the thread."
)

_MENTION = {"U": "@", "W": "@", "S": "!subteam^"}
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SIGNS = {Severity.CRITICAL: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}

Payload = dict[str, Any]


def message(
    notification: Notification, *, late: bool = False, mention: Sequence[str] = ()
) -> Payload:
    """Lay out a notification as it stands in the channel: ``text`` and ``blocks``.

    ``late``: it tells the end of an alert whose beginning never arrived, and says so.
    ``mention``: who is to be notified: ``here``, ``channel``, ``everyone``, ids of people or groups.
    """
    words = notification.message
    title = text.line(words.title) or "wtwin-watch"
    blocks: list[Payload] = [
        {
            "type": "header",
            "text": _plain(f"{_sign(notification)} {title}", _HEADER_CHARS),
        }
    ]
    if summary := text.block(words.summary):
        blocks.append({"type": "section", "text": _plain(summary, _SECTION_CHARS)})
    blocks += _mentions(mention)
    blocks += _fields(words.facts)
    if link := _link(words.link):
        blocks.append({"type": "section", "text": link})
    context = _context(notification, late=late)
    blocks.append({"type": "context", "elements": [context]})
    return {"text": _fallback(notification), "blocks": blocks}


def reply(notification: Notification, *, mention: Sequence[str] = ()) -> Payload:
    """Lay out a change of an alert as one paragraph for the thread under its message."""
    words = notification.message
    paragraph = "\n".join(filter(None, (text.line(words.title), text.block(words.summary))))
    section = {"type": "section", "text": _plain(paragraph or "changed", _SECTION_CHARS)}
    return {"text": _fallback(notification), "blocks": [section, *_mentions(mention)]}


def together(notifications: Sequence[Notification], *, mention: Sequence[str] = ()) -> Payload:
    """Lay out alerts that share one message: how many, a line for each, the gravest first."""
    order = list(Severity)
    graded = sorted(notifications, key=lambda n: order.index(n.alert.severity))
    title = f"{_sign(graded[0])} {sum(one.size for one in graded)} alerts"
    lines = [
        f"{_sign(one)} {escape(text.line(one.message.title) or 'wtwin-watch', _LISTED_CHARS)}"
        for one in graded[:_MOST_LISTED]
    ]
    if len(graded) > _MOST_LISTED:
        lines.append(f"… and {len(graded) - _MOST_LISTED} more")
    blocks: list[Payload] = [
        {"type": "header", "text": _plain(title, _HEADER_CHARS)},
        *_mentions(mention),
    ]
    for start in range(0, len(lines), _LINES_A_SECTION):
        listed = "\n".join(lines[start : start + _LINES_A_SECTION])
        blocks.append({"type": "section", "text": _as_plain(listed)})
    blocks.append({"type": "context", "elements": [_mrkdwn(_TOGETHER)]})
    return {"text": f"{title}: {lines[0]} …", "blocks": blocks}


def escape(raw: str, limit: int) -> str:
    """Escape ``raw`` for Slack and cut it to ``limit`` characters, never in the middle of an entity.

    Counts UTF-16 units, the larger of the ways in which Slack may count.
    """
    pieces = [_ENTITIES.get(char, char) for char in raw[: limit + 1]]
    if sum(map(_units, pieces)) <= limit:
        return "".join(pieces)
    kept, room = [], limit - 1
    for piece in pieces:
        room -= _units(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept) + "…"


def _units(piece: str) -> int:
    return len(piece) + sum(char > "\uffff" for char in piece)


def _plain(raw: str, limit: int) -> Payload:
    return _as_plain(escape(raw, limit))


def _as_plain(escaped: str) -> Payload:
    return {"type": "plain_text", "text": escaped, "emoji": False}


def _mentions(mention: Sequence[str]) -> list[Payload]:
    if not mention:
        return []
    marked = [f"<{_MENTION.get(who[0], '!')}{who}>" for who in mention]
    return [{"type": "section", "text": _mrkdwn(" ".join(marked))}]


def _mrkdwn(markup: str) -> Payload:
    return {"type": "mrkdwn", "text": markup, "verbatim": True}


def _sign(notification: Notification) -> str:
    if notification.event is Event.RESOLVED:
        return "✅"
    if notification.event is Event.TEST:
        return "🔔"
    if notification.event is Event.ACKNOWLEDGED and notification.alert.acknowledged is not None:
        return "👀"
    if notification.event is Event.DIGEST:
        return "📋"
    return _SIGNS[notification.alert.severity]


def _fallback(notification: Notification) -> str:
    words = notification.message
    parts = (text.line(words.title), text.line(words.summary))
    told = ": ".join(filter(None, parts)) or "wtwin-watch"
    return escape(f"{_sign(notification)} {told}", _TEXT_CHARS)


def _fields(facts: tuple[tuple[str, str], ...]) -> list[Payload]:
    fields: list[Payload] = []
    room = _ALL_FIELDS_CHARS
    for label, value in facts:
        head = escape(text.line(label) or "-", 100)
        body = escape(text.block(value) or "-", _FIELD_CHARS - len(head) - 3)
        markup = f"*{head}*\n{body}"
        room -= _units(markup)
        if room < 0:
            break
        fields.append(_mrkdwn(markup))
    return [
        {"type": "section", "fields": fields[start : start + _FIELDS_A_SECTION]}
        for start in range(0, len(fields), _FIELDS_A_SECTION)
    ]


def _link(url: str | None) -> Payload | None:
    """Link to the run, where ``url`` is one for a browser and short enough to keep whole."""
    try:
        address = http_url(url or "").geturl()
    except ValueError:
        return None
    for char, code in (("<", "%3C"), (">", "%3E"), ("|", "%7C"), ("&", "&amp;")):
        address = address.replace(char, code)
    return None if len(address) > _LINK_CHARS - 20 else _mrkdwn(f"<{address}|Open the run>")


def _context(notification: Notification, *, late: bool) -> Payload:
    alert = notification.alert
    if notification.event is Event.DIGEST:
        return _mrkdwn(f"from {_date(alert.started_at)} to {_date(alert.resolved_at or 0.0)}")
    parts = [f"{alert.severity} {alert.family} alert"]
    if alert.fired_at is not None:
        parts.append(f"fired {_date(alert.fired_at)}")
    if (seen := alert.acknowledged) is not None:
        by = escape(text.line(seen.by), _NAME_CHARS) or "somebody"
        parts.append(f"seen by {by} {_date(seen.at)}")
    if alert.resolved_at is not None:
        parts.append(f"*resolved* {_date(alert.resolved_at)}")
    if late:
        parts.append("no earlier message about it was delivered")
    return _mrkdwn(" · ".join(parts))


def _date(seconds: float) -> str:
    """A time that Slack shows in each reader's own time zone."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"
    return f"<!date^{int(seconds)}^{{date_short_pretty}} {{time}}|{moment:%Y-%m-%d %H:%M} UTC>"


def metadata(notification: Notification, *, others: Sequence[Notification] = ()) -> Payload:
    """What marks the message for programs: the idempotency key, and which alert it is about.

    ``others`` share the message; their keys are listed with it.
    """
    alert: Alert = notification.alert
    told: dict[str, Any] = {
        "key": text.shorten(notification.id, 255),
        "alert": text.shorten(alert.id, 255),
        "fingerprint": alert.fingerprint,
        "event": str(notification.event),
    }
    if others:
        told["keys"] = [text.shorten(one.id, 64) for one in (notification, *others)]
    return {"event_type": "wtwin_alert", "event_payload": told}
