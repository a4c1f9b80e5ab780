"""PagerDuty, by its Events API version 2: one incident an alert, from trigger to resolve."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from pydantic import ConfigDict, SecretStr, field_validator

from wtwin_notifiers import alerts_alone
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.posting import Post
from wtwin_notifiers.text import block, line, shorten
from wtwin_notifiers.urls import check_bare_url, http_url
from wtwin_notifiers.webhook_body import timestamp
from wtwin_watch import protocols
from wtwin_watch.model import Event, Notification, Receipt, Severity
from wtwin_watch.secrets import Secret, shown_url

_URL = "https://events.pagerduty.com/v2/enqueue"
_SEVERITIES = {
    Severity.CRITICAL: "critical",
    Severity.WARNING: "warning",
    Severity.INFO: "info",
}
_ACTIONS = {Event.ACKNOWLEDGED: "acknowledge", Event.RESOLVED: "resolve"}

# PagerDuty's own limits; an event as a whole may have 512 KB.
_SUMMARY_CHARS = 1024
_KEY_CHARS = 255
_FIELD_CHARS = 255
_DETAIL_CHARS = 2000
_LINK_CHARS = 2048

_HEADERS: Mapping[str, str] = {"content-type": "application/json"}


class PagerDutyOptions(protocols.Options):
    """Which service is paged."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    routing_key: Secret
    """The integration key of a service, or of an event orchestration."""
    url: str = _URL
    """Where events go; https://events.eu.pagerduty.com/v2/enqueue for accounts in the EU."""

    @property
    def no_digest(self) -> str | None:
        """A digest has no place there."""
        return alerts_alone.NO_DIGEST

    @field_validator("routing_key")
    @classmethod
    def _key_is_a_word(cls, key: SecretStr) -> SecretStr:
        if not re.fullmatch(r"[\x21-\x7e]{1,255}", key.get_secret_value()):
            raise ValueError("a routing key is printable ASCII without spaces")
        return key

    @field_validator("url")
    @classmethod
    def _url_is_an_address(cls, url: str) -> str:
        return check_bare_url("url", url)


class PagerDutyNotifier:
    """One service of PagerDuty. Called by one thread at a time."""

    Options: ClassVar[type[protocols.Options]] = PagerDutyOptions

    min_interval_s = 0.0

    def __init__(self, name: str, options: PagerDutyOptions) -> None:
        self._key = options.routing_key
        self._url = options.url
        self._post = Post(
            self.describe(),
            f"receiver.{name}.url",
            f"check receiver.{name}.routing_key and .url",
            options.url,
        )
        self._deadline = Deadline(self.describe())

    def send(self, notification: Notification) -> Receipt:
        """Trigger, acknowledge or resolve. A test opens an incident and closes it at once."""
        alerts_alone.check(notification, self.describe())
        actions = [_ACTIONS.get(notification.event, "trigger")]
        if notification.event is Event.ACKNOWLEDGED and notification.alert.acknowledged is None:
            actions = ["trigger"]  # it was taken back, which PagerDuty itself has no event for
        if notification.event is Event.TEST:
            actions.append("resolve")
        for action in actions:
            payload = self._body(notification, action)
            self._deadline.run(partial(self._post, payload, _HEADERS))
        return Receipt()

    def describe(self) -> str:
        """Say where it goes: the host."""
        return f"PagerDuty at {shown_url(self._url)}"

    def close(self) -> None:
        """Nothing to let go of: every attempt has a connection of its own."""

    def _body(self, notification: Notification, action: str) -> bytes:
        given = {"routing_key": self._key.get_secret_value(), **event(notification, action)}
        return json.dumps(given, ensure_ascii=False, allow_nan=False).encode()


def event(notification: Notification, action: str) -> dict[str, Any]:
    """Return the event but for its routing key; the same at every retry.

    The alert's id is the dedup key, so a change adds to the incident that there is.
    """
    told: dict[str, Any] = {
        "event_action": action,
        "dedup_key": shorten(line(notification.alert.id), _KEY_CHARS),
    }
    if action != "trigger":
        return told
    alert, words = notification.alert, notification.message
    payload = {
        "summary": shorten(line(words.title), _SUMMARY_CHARS) or "wtwin-watch",
        "source": shorten(line(str(alert.run)), _FIELD_CHARS) or "wtwin-watch",
        "severity": _SEVERITIES[alert.severity],
        "timestamp": timestamp(notification.created_at),
        "component": shorten(line(notification.run.name), _FIELD_CHARS),
        "group": shorten(line(notification.run.project), _FIELD_CHARS),
        "class": shorten(line(alert.kind), _FIELD_CHARS),
        "custom_details": _details(notification),
    }
    told["payload"] = {name: value for name, value in payload.items() if value}
    told["client"] = "wtwin-watch"
    if link := _link(words.link):
        told["client_url"] = link
        told["links"] = [{"href": link, "text": "Open the run"}]
    return told


def _details(notification: Notification) -> dict[str, str]:
    words = notification.message
    facts = {"summary": words.summary, **dict(words.facts)}
    cleaned = {
        shorten(line(name), _FIELD_CHARS): shorten(block(value), _DETAIL_CHARS)
        for name, value in facts.items()
    }
    return {name: value for name, value in cleaned.items() if name and value}


def _link(url: str | None) -> str | None:
    try:
        address = http_url(url or "").geturl()
    except ValueError:
        return None
    return address if len(address) <= _LINK_CHARS else None
