"""Slack: an alert is one message that is edited as things change and when it is over.

With a bot token (``token`` and ``channel``) an alert's first notification posts a message, a change edits it
and adds a reply to its thread, and the end edits it without a word more. An incoming webhook
(``webhook``) can neither edit nor answer: there every notification is a message of its own.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ConfigDict, Field, SecretStr, field_validator, model_validator

from wtwin_notifiers import slack_layout
from wtwin_notifiers.answers import reason
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.slack_answers import SlackRefusal, refusal
from wtwin_notifiers.urls import encrypted_url
from wtwin_watch import protocols
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Notification, Receipt
from wtwin_watch.secrets import Secret, shown_url

if TYPE_CHECKING:
    from slack_sdk import WebClient
    from slack_sdk.web import SlackResponse
    from slack_sdk.webhook import WebhookClient, WebhookResponse

_API_URL = "https://slack.com/api/"
_CALL_TIMEOUT_S = 10
_OK = 200

# Slack's client logs whole requests, webhook addresses included.
_silent = logging.Logger("wtwin_notifiers.slack", logging.CRITICAL + 1)


class SlackOptions(protocols.Options):
    """Either ``webhook``, or ``token`` and ``channel``."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    webhook: Secret | None = None
    """The address of an incoming webhook."""
    token: Secret | None = None
    """A bot token with the scope chat:write."""
    channel: str | None = Field(default=None, min_length=1, max_length=200)
    """The id of a channel the app is in, like C012AB3CD."""
    api_url: str = _API_URL
    """Where the Web API is, for gateways that speak it; plain http only on loopback."""

    @field_validator("webhook")
    @classmethod
    def _webhook_is_an_address(cls, webhook: SecretStr | None) -> SecretStr | None:
        if webhook is not None:
            encrypted_url(webhook.get_secret_value())
        return webhook

    @field_validator("token")
    @classmethod
    def _token_fits_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token.get_secret_value()):
            raise ValueError("a token is printable ASCII without spaces, like xoxb-…")
        return token

    @field_validator("api_url")
    @classmethod
    def _api_url_is_an_address(cls, api_url: str) -> str:
        parts = encrypted_url(api_url)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("api_url has no user, password, query or fragment")
        return api_url

    @model_validator(mode="after")
    def _one_way_to_send(self) -> SlackOptions:
        if self.webhook is not None:
            if self.token or self.channel or self.api_url != _API_URL:
                raise ValueError("give webhook alone, or token and channel without webhook")
        elif self.token is None or self.channel is None:
            raise ValueError("Slack needs webhook, or token and channel")
        return self


class SlackNotifier:
    """One Slack channel. Called by one thread at a time."""

    Options: ClassVar[type[protocols.Options]] = SlackOptions

    min_interval_s = 1.0
    """Slack takes one message a second in a channel."""

    def __init__(self, name: str, options: SlackOptions) -> None:
        self._name = name
        self._options = options
        self._deadline = Deadline(self.describe())

    def send(self, notification: Notification) -> Receipt:
        """Post, edit, or both. The receipt names the message that stands for the alert.

        An edit comes before a reply, so that a retry after half a success repeats the edit, which
        changes nothing, and the reply alone.
        """
        if self._options.webhook is not None:
            return self._deadline.run(lambda: self._send_basic(notification))
        return self._deadline.run(lambda: self._send_full(notification))

    def describe(self) -> str:
        """Say where it goes: the channel, or the host of the webhook."""
        if self._options.webhook is not None:
            return f"Slack webhook at {shown_url(self._options.webhook.get_secret_value())}"
        place = (
            "" if self._options.api_url == _API_URL else f" at {shown_url(self._options.api_url)}"
        )
        return f"Slack channel {self._options.channel}{place}"

    def close(self) -> None:
        """Nothing to let go of: every call has a connection of its own."""

    def _send_full(self, notification: Notification) -> Receipt:
        first = _first_message(notification.previous)
        if first is None or notification.event is Event.TEST:
            return self._post_anew(notification)
        try:
            self._edit(first, notification)
        except SlackRefusal as error:
            if not error.not_editable:
                raise
            return self._post_anew(notification)
        if notification.event is not Event.RESOLVED:
            self._post(
                slack_layout.reply(notification), notification, first["channel"], first["ts"]
            )
        return Receipt(first)

    def _post_anew(self, notification: Notification) -> Receipt:
        late = notification.event is Event.RESOLVED
        payload = slack_layout.message(notification, late=late)
        channel = self._options.channel or ""
        answer = self._post(payload, notification, channel, None)
        return Receipt(_first_message(answer) or {})

    def _post(
        self,
        payload: Mapping[str, Any],
        notification: Notification,
        channel: str,
        thread: str | None,
    ) -> Mapping[str, Any]:
        return self._call(
            lambda: self._client.chat_postMessage(
                channel=channel,
                thread_ts=thread,
                metadata=slack_layout.metadata(notification),
                parse="none",
                link_names=False,
                unfurl_links=False,
                unfurl_media=False,
                **payload,
            )
        )

    def _edit(self, message: Mapping[str, str], notification: Notification) -> None:
        self._call(
            # chat.update would link names unless told not to: its ``parse`` defaults to ``client``.
            lambda: self._client.chat_update(
                channel=message["channel"],
                ts=message["ts"],
                metadata=slack_layout.metadata(notification),
                parse="none",
                link_names=False,
                **slack_layout.message(notification),
            )
        )

    def _call(self, call: Callable[[], Any]) -> Mapping[str, Any]:
        from slack_sdk.errors import SlackApiError

        try:
            answer = call()
        except SlackApiError as error:
            raise self._refused(error.response, error.response.data) from None
        except Exception as error:
            raise self._unreachable(error) from None
        return answer.data if isinstance(answer.data, Mapping) else {}

    def _send_basic(self, notification: Notification) -> Receipt:
        try:
            answer = self._webhook.send_dict(slack_layout.message(notification))
        except Exception as error:
            raise self._unreachable(error) from None
        if answer.status_code != _OK or answer.body.strip() != "ok":
            raise self._refused(answer, {"error": answer.body})
        return Receipt()

    def _refused(self, answer: SlackResponse | WebhookResponse, body: Any) -> SlackRefusal:
        return refusal(
            self._name,
            answer.status_code,
            body if isinstance(body, Mapping) else {},
            answer.headers,
            time.time(),
            basic=self._options.webhook is not None,
        )

    def _unreachable(self, error: Exception) -> DeliveryError:
        # Whatever the client raises that isn't Slack's answer (sockets, TLS, HTTP, junk where JSON should
        # be) may be gone next time. Its text and its chain are not shown: they may quote the request.
        return DeliveryError(f"{self.describe()} can't be reached: {reason(error)}")

    @cached_property
    def _client(self) -> WebClient:
        import ssl

        from slack_sdk import WebClient

        return WebClient(
            self._options.token.get_secret_value() if self._options.token else None,
            base_url=self._options.api_url,
            timeout=_CALL_TIMEOUT_S,
            ssl=ssl.create_default_context(),
            logger=_silent,
            retry_handlers=[],
        )

    @cached_property
    def _webhook(self) -> WebhookClient:
        import ssl

        from slack_sdk.webhook import WebhookClient

        return WebhookClient(
            self._options.webhook.get_secret_value() if self._options.webhook else "",
            timeout=_CALL_TIMEOUT_S,
            ssl=ssl.create_default_context(),
            logger=_silent,
            retry_handlers=[],
        )


def _first_message(data: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Read channel and ts out of a receipt or an answer; None where they aren't there."""
    channel, ts = (data or {}).get("channel"), (data or {}).get("ts")
    if isinstance(channel, str) and isinstance(ts, str) and channel and ts:
        return {"channel": channel, "ts": ts}
    return None
