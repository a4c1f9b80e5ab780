"""Apprise: e-mail, Discord, Teams, Telegram and a hundred others, by a library that knows them."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, ClassVar

from pydantic import ConfigDict, SecretStr, field_validator

from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.text import block, line, shorten
from wtwin_watch import protocols
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Notification, Receipt, Severity
from wtwin_watch.secrets import Secret

if TYPE_CHECKING:
    from apprise import Apprise, NotifyType

_TITLE_CHARS = 250
_TITLE_BYTES = 300
"""A subject is one line of a mail, three characters a byte and 998 at most."""
_VALUE_CHARS = 500
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)", re.ASCII)


class AppriseOptions(protocols.Options):
    """Where to, in Apprise's own notation."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    url: Secret
    """An Apprise URL, by reference since it holds passwords or tokens: mailtos://user:password@host."""

    @field_validator("url")
    @classmethod
    def _url_is_known_to_apprise(cls, url: SecretStr) -> SecretStr:
        if not _opened(url):
            raise ValueError(
                "not a URL that Apprise knows; https://appriseit.com/services/ lists them"
            )
        return url


class AppriseNotifier:
    """One Apprise URL. Called by one thread at a time."""

    Options: ClassVar[type[protocols.Options]] = AppriseOptions
    extra: ClassVar[str | None] = "apprise"

    def __init__(self, name: str, options: AppriseOptions) -> None:
        self._name = name
        self._service = _opened(options.url)
        self.min_interval_s: float = max(one.request_rate_per_sec for one in self._service)
        for one in self._service:
            # The outbox keeps the service's interval, so Apprise needn't sleep in the middle of a delivery.
            one.request_rate_per_sec = 0
        scheme = _SCHEME.match(options.url.get_secret_value())
        self._described = f"{scheme[0].lower() if scheme else 'a service'} by Apprise"
        self._deadline = Deadline(self._described)

    def send(self, notification: Notification) -> Receipt:
        """Send one message an event. Apprise doesn't say why it failed, so a failure is tried again."""
        return self._deadline.run(lambda: self._send(notification))

    def describe(self) -> str:
        """Say which kind of service it is; all else in the URL may be a secret."""
        return self._described

    def close(self) -> None:
        """Nothing to let go of: every message has a connection of its own."""

    def _send(self, notification: Notification) -> Receipt:
        try:
            sent = self._service.notify(
                body=body(notification), title=title(notification), notify_type=_type(notification),
                body_format="text",
            )  # fmt: skip
        except Exception as error:
            # A plugin of Apprise's may quote its URL.
            raise DeliveryError(f"{self._described} failed: {type(error).__name__}") from None
        if not sent:
            raise DeliveryError(
                f"{self._described} could not deliver; if that goes on check receiver.{self._name}.url"
            )
        return Receipt()


def title(notification: Notification) -> str:
    """Return one line that any service, and a mail's header, can hold."""
    whole = shorten(line(notification.message.title), _TITLE_CHARS)
    return whole.encode()[:_TITLE_BYTES].decode(errors="ignore") or "wtwin-watch"


def body(notification: Notification) -> str:
    """Lay an event out as plain text: the summary, a line for each fact, the link."""
    words = notification.message
    lines = [block(words.summary), ""]
    lines += [
        f"{line(label)}: {shorten(line(value), _VALUE_CHARS)}" for label, value in words.facts
    ]
    if words.link:
        lines += ["", line(words.link)]
    return "\n".join(lines).strip() or "wtwin-watch"


def _type(notification: Notification) -> NotifyType:
    from apprise import NotifyType

    if notification.event is Event.RESOLVED:
        return NotifyType.SUCCESS
    if notification.event in {Event.TEST, Event.ACKNOWLEDGED, Event.DIGEST}:
        return NotifyType.INFO
    return {
        Severity.CRITICAL: NotifyType.FAILURE,
        Severity.WARNING: NotifyType.WARNING,
        Severity.INFO: NotifyType.INFO,
    }[notification.alert.severity]


def _opened(url: SecretStr) -> Apprise:
    """Make Apprise's own object; empty, and so false, where it doesn't know the URL."""
    import apprise

    # Apprise logs addresses, and what it was answered.
    logging.getLogger("apprise").disabled = True
    asset = apprise.AppriseAsset(
        app_id="wtwin-watch",
        app_desc="wtwin-watch",
        app_url="",
        image_url_mask="",
        image_url_logo="",
        async_mode=False,
    )
    service = apprise.Apprise(asset=asset)
    service.add(url.get_secret_value())
    for one in service:
        one.overflow_mode = apprise.OverflowMode.TRUNCATE
    return service
