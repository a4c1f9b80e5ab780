"""Alertmanager: alerts are pushed to its API, told again while they fire, and ended when they are over.

Alertmanager forgets what it isn't reminded of. Every push says when that is to be, so its own
``resolve_timeout`` has no part in it, and an alert whose watcher has died ends by itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import ClassVar

from pydantic import ConfigDict

from wtwin_notifiers import alertmanager_body, alerts_alone
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.posting import Address, Post
from wtwin_watch import protocols
from wtwin_watch.model import Notification, Receipt
from wtwin_watch.secrets import Secret, shown_url

RENEW_EVERY_S = 60.0
LASTS_S = 5 * RENEW_EVERY_S
"""So long after the last push an alert ends there by itself: a restart of the watcher takes less."""
_MOST_AT_ONCE = 500
_PATH = "/api/v2/alerts"


class AlertmanagerOptions(protocols.Options):
    """Which Alertmanager."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    url: Address
    """Its address, as its own pages have it, like http://alertmanager:9093."""
    token: Secret | None = None
    """A bearer token for a proxy in front of it."""

    @property
    def no_digest(self) -> str | None:
        """A digest has no place there."""
        return alerts_alone.NO_DIGEST


class AlertmanagerNotifier:
    """One Alertmanager. Called by one thread at a time."""

    Options: ClassVar[type[protocols.Options]] = AlertmanagerOptions

    min_interval_s = 0.0
    renew_every_s = RENEW_EVERY_S

    def __init__(self, name: str, options: AlertmanagerOptions) -> None:
        self._url = options.url.get_secret_value()
        self._headers = {"content-type": "application/json"}
        if options.token is not None:
            self._headers["authorization"] = f"Bearer {options.token.get_secret_value()}"
        setting = f"receiver.{name}.url"
        base = self._url.split("#")[0].removesuffix("/").removesuffix(_PATH)
        self._post = Post(self.describe(), setting, f"check {setting}", base + _PATH)
        self._deadline = Deadline(self.describe())

    def send(self, notification: Notification) -> Receipt:
        """Push the alert as it is now, for five minutes if it fires."""
        alerts_alone.check(notification, self.describe())
        now = time.time()
        self._push(alertmanager_body.pushed(notification, now + LASTS_S, now))
        return alertmanager_body.receipt(notification)

    def renew(self, firing: Sequence[Notification]) -> None:
        """Push what fires still for another five minutes, as it was last told."""
        now = time.time()
        alerts = [
            alert
            for notification in firing
            for alert in alertmanager_body.pushed(notification, now + LASTS_S, now, renewed=True)
        ]
        for start in range(0, len(alerts), _MOST_AT_ONCE):
            self._push(alerts[start : start + _MOST_AT_ONCE])

    def describe(self) -> str:
        """Say where it goes: scheme and host."""
        return f"Alertmanager at {shown_url(self._url)}"

    def close(self) -> None:
        """Nothing to let go of: every push has a connection of its own."""

    def _push(self, alerts: list[dict[str, object]]) -> None:
        payload = json.dumps(alerts, ensure_ascii=False).encode()
        self._deadline.run(lambda: self._post(payload, self._headers))
