"""A strict stand-in for Slack on loopback: what it takes, Slack takes.

In a test, as a context manager (`SlackStandIn`), or as a process:

    python -m tests.support.slack_standin --record FILE.jsonl [--port N] [--faults '[{"status": 503}]']

which prints its addresses as one JSON line. It knows ``auth.test``, ``chat.postMessage``, ``chat.update``,
the three steps of an upload, and one incoming webhook.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.support import slack_rules
from tests.support.faulty_http import Answer, Request, StandIn, faults_from, serve

TOKEN = "xoxb-1234-5678-standin"
CHANNEL = "C012AB3CD"
WEBHOOK_PATH = "/services/T00000000/B00000000/standinstandinstandin"

# Slack says one message a second a channel; clocks and scheduling may shave a little off.
MESSAGE_GAP_S = 0.95
UPDATES_A_MINUTE = 50

_CONTENT = frozenset({"text", "blocks"})
_MESSAGE_ARGUMENTS = _CONTENT | {
    *("channel", "metadata", "thread_ts", "reply_broadcast", "parse", "link_names", "mrkdwn"),
    *("unfurl_links", "unfurl_media", "username", "icon_emoji", "icon_url"),
}
_UPDATE_ARGUMENTS = _CONTENT | {"channel", "ts", "metadata", "parse", "link_names"}
_WEBHOOK_ARGUMENTS = _CONTENT | {"unfurl_links", "unfurl_media", "mrkdwn"}


@dataclass
class SlackMessage:
    """A message as it stands now; ``edits`` holds the bodies it had before, oldest first."""

    channel: str
    ts: str
    body: dict[str, Any]
    edits: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.body["text"]

    @property
    def thread_ts(self) -> str | None:
        return self.body.get("thread_ts")

    @property
    def title(self) -> str:
        """The header, or the text where there is no header."""
        headers = [block for block in self.body.get("blocks", []) if block["type"] == "header"]
        return headers[0]["text"]["text"] if headers else self.text

    @property
    def key(self) -> str | None:
        """The idempotency key in its metadata."""
        return _key(self.body)

    @property
    def pings(self) -> list[str]:
        """Whom it pinged, in any of its forms."""
        return [ping for body in [*self.edits, self.body] for ping in slack_rules.pings(body)]

    def __contains__(self, text: str) -> bool:
        return any(
            text in shown for shown in [self.text, *slack_rules.block_text(self.body["blocks"])]
        )


@dataclass
class SlackFile:
    """An uploaded file; ``thread_ts`` is set once it is shared."""

    id: str
    filename: str
    length: int
    content: bytes = b""
    channel: str | None = None
    thread_ts: str | None = None
    title: str | None = None


@dataclass
class SlackChannel:
    """A channel the workspace has."""

    name: str
    member: bool = True
    archived: bool = False


class SlackStandIn(StandIn):
    """Slack's API at `api_url` and an incoming webhook at `webhook_url`.

    ``scopes`` are those of the token; ``message_gap_s`` is the least time between two messages in a
    channel, ``updates_a_minute`` the most edits in all.
    Channels beside `CHANNEL`: ``C0ARCHIVED`` (archived) and ``C0STRANGER`` (the app is not in it).
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        scopes: frozenset[str] = frozenset({"chat:write", "files:write"}),
        message_gap_s: float = MESSAGE_GAP_S,
        updates_a_minute: int = UPDATES_A_MINUTE,
        port: int = 0,
        record: Path | None = None,
    ) -> None:
        super().__init__(port=port, record=record)
        self.token = token
        self.scopes = scopes
        self.editable = True
        """False: the workspace allows no edit of a message any more."""
        self.channels = {
            CHANNEL: SlackChannel("alerts"),
            "C0ARCHIVED": SlackChannel("old", archived=True),
            "C0STRANGER": SlackChannel("strangers", member=False),
        }
        self.messages: list[SlackMessage] = []
        self.mistakes: list[str] = []
        """What was wrong with the messages that were refused for their form, in words."""
        self.files: list[SlackFile] = []
        self._gap_s = message_gap_s
        self._posted_at: dict[str, float] = {}
        self._updated_at: deque[float] = deque(maxlen=updates_a_minute)

    @property
    def api_url(self) -> str:
        return self.url + "/api/"

    @property
    def webhook_url(self) -> str:
        return self.url + WEBHOOK_PATH

    @property
    def parents(self) -> list[SlackMessage]:
        """The messages of the channel itself, oldest first."""
        return [message for message in self.messages if message.thread_ts is None]

    @property
    def titles(self) -> list[str]:
        """Their titles as they read now."""
        return [message.title for message in self.parents]

    def replies(self, parent: SlackMessage) -> list[SlackMessage]:
        """The thread under a message, oldest first."""
        return [message for message in self.messages if message.thread_ts == parent.ts]

    def calls(self, method: str) -> list[dict[str, Any]]:
        """The recorded requests of one method, or of the webhook (``services``)."""
        return [entry for entry in self.requests if method in entry["path"]]

    def delete(self, message: SlackMessage) -> None:
        """Take a message away, as a person may."""
        self.messages.remove(message)

    def answer(self, request: Request) -> Answer:
        if request.path.startswith("/services/"):
            return self._webhook(request)
        if request.path.startswith("/upload/"):
            return self._take_bytes(request)
        if request.path.startswith("/api/files."):
            return self._files(request)
        body, refused = self._opened(request)
        key = _key(body)
        if refused is None:
            method = {
                "/api/auth.test": self._auth_test,
                "/api/chat.postMessage": self._post_message,
                "/api/chat.update": self._update,
            }.get(request.path)
            refused = _no("unknown_method") if method is None else method(body)
        status = 429 if refused.get("error") == "ratelimited" else 200
        headers = {"Retry-After": "1"} if status == 429 else {}
        return Answer(status, json.dumps(refused).encode(), headers=headers, key=key)

    def _files(self, request: Request) -> Answer:
        """The first and the last step of an upload: forms, not JSON."""
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _answered(_no("invalid_auth"))
        if "files:write" not in self.scopes:
            return _answered(_no("missing_scope", needed="files:write"))
        form = {name: values[-1] for name, values in parse_qs(request.raw.decode()).items()}
        if request.path == "/api/files.getUploadURLExternal":
            file = SlackFile(f"F{len(self.files):08d}", form["filename"], int(form["length"]))
            self.files.append(file)
            return _answered(
                {"ok": True, "upload_url": f"{self.url}/upload/{file.id}", "file_id": file.id}
            )
        if request.path != "/api/files.completeUploadExternal":
            return _answered(_no("unknown_method"))
        if form.get("channel_id") not in self.channels:
            return _answered(_no("channel_not_found"))
        if form.get("thread_ts") not in {parent.ts for parent in self.parents}:
            return _answered(_no("invalid_thread_ts"))
        shared = json.loads(form["files"])
        for entry in shared:
            [file] = [file for file in self.files if file.id == entry["id"]]
            if len(file.content) != file.length:
                return _answered(_no("file_not_found"))
            file.channel, file.thread_ts = form["channel_id"], form["thread_ts"]
            file.title = entry.get("title")
        return _answered({"ok": True, "files": shared})

    def _take_bytes(self, request: Request) -> Answer:
        """The middle step of an upload: the bytes themselves, without a token."""
        if "authorization" in request.headers:
            return Answer(400)
        [file] = [file for file in self.files if file.id == request.path.rpartition("/")[2]]
        file.content = request.raw
        return Answer(200, b"OK", "text/plain")

    def _opened(self, request: Request) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Check what every method checks: the token and the form of the body."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not token:
            return {}, _no("not_authed")
        if scheme != "Bearer" or token != self.token:
            return {}, _no("invalid_auth")
        if not request.raw:
            return {}, None
        if request.headers.get("content-type") != "application/json;charset=utf-8":
            return {}, _no("invalid_post_type")
        body = request.json()
        if body is None:
            return {}, _no("invalid_json")
        if not isinstance(body, dict):
            return {}, _no("json_not_object")
        return body, None

    def _auth_test(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "team_id": "T00000000", "user_id": "U00000000", "bot_id": "B00000000"}

    def _post_message(self, body: dict[str, Any]) -> dict[str, Any]:
        if refused := self._refused(body, _MESSAGE_ARGUMENTS):
            return refused
        named = str(body.get("channel")).removeprefix("#")
        ids = [id for id, channel in self.channels.items() if named in {id, channel.name}]
        if not ids:
            return _no("channel_not_found")
        if refused := self._closed(ids[0]):
            return refused
        thread = body.get("thread_ts")
        if thread is not None and thread not in {parent.ts for parent in self.parents}:
            return _no("invalid_thread_ts")
        if self._too_soon(ids[0]):
            return _no("ratelimited")
        message = self._post(ids[0], body)
        return {"ok": True, "channel": ids[0], "ts": message.ts, "message": {"text": message.text}}

    def _update(self, body: dict[str, Any]) -> dict[str, Any]:
        if refused := self._refused(body, _UPDATE_ARGUMENTS):
            return refused
        if body.get("channel") not in self.channels:
            return _no("channel_not_found")
        if refused := self._closed(body["channel"]):
            return refused
        found = [
            message
            for message in self.messages
            if (message.channel, message.ts) == (body["channel"], body.get("ts"))
        ]
        if not found:
            return _no("message_not_found")
        if not self.editable:
            return _no("edit_window_closed")
        now = time.monotonic()
        full = len(self._updated_at) == self._updated_at.maxlen
        if full and now - self._updated_at[0] < 60:
            return _no("ratelimited")
        self._updated_at.append(now)
        message = found[0]
        message.edits.append(message.body)
        thread = {"thread_ts": message.thread_ts} if message.thread_ts else {}
        message.body = {**body, **thread}
        return {"ok": True, "channel": message.channel, "ts": message.ts, "text": message.text}

    def _refused(self, body: dict[str, Any], arguments: frozenset[str]) -> dict[str, Any] | None:
        if "chat:write" not in self.scopes:
            return _no("missing_scope", needed="chat:write", provided=",".join(sorted(self.scopes)))
        if unknown := sorted(set(body) - arguments):
            return self._wrong("invalid_arg_name", f"unknown arguments {unknown}")
        if None in body.values():
            return self._wrong("invalid_arguments", "an argument is null")
        if "metadata" in body and (mistake := slack_rules.metadata_mistake(body["metadata"])):
            return self._wrong(mistake, "metadata")
        return self._content_refused(body)

    def _content_refused(self, body: dict[str, Any]) -> dict[str, Any] | None:
        text = body.get("text")
        if not isinstance(text, str) or not text.strip():
            return self._wrong("no_text", "text is empty")
        if slack_rules.length(text) > slack_rules.MOST_TEXT:
            return self._wrong("msg_too_long", "text is too long")
        if mistakes := slack_rules.text_mistakes(text, slack_rules.MOST_TEXT, "text"):
            return self._wrong("invalid_arguments", *mistakes)
        if "blocks" in body:
            if mistakes := slack_rules.block_mistakes(body["blocks"]):
                return self._wrong("invalid_blocks", *mistakes)
            total = sum(map(slack_rules.length, slack_rules.block_text(body["blocks"])))
            if total > slack_rules.MOST_BLOCK_TEXT:
                return self._wrong("msg_blocks_too_long", f"{total} characters in blocks")
        return None

    def _wrong(self, error: str, *mistakes: str) -> dict[str, Any]:
        self.mistakes += [f"{error}: {mistake}" for mistake in mistakes]
        return _no(error)

    def _closed(self, channel: str) -> dict[str, Any] | None:
        if self.channels[channel].archived:
            return _no("is_archived")
        return None if self.channels[channel].member else _no("not_in_channel")

    def _too_soon(self, channel: str) -> bool:
        now = time.monotonic()
        if now - self._posted_at.get(channel, -1e9) < self._gap_s:
            return True
        self._posted_at[channel] = now
        return False

    def _post(self, channel: str, body: dict[str, Any]) -> SlackMessage:
        ts = f"{int(time.time())}.{len(self.requests):06d}"
        message = SlackMessage(channel, ts, body)
        self.messages.append(message)
        return message

    def _webhook(self, request: Request) -> Answer:
        def plain(status: int, text: str, **headers: str) -> Answer:
            return Answer(status, text.encode(), "text/html", headers)

        if request.path != WEBHOOK_PATH:
            return plain(404, "no_service")
        body = request.json()
        if not isinstance(body, dict) or set(body) - _WEBHOOK_ARGUMENTS or None in body.values():
            return plain(400, "invalid_payload")
        if refused := self._content_refused(body):
            return plain(400, refused["error"])
        if self.channels[CHANNEL].archived:
            return plain(410, "channel_is_archived")
        if self._too_soon(CHANNEL):
            return plain(429, "rate_limited", **{"Retry-After": "1"})
        self._post(CHANNEL, body)
        return plain(200, "ok")


def _answered(said: dict[str, Any]) -> Answer:
    return Answer(200, json.dumps(said).encode())


def _no(error: str, **more: str) -> dict[str, Any]:
    return {"ok": False, "error": error, **more}


def _key(body: dict[str, Any]) -> str | None:
    try:
        return body["metadata"]["event_payload"]["key"]
    except (KeyError, TypeError):
        return None


def main() -> None:
    """Serve as a process until killed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--record", type=Path, help="append each request to this file, as JSON lines"
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--faults", type=faults_from, default=[], help="a JSON list of faults")
    given = parser.parse_args()
    stand_in = SlackStandIn(token=given.token, port=given.port, record=given.record)
    stand_in.faults += given.faults
    serve(stand_in, api_url="/api/", webhook_url=WEBHOOK_PATH)


if __name__ == "__main__":
    main()
