"""Slack: an alert is one message that is edited as things change and when it is over.

With a bot token (``token`` and ``channel``) an alert's first notification posts a message, and the plot goes
into its thread; a change edits the message and adds a reply to the thread; an acknowledgement and the end
edit it without a word more. Alerts that come faster than Slack takes messages share one. An incoming webhook
(``webhook``) can neither edit nor answer: there every notification is a message of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.error import HTTPError

from wtwin_notifiers import slack_layout, text
from wtwin_notifiers.answers import reason
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.slack_answers import SlackRefusal, refusal
from wtwin_notifiers.slack_options import API_URL, SlackOptions
from wtwin_watch import protocols
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Notification, Receipt, Severity
from wtwin_watch.secrets import shown_url

if TYPE_CHECKING:
    from slack_sdk import WebClient
    from slack_sdk.web import SlackResponse
    from slack_sdk.webhook import WebhookClient, WebhookResponse

_CALL_TIMEOUT_S = 10
_OK = 200

_QUIET = frozenset({Event.ACKNOWLEDGED, Event.RESOLVED})
"""Events that edit the message and add nothing to the thread: an edit notifies nobody."""
_UNMENTIONED = _QUIET | {Event.TEST, Event.DIGEST}
_GRAVER: Mapping[Severity, tuple[str, ...]] = {
    Severity.CRITICAL: (Severity.WARNING, Severity.INFO),
    Severity.WARNING: (Severity.INFO,),
}
"""What an alert of a severity is graver than."""

# Slack's client logs whole requests, webhook addresses included.
_silent = logging.Logger("wtwin_notifiers.slack", logging.CRITICAL + 1)


class SlackNotifier:
    """One Slack channel. Called by one thread at a time."""

    Options: ClassVar[type[protocols.Options]] = SlackOptions

    min_interval_s = 1.0
    """Slack takes one message a second in a channel."""
    together_from = 10
    """So many alerts that wait are told in one message: one by one they would take as many seconds."""

    def __init__(self, name: str, options: SlackOptions) -> None:
        self._name = name
        self._options = options
        self._deadline = Deadline(self.describe())
        self._uploads = Deadline(f"{self.describe()}, plots")
        self.wants_pictures = options.webhook is None
        """False for an incoming webhook, and once it turned out that the app may not upload."""

    def send(self, notification: Notification) -> Receipt:
        """Post, edit, or both. The receipt names the message that stands for the alert.

        An edit comes before a reply, so that a retry after half a success repeats the edit, which
        changes nothing, and the reply alone.
        """
        if self._options.webhook is not None:
            return self._deadline.run(lambda: self._send_basic(notification))
        return self._deadline.run(lambda: self._send_full(notification))

    def send_together(self, notifications: Sequence[Notification]) -> Receipt:
        """Tell of several alerts in one message. What becomes of each is told in its thread."""
        return self._deadline.run(lambda: self._send_together(notifications))

    def illustrate(self, notification: Notification, receipt: Receipt, picture: bytes) -> None:
        """Upload a PNG into the thread of the alert's message. Any thread may call this."""
        first = _first_message(receipt.data)
        if first is not None and not _shared(receipt.data):
            self._uploads.run(lambda: self._upload(notification, first, picture))

    def describe(self) -> str:
        """Say where it goes: the channel, or the host of the webhook."""
        if self._options.webhook is not None:
            return f"Slack webhook at {shown_url(self._options.webhook.get_secret_value())}"
        place = (
            "" if self._options.api_url == API_URL else f" at {shown_url(self._options.api_url)}"
        )
        return f"Slack channel {self._options.channel}{place}"

    def close(self) -> None:
        """Nothing to let go of: every call has a connection of its own."""

    def _send_full(self, notification: Notification) -> Receipt:
        first = _first_message(notification.previous)
        if first is None or notification.event is Event.TEST:
            return self._post_anew(notification)
        if _shared(notification.previous):
            return self._answer(notification, first)
        try:
            self._edit(first, notification)
        except SlackRefusal as error:
            if not error.not_editable:
                raise
            return self._post_anew(notification)
        if notification.event in _QUIET:
            return Receipt(notification.previous or first)
        return self._answer(notification, first)

    def _post_anew(self, notification: Notification) -> Receipt:
        late = notification.event is Event.RESOLVED
        mention = () if notification.event in _UNMENTIONED else self._mentioned(notification)
        payload = slack_layout.message(notification, late=late, mention=mention)
        channel = self._options.channel or ""
        metadata = slack_layout.metadata(notification)
        answer = self._post(payload, metadata, channel, None)
        if notification.event is Event.DIGEST:
            return Receipt()  # nothing follows it
        return Receipt({**(_first_message(answer) or {}), **self._known(notification)})

    def _answer(self, notification: Notification, first: Mapping[str, str]) -> Receipt:
        """Reply in the thread; mention somebody where it is graver than they know, or nobody has seen it."""
        before = (notification.previous or {}).get("severity")
        graver = before in _GRAVER.get(notification.alert.severity, ())
        again = notification.event is Event.REPEATED
        mention = self._mentioned(notification) if graver or again else ()
        payload = slack_layout.reply(notification, mention=mention)
        self._post(payload, slack_layout.metadata(notification), first["channel"], first["ts"])
        return Receipt({**(notification.previous or first), **self._known(notification)})

    def _mentioned(self, notification: Notification) -> Sequence[str]:
        return self._options.mention.get(notification.alert.severity, ())

    def _known(self, notification: Notification) -> Mapping[str, str]:
        """What is to be known with the next event, so that nobody is mentioned twice."""
        return {"severity": notification.alert.severity.value} if self._options.mention else {}

    def _send_together(self, notifications: Sequence[Notification]) -> Receipt:
        gravest = min((n.alert.severity for n in notifications), key=list(Severity).index)
        mention = self._options.mention.get(gravest, ())
        payload = slack_layout.together(notifications, mention=mention)
        if self._options.webhook is not None:
            return self._post_basic(payload)
        metadata = slack_layout.metadata(notifications[0], others=notifications[1:])
        answer = self._post(payload, metadata, self._options.channel or "", None)
        first = _first_message(answer)
        known = {"severity": gravest.value} if self._options.mention else {}
        return Receipt({**first, "shared": True, **known} if first else {})

    def _upload(self, notification: Notification, first: Mapping[str, str], picture: bytes) -> None:
        title = slack_layout.escape(text.line(notification.message.title), 200) or "loss"
        try:
            self._call(
                lambda: self._client.files_upload_v2(
                    content=picture,
                    filename="loss.png",
                    title=title,
                    alt_txt=title,
                    channel=first["channel"],
                    thread_ts=first["ts"],
                    request_file_info=False,
                )
            )
        except SlackRefusal as error:
            # Without the scope no later upload succeeds either.
            self.wants_pictures = not error.permanent
            raise

    def _post(
        self,
        payload: Mapping[str, Any],
        metadata: dict[str, Any],
        channel: str,
        thread: str | None,
    ) -> Mapping[str, Any]:
        return self._call(
            lambda: self._client.chat_postMessage(
                channel=channel,
                thread_ts=thread,
                metadata=metadata,
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
        except HTTPError as error:
            # The upload of the bytes alone raises this; it holds an open connection.
            error.close()
            raise DeliveryError(f"{self.describe()} answered HTTP {error.code}") from None
        except Exception as error:
            raise self._unreachable(error) from None
        return answer.data if isinstance(answer.data, Mapping) else {}

    def _send_basic(self, notification: Notification) -> Receipt:
        mention = () if notification.event in _UNMENTIONED else self._mentioned(notification)
        return self._post_basic(slack_layout.message(notification, mention=mention))

    def _post_basic(self, payload: dict[str, Any]) -> Receipt:
        try:
            answer = self._webhook.send_dict(payload)
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


def _shared(data: Mapping[str, Any] | None) -> bool:
    """Whether the message of a receipt stands for several alerts."""
    return (data or {}).get("shared") is True
