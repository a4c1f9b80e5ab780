"""A webhook of your own: each event is one signed POST, as Standard Webhooks 1.0 has it.

Its body is our own, or the one that Alertmanager's receivers know (``format = "alertmanager"``).
"""

from __future__ import annotations

import time
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, SecretStr, WithJsonSchema

from wtwin_notifiers import alertmanager_body, alerts_alone, webhook_body
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.posting import REFERENCE_SCHEMA, Address, Post
from wtwin_watch import protocols
from wtwin_watch.model import Notification, Receipt
from wtwin_watch.secrets import read_reference, shown_url

_MOST_SECRETS = 2


def _read_secrets(given: Any) -> tuple[SecretStr, ...]:
    """Take one signing secret by reference, or the new and the old one while it is being changed."""
    references = given if isinstance(given, (list, tuple)) else [given]
    if not 1 <= len(references) <= _MOST_SECRETS:
        raise ValueError("one secret, or two while it is being changed: [new, old]")
    secrets = tuple(read_reference(reference) for reference in references)
    for secret in secrets:
        webhook_body.signing_key(secret.get_secret_value())
    return secrets


class WebhookOptions(protocols.Options):
    """Where to post, what, and how to sign."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    url: Address
    """The address: plain, or by reference where it holds a secret (a user, a query, a secret path)."""
    secret: Annotated[
        tuple[SecretStr, ...],
        BeforeValidator(_read_secrets),
        WithJsonSchema(
            {
                "anyOf": [
                    REFERENCE_SCHEMA,
                    {
                        "type": "array",
                        "items": REFERENCE_SCHEMA,
                        "minItems": 1,
                        "maxItems": _MOST_SECRETS,
                    },
                ]
            }
        ),
    ] = ()
    """By reference, ``whsec_`` and base64; two while it is being changed. Without it nothing is signed."""
    format: Literal["standard", "alertmanager"] = "standard"
    """The body: our own, or the payload of Alertmanager's webhooks, version 4."""

    @property
    def no_digest(self) -> str | None:
        """Alertmanager's payload has no place for a digest."""
        return alerts_alone.NO_DIGEST if self.format == "alertmanager" else None


class WebhookNotifier:
    """One address that takes webhooks. Called by one thread at a time."""

    Options: ClassVar[type[protocols.Options]] = WebhookOptions

    min_interval_s = 0.0

    def __init__(self, name: str, options: WebhookOptions) -> None:
        self._url = options.url.get_secret_value()
        self._format = options.format
        self._keys = [
            webhook_body.signing_key(secret.get_secret_value()) for secret in options.secret
        ]
        self._post = Post(
            self.describe(),
            f"receiver.{name}.url",
            f"check receiver.{name}.url and .secret",
            self._url,
        )
        self._deadline = Deadline(self.describe())

    def send(self, notification: Notification) -> Receipt:
        """Post one event. Done when the receiver answers 2xx; a redirection isn't followed."""
        return self._deadline.run(lambda: self._send(notification))

    def describe(self) -> str:
        """Say where it goes: scheme and host."""
        return f"webhook at {shown_url(self._url)}"

    def close(self) -> None:
        """Nothing to let go of: every attempt has a connection of its own."""

    def _send(self, notification: Notification) -> Receipt:
        if self._format == "alertmanager":
            alerts_alone.check(notification, self.describe())
            payload = alertmanager_body.webhook(notification)
            receipt = alertmanager_body.receipt(notification)
        else:
            payload, receipt = webhook_body.body(notification), Receipt()
        self._post(payload, webhook_body.headers(notification.id, time.time(), payload, self._keys))
        return receipt
