"""The third process of the demo: a receiver of webhooks as anybody might write one.

It listens on loopback, lets in only what is signed with the secret in ``$WTWIN_WATCH_WEBHOOK_SECRET``, as
Standard Webhooks 1.0 has it, and says what it got. ``python -m wtwin_watch.demo.receiver``
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from wtwin_watch.demo.speech import say

PATH = "/alerts"
SECRET_VARIABLE = "WTWIN_WATCH_WEBHOOK_SECRET"
TOLERANCE_S = 300.0
"""A delivery whose timestamp is further away than this may be an old one, sent again by a stranger."""
LARGEST_BODY = 1 << 20
_LONGEST_NUMBER = 15


def verify(key: bytes, headers: Mapping[str, str], body: bytes, now: float) -> None:
    """Check that ``body`` was signed with ``key`` and is fresh. Raises ValueError saying what is wrong.

    ``headers`` has their names in lower case.
    """
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not message_id or not _is_number(timestamp):
        raise ValueError("it has no id or no timestamp")
    if abs(now - int(timestamp)) > TOLERANCE_S:
        raise ValueError("its timestamp is too far from now")
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    offered = headers.get("webhook-signature", "").split(" ")
    if not any(hmac.compare_digest(b"v1," + expected, one.encode()) for one in offered):
        raise ValueError("its signature is wrong")


def decode_secret(secret: str) -> bytes:
    """Return the key in ``whsec_<base64>``. Raises ValueError, which doesn't quote it."""
    prefix, _, encoded = secret.partition("_")
    if prefix != "whsec":
        raise ValueError("the secret should begin with whsec_")
    return base64.b64decode(encoded, validate=True)


def make_server(
    key: bytes, got: Callable[[str, Mapping[str, Any]], None], refused: Callable[[str], None]
) -> ThreadingHTTPServer:
    """Listen on a free port of loopback; the caller turns it by ``serve_forever`` and closes it.

    ``got`` is called with the id and the JSON object of each delivery let in, ``refused`` with the reason of
    each other; both from threads of the server's.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0

        def do_POST(self) -> None:
            length = self.headers.get("content-length", "")
            if self.path != PATH:
                self._refuse(HTTPStatus.NOT_FOUND, f"nothing is received at {self.path}")
            elif not _is_number(length):
                self._refuse(HTTPStatus.LENGTH_REQUIRED, "it doesn't say how long it is")
            elif int(length) > LARGEST_BODY:
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "it is too long")
            else:
                self._take(self.rfile.read(int(length)))

        def _take(self, body: bytes) -> None:
            try:
                headers = {name.lower(): value for name, value in self.headers.items()}
                verify(key, headers, body, time.time())
            except ValueError as error:
                self._refuse(HTTPStatus.UNAUTHORIZED, str(error))
                return
            try:
                payload = json.loads(body)
            except (ValueError, RecursionError):
                payload = None
            if not isinstance(payload, dict):
                self._refuse(HTTPStatus.BAD_REQUEST, "its body is no JSON object")
                return
            got(self.headers["webhook-id"], payload)
            self.send_response(HTTPStatus.NO_CONTENT)
            self.end_headers()

        def _refuse(self, status: HTTPStatus, reason: str) -> None:
            refused(reason)
            self.close_connection = True
            self.send_error(status)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: what matters is said by ``got`` and ``refused``."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER


def main() -> None:
    """Receive until stopped."""
    key = decode_secret(os.environ[SECRET_VARIABLE])
    server = make_server(
        key,
        got=lambda id, payload: say("delivery", id=id, at=time.time(), payload=payload),
        refused=lambda reason: say("refused", reason=reason),
    )
    with server:
        say("listening", port=server.server_address[1])
        server.serve_forever()


if __name__ == "__main__":
    main()
