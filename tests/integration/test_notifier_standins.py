"""The stand-ins themselves: they refuse what the real receivers refuse, and run as processes."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn

pytestmark = pytest.mark.integration

OPENER = build_opener(ProxyHandler({}))
SECTION = {"type": "section", "text": {"type": "plain_text", "text": "x"}}


def header(text):
    return {"type": "header", "text": {"type": "plain_text", "text": text}}


def fields(count, text="x"):
    return {"type": "section", "fields": [{"type": "mrkdwn", "text": text}] * count}


def section(text, type="plain_text", **more):
    return {"type": "section", "text": {"type": type, "text": text, **more}}


def call(url, body, token=TOKEN, content_type="application/json;charset=utf-8"):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {
        "Content-Type": content_type,
        **({"Authorization": f"Bearer {token}"} if token else {}),
    }
    try:
        with OPENER.open(Request(url, raw, headers), timeout=10) as answer:
            return answer.status, answer.headers, answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def said(slack, method, body, **how):
    answer = json.loads(call(slack.api_url + method, body, **how)[2])
    return "ok" if answer["ok"] else answer["error"]


@pytest.fixture(scope="module")
def slack():
    with SlackStandIn(message_gap_s=0) as slack:
        yield slack


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({}, "ok"),
        ({"text": ""}, "no_text"),
        ({"text": None}, "invalid_arguments"),
        ({"text": "x" * 40_000}, "ok"),
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"text": "a < b"}, "invalid_arguments"),
        ({"text": "a & b"}, "invalid_arguments"),
        ({"text": "a &amp; b &lt;c&gt; <https://x.example|x>"}, "ok"),
        ({"channel": "C0NOWHERE"}, "channel_not_found"),
        ({"channel": "C0ARCHIVED"}, "is_archived"),
        ({"channel": "C0STRANGER"}, "not_in_channel"),
        ({"channel": "alerts"}, "ok"),
        ({"colour": "red"}, "invalid_arg_name"),
        ({"thread_ts": "1.000000"}, "invalid_thread_ts"),
        ({"metadata": {"event_type": "a b", "event_payload": {}}}, "invalid_metadata_schema"),
        ({"metadata": {"event_type": "a"}}, "invalid_metadata_format"),
        ({"metadata": {"event_type": "a", "event_payload": {"k": "x" * 8000}}}, "metadata_too_large"),
        ({"blocks": [SECTION] * 50}, "ok"),
        ({"blocks": [SECTION] * 51}, "invalid_blocks"),
        ({"blocks": []}, "invalid_blocks"),
        ({"blocks": [header("x" * 150)]}, "ok"),
        ({"blocks": [header("x" * 151)]}, "invalid_blocks"),
        ({"blocks": [header("🔥" * 76)]}, "invalid_blocks"),
        ({"blocks": [header("")]}, "invalid_blocks"),
        ({"blocks": [section("x" * 3000)]}, "ok"),
        ({"blocks": [section("x" * 3001)]}, "invalid_blocks"),
        ({"blocks": [section("x", verbatim=True)]}, "invalid_blocks"),
        ({"blocks": [section("x", "mrkdwn", emoji=True)]}, "invalid_blocks"),
        ({"blocks": [section("x", "mrkdwn", verbatim="yes")]}, "invalid_blocks"),
        ({"blocks": [section("a <b", "mrkdwn")]}, "invalid_blocks"),
        ({"blocks": [fields(10, "x" * 1300)]}, "ok"),
        ({"blocks": [fields(11)]}, "invalid_blocks"),
        ({"blocks": [fields(1, "x" * 2001)]}, "invalid_blocks"),
        ({"blocks": [{**SECTION, "colour": "red"}]}, "invalid_blocks"),
        ({"blocks": [{"type": "section"}]}, "invalid_blocks"),
        ({"blocks": [{"type": "poll"}]}, "invalid_blocks"),
        ({"blocks": ["x"]}, "invalid_blocks"),
        ({"blocks": [section("x" * 2640)] * 5}, "ok"),
        ({"blocks": [section("x" * 2641)] * 5}, "msg_blocks_too_long"),
    ],
)  # fmt: skip
def test_slack_refuses_what_is_beyond_its_rules(slack, change, error):
    body = {"channel": CHANNEL, "text": "hello", **change}

    assert said(slack, "chat.postMessage", body) == error


def test_slack_refuses_tokens_scopes_and_bodies_that_are_wrong(slack):
    body = {"channel": CHANNEL, "text": "hello"}

    assert said(slack, "chat.postMessage", body, token="xoxb-other") == "invalid_auth"
    assert said(slack, "chat.postMessage", body, token=None) == "not_authed"
    assert said(slack, "chat.postMessage", b"{") == "invalid_json"
    assert said(slack, "chat.postMessage", b"[1]") == "json_not_object"
    assert said(slack, "chat.postMessage", body, content_type="text/plain") == "invalid_post_type"
    assert said(slack, "chat.shout", body) == "unknown_method"
    assert said(slack, "auth.test", b"") == "ok"


def test_slack_edits_only_what_there_is_and_only_by_id(slack):
    ts = json.loads(
        call(slack.api_url + "chat.postMessage", {"channel": CHANNEL, "text": "one"})[2]
    )["ts"]

    edit = {"channel": CHANNEL, "ts": ts, "text": "two"}
    assert said(slack, "chat.update", edit) == "ok"
    assert said(slack, "chat.update", {**edit, "channel": "alerts"}) == "channel_not_found"
    assert said(slack, "chat.update", {**edit, "ts": "1.000000"}) == "message_not_found"
    assert said(slack, "chat.update", {**edit, "unfurl_links": False}) == "invalid_arg_name"

    (message,) = [message for message in slack.messages if message.ts == ts]
    assert message.text == "two"
    assert [edited["text"] for edited in message.edits] == ["one"]


def test_slack_takes_a_message_a_second_and_says_when_to_come_back():
    with SlackStandIn() as slack:
        body = {"channel": CHANNEL, "text": "hello"}
        assert call(slack.api_url + "chat.postMessage", body)[0] == 200
        status, headers, raw = call(slack.api_url + "chat.postMessage", body)

    assert status == 429
    assert headers["Retry-After"] == "1"
    assert json.loads(raw)["error"] == "ratelimited"
    assert len(slack.messages) == 1


def test_slack_takes_fifty_edits_a_minute():
    with SlackStandIn() as slack:
        call(slack.api_url + "chat.postMessage", {"channel": CHANNEL, "text": "hello"})
        edit = {"channel": CHANNEL, "ts": slack.messages[0].ts, "text": "again"}
        answers = [said(slack, "chat.update", edit) for _ in range(51)]

    assert answers == ["ok"] * 50 + ["ratelimited"]


def test_the_incoming_webhook_refuses_what_slack_does(slack):
    def told(body, url=slack.webhook_url):
        status, _, raw = call(url, body, token=None)
        return status, raw.decode()

    assert told({"text": "hello"}) == (200, "ok")
    assert told({"text": ""}) == (400, "no_text")
    assert told({"text": "hello", "channel": "#x"}) == (400, "invalid_payload")
    assert told(b"{") == (400, "invalid_payload")
    assert told({"text": "x", "blocks": [SECTION] * 51}) == (400, "invalid_blocks")
    assert told({"text": "x"}, slack.url + "/services/T/B/x") == (404, "no_service")


def test_pings_are_seen_in_every_form(slack):
    for change, pings in [
        ({"text": "<!channel> hi"}, ["<!channel>"]),
        ({"text": "<@U012AB3CD>"}, ["<@U012AB3CD>"]),
        ({"text": "@here", "link_names": True}, ["@here"]),
        ({"text": "@here", "link_names": False}, []),
        ({"text": "x", "blocks": [section("<!here>", "mrkdwn")]}, ["<!here>"]),
        ({"text": "x", "blocks": [section("@here", "mrkdwn")]}, ["@here"]),
        ({"text": "x", "blocks": [section("@here", "mrkdwn", verbatim=True)]}, []),
    ]:
        assert said(slack, "chat.postMessage", {"channel": CHANNEL, **change}) == "ok"
        assert slack.messages[-1].pings == pings


@contextmanager
def process(module, *arguments):
    ran = subprocess.Popen(
        [sys.executable, "-m", f"tests.support.{module}", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield json.loads(ran.stdout.readline())
    finally:
        ran.send_signal(signal.SIGTERM)
        ran.wait(10)
        ran.stdout.close()


def test_slack_runs_as_a_process_and_keeps_a_record(tmp_path):
    record = tmp_path / "slack.jsonl"
    faults = '[{"status": 503}, {"drop": true, "accept": true, "path": "update"}]'
    body = {
        "channel": CHANNEL,
        "text": "hello",
        "metadata": {"event_type": "wtwin_alert", "event_payload": {"key": "ntf_9"}},
    }

    with process("slack_standin", "--record", str(record), "--faults", faults) as shown:
        assert call(shown["api_url"] + "chat.postMessage", body)[0] == 503
        assert call(shown["api_url"] + "chat.postMessage", body)[0] == 200

    first, second = map(json.loads, record.read_text().splitlines())
    assert (first["status"], first["accepted"]) == (503, False)
    assert (second["status"], second["accepted"], second["key"]) == (200, True, "ntf_9")
    assert second["body"]["text"] == "hello"
    assert TOKEN not in record.read_text()


def test_the_webhook_receiver_runs_as_a_process(tmp_path):
    record = tmp_path / "hooks.jsonl"

    with process("webhook_standin", "--record", str(record)) as shown:
        status, _, _ = call(shown["hook_url"], {"type": "x"}, token=None)

    assert status == 401
    assert json.loads(record.read_text())["accepted"] is False


def test_a_request_whose_sender_dies_before_its_body_is_whole_takes_no_effect():
    with SlackStandIn() as slack:
        with socket.create_connection(("127.0.0.1", slack.port), timeout=20) as sender:
            sender.sendall(
                b"POST /api/chat.postMessage HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n"
                b"Content-Type: application/json;charset=utf-8\r\n"
                b"Authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
            )
            sender.shutdown(socket.SHUT_WR)
            assert sender.recv(1) == b""

        assert slack.requests == []
        assert slack.mistakes == []
