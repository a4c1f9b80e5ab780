"""The receiver of the demo on loopback, told by the watcher's own notifier and by strangers."""

import base64
import http.client
import threading
import time
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from tests.support.notifications import notification
from wtwin_notifiers.webhook import WebhookNotifier, WebhookOptions
from wtwin_notifiers.webhook_body import headers, signing_key
from wtwin_watch.demo.receiver import LARGEST_BODY, PATH, decode_secret, make_server
from wtwin_watch.errors import DeliveryError

pytestmark = pytest.mark.integration

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
OTHER = "whsec_" + base64.b64encode(b"x" * 32).decode()


class Receiver:
    """A running server, and what it said."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []
        self.refused: list[str] = []
        self.server = make_server(
            decode_secret(SECRET),
            lambda id, payload: self.got.append((id, payload["type"])),
            self.refused.append,
        )
        self.port = self.server.server_address[1]

    def notifier(self, secret: str) -> WebhookNotifier:
        url = SecretStr(f"http://127.0.0.1:{self.port}{PATH}")
        return WebhookNotifier(
            "hook", WebhookOptions.model_construct(url=url, secret=(SecretStr(secret),))
        )

    def status(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.putrequest(method, path)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,))
    thread.start()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()
    thread.join()


def test_what_the_watcher_signs_is_let_in(receiver: Receiver):
    told = notification()

    receiver.notifier(SECRET).send(told)

    assert receiver.got == [(told.id, "run.alert.firing")]
    assert receiver.refused == []


def test_a_wrong_secret_is_refused_for_good(receiver: Receiver):
    with pytest.raises(DeliveryError, match="HTTP 401") as failure:
        receiver.notifier(OTHER).send(notification())

    assert failure.value.permanent
    assert receiver.got == []
    assert receiver.refused == ["its signature is wrong"]


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "reason"),
    [
        ("/", {"content-length": "0"}, b"", 404, "nothing is received at /"),
        (PATH, {}, b"", 411, "it doesn't say how long it is"),
        (PATH, {"content-length": "-1"}, b"", 411, "it doesn't say how long it is"),
        (PATH, {"content-length": "9" * 5000}, b"", 411, "it doesn't say how long it is"),
        (PATH, {"content-length": str(LARGEST_BODY + 1)}, b"", 413, "it is too long"),
        (PATH, {"content-length": "2"}, b"{}", 401, "it has no id or no timestamp"),
    ],
)
def test_a_stranger_is_refused(
    receiver: Receiver, path: str, headers: dict[str, str], body: bytes, status: int, reason: str
):
    assert receiver.status("POST", path, headers, body) == status
    assert receiver.refused == [reason]
    assert receiver.got == []


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_signed_body_that_is_no_json_object_is_refused(receiver: Receiver, body: bytes):
    assert receiver.status("POST", PATH, _signed(body), body) == 400
    assert receiver.refused == ["its body is no JSON object"]


def test_only_posts_are_received(receiver: Receiver):
    assert receiver.status("GET", PATH, {}) == 501


def _signed(body: bytes) -> dict[str, str]:
    return {
        "content-length": str(len(body)),
        **headers("msg_1", time.time(), body, [signing_key(SECRET)]),
    }
