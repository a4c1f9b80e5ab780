"""A webhook's body and signature, as Standard Webhooks 1.0 has them; `docs/receivers.md` shows the schema."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wtwin_notifiers.text import encodable, shorten
from wtwin_watch.model import Companion, Event, Notification

SCHEMA_VERSION = 1
"""Grows when a field changes its meaning or goes; a new field alone doesn't change it."""

_TEXT_CHARS = 4000
_EVIDENCE = 50
_KEY_BYTES = range(24, 65)


def body(notification: Notification) -> bytes:
    """Return the JSON of a notification: UTF-8, the same bytes at every retry."""
    digest = notification.event is Event.DIGEST
    payload = {
        "type": "run.digest" if digest else f"run.alert.{notification.event}",
        "timestamp": timestamp(notification.created_at),
        "data": _digest(notification) if digest else _data(notification),
    }
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _digest(notification: Notification) -> Mapping[str, Any]:
    period, words = notification.alert, notification.message
    return {
        "version": SCHEMA_VERSION,
        "from": timestamp(period.started_at),
        "to": timestamp(period.resolved_at),
        "title": _text(words.title),
        "summary": _text(words.summary),
        "facts": {str(_text(label)): _text(value) for label, value in words.facts},
    }


def _data(notification: Notification) -> Mapping[str, Any]:
    alert, run, words = notification.alert, notification.run, notification.message
    seen, seen_by = alert.detection, alert.acknowledged
    return {
        "version": SCHEMA_VERSION,
        "alert_id": _text(alert.id),
        "fingerprint": alert.fingerprint,
        "family": str(alert.family),
        "kind": _text(alert.kind),
        "severity": str(alert.severity),
        "state": str(alert.state),
        "source": _text(alert.run.source),
        "run": _text(alert.run.run),
        "run_name": _text(run.name),
        "project": _text(run.project or None),
        "url": _text(words.link or run.url),
        "started_at": timestamp(alert.started_at),
        "fired_at": timestamp(alert.fired_at),
        "resolved_at": timestamp(alert.resolved_at),
        "outcome": _text(alert.outcome or None),
        "acknowledged_by": _text(seen_by.by) if seen_by else None,
        "acknowledged_at": timestamp(seen_by.at) if seen_by else None,
        "acknowledged_until": timestamp(seen_by.until) if seen_by else None,
        "metric": _text(seen.metric),
        "detector": _text(seen.detector),
        "onset_step": number(seen.onset_step),
        "step": number(seen.step),
        "resolved_step": number(alert.resolved_step),
        "last_healthy_step": number(seen.last_healthy_step),
        "observed": number(seen.observed),
        "expected": number(seen.expected),
        "sigma": number(seen.sigma),
        "score": number(seen.score),
        "evidence": [_text(line) for line in seen.evidence[:_EVIDENCE]],
        "title": _text(words.title),
        "summary": _text(words.summary),
        "size": notification.size,
        "others": [_companion(other) for other in notification.others],
    }


def _companion(other: Companion) -> Mapping[str, Any]:
    alert = other.alert
    return {
        "alert_id": _text(alert.id),
        "fingerprint": alert.fingerprint,
        "kind": _text(alert.kind),
        "severity": str(alert.severity),
        "state": str(alert.state),
        "source": _text(alert.run.source),
        "run": _text(alert.run.run),
        "run_name": _text(other.run.name),
        "url": _text(other.run.url),
        "started_at": timestamp(alert.started_at),
        "resolved_at": timestamp(alert.resolved_at),
        "summary": _text(alert.outcome or alert.detection.summary),
    }


def number(value: float | None) -> float | str | None:
    """Return ``value`` as JSON can hold it: NaN and infinities by name, whole numbers without a fraction."""
    if value is None:
        return None
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # Past 2**53 a float has no exact neighbours; as an integer it would pretend to.
    return int(value) if value == int(value) and abs(value) < 2**53 else float(value)


def timestamp(seconds: float | None) -> str | None:
    """Return unix seconds as RFC 3339 in UTC with milliseconds; None where that is no date."""
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: str | None) -> str | None:
    return None if value is None else shorten(encodable(value), _TEXT_CHARS)


def signing_key(secret: str) -> bytes:
    """Decode ``whsec_`` and base64 to 24-64 bytes. Raises ValueError, which doesn't quote the secret."""
    prefix, _, encoded = secret.partition("_")
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if prefix != "whsec" or len(key) not in _KEY_BYTES:
        raise ValueError("a webhook secret is whsec_ followed by the base64 of 24 to 64 bytes")
    return key


def headers(
    notification_id: str, sent_at: float, payload: bytes, keys: Sequence[bytes]
) -> dict[str, str]:
    """Return the headers of one attempt: id, time and, where there are keys, a signature by each.

    Signs ``{id}.{timestamp}.{payload}`` with HMAC-SHA256, of ``payload`` the very bytes that are sent.
    """
    seconds = str(int(sent_at))
    signed = f"{notification_id}.{seconds}.".encode() + payload
    signatures = [
        "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys
    ]
    signature = {"webhook-signature": " ".join(signatures)} if signatures else {}
    return {
        "content-type": "application/json",
        "webhook-id": notification_id,
        "webhook-timestamp": seconds,
        **signature,
    }
