"""An HTTP server on loopback that records every request and can be told to misbehave.

`SlackStandIn` and `WebhookStandIn` build on it. A test says beforehand what goes wrong:

    with SlackStandIn() as slack:
        slack.faults.append(Fault(status=429, headers={"Retry-After": "2"}))
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request (the next whose path contains ``path``).

    ``accept``: the request takes effect nevertheless, only its answer is spoilt.
    One of ``status``, ``html``, ``drop``, ``hang``, ``drip_s``, ``truncate`` spoils the answer;
    with ``delay_s`` alone the answer is right but late.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    html: bool = False
    """Answer 200 with a web page, as a captive portal does."""
    drop: bool = False
    """Close the connection without an answer."""
    hang: bool = False
    """Say nothing until the server ends."""
    drip_s: float | None = None
    """Send a never-ending answer, one byte each so many seconds."""
    truncate: bool = False
    """Close the connection in the middle of the answer."""
    delay_s: float = 0.0
    accept: bool = False
    path: str = ""
    times: int = 1

    @property
    def spoils(self) -> bool:
        """Whether another answer than the right one is given."""
        return bool(
            self.status or self.html or self.drop or self.hang or self.drip_s or self.truncate
        )


@dataclass(frozen=True)
class Request:
    """What arrived. ``headers`` have lower-case names."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    def json(self) -> Any:
        """The body as JSON, or None where it isn't JSON."""
        try:
            return json.loads(self.raw)
        except ValueError:
            return None


@dataclass(frozen=True)
class Answer:
    """What is sent back, and what the record says of it."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    """The idempotency key the request carried."""


class StandIn(ABC):
    """Base of the stand-ins: a server, its faults, and its record of requests.

    ``requests`` holds a mapping for each request: time, path, body, status, answer, key, fault.
    ``record`` names a file to which each is also appended as a line of JSON.
    """

    def __init__(self, *, port: int = 0, record: Path | None = None) -> None:
        self.faults: list[Fault] = []
        self.requests: list[dict[str, Any]] = []
        self.port = port
        self._record = record
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._ended = threading.Event()
        self._connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None

    @abstractmethod
    def answer(self, request: Request) -> Answer:
        """Let a request take effect. Called with the lock held."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        """Listen, on the same port as before."""
        self._server = _Server(("127.0.0.1", self.port), _handler(self))
        self.port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def down(self) -> None:
        """Refuse connections, and end those there are."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            _cut(connection)

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self.down()

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> bool:
        """Wait until ``condition`` holds; it is looked at after every request."""
        with self._changed:
            return self._changed.wait_for(condition, timeout_s)

    def handle(self, request: Request, connection: socket.socket) -> bytes | None:
        """Answer one request: the bytes to send, or None where the connection is to be closed."""
        with self._changed:
            fault = self._next_fault(request.path)
            accepted = fault is None or fault.accept or not fault.spoils
            given = self.answer(request) if accepted else Answer(status=0)
            sent = _spoilt(fault, given) if fault is not None else given
            self._note(request, given, sent, fault)
            self._changed.notify_all()
        if fault is not None:
            self._ended.wait(fault.delay_s)
            if fault.hang:
                self._ended.wait()
            if fault.drip_s:
                self._drip(connection, fault.drip_s)
            if fault.hang or fault.drip_s or fault.drop:
                return None
            if fault.truncate:
                whole = _serialised(sent)
                connection.sendall(whole[:-1] if sent.body else whole[:10])
                return None
        return _serialised(sent)

    def _next_fault(self, path: str) -> Fault | None:
        for index, fault in enumerate(self.faults):
            if fault.path in path:
                if fault.times > 1:
                    self.faults[index] = replace(fault, times=fault.times - 1)
                else:
                    del self.faults[index]
                return fault
        return None

    def _note(self, request: Request, given: Answer, sent: Answer, fault: Fault | None) -> None:
        lost = fault is not None and (fault.drop or fault.hang or bool(fault.drip_s))
        entry = {
            "time": time.time(),
            "path": request.path,
            "body": request.json(),
            "accepted": 200 <= given.status < 300 and not _says_no(given),
            "status": None if lost else sent.status,
            "answer": None if lost else sent.body.decode("utf-8", "replace"),
            "key": given.key,
        }
        self.requests.append(entry)
        if self._record is not None:
            with self._record.open("a", encoding="utf-8") as out:
                out.write(json.dumps(entry) + "\n")

    def _drip(self, connection: socket.socket, each_s: float) -> None:
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not self._ended.wait(each_s):
                connection.sendall(b"a")
        except OSError:
            return


def _says_no(answer: Answer) -> bool:
    return answer.body.startswith(b'{"ok": false')


def _spoilt(fault: Fault, given: Answer) -> Answer:
    if fault.html:
        return Answer(200, b"<html><body>Please log in</body></html>", "text/html", fault.headers)
    if fault.status is not None:
        return Answer(fault.status, fault.body.encode(), given.content_type, fault.headers)
    return given


def _serialised(answer: Answer) -> bytes:
    head = [f"HTTP/1.1 {answer.status} -", f"Content-Type: {answer.content_type}"]
    head += [f"{name}: {value}" for name, value in answer.headers.items()]
    head += [f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
    return "\r\n".join(head).encode("latin-1") + answer.body


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that gave up is part of the game.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            stand_in._connections.add(self.connection)

        def finish(self) -> None:
            stand_in._connections.discard(self.connection)
            super().finish()

        def log_message(self, format: str, *args: Any) -> None:
            return

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            if len(raw) < length:
                # Who sent it is gone, killed perhaps: half a request is none.
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = stand_in.handle(Request(self.path, headers, raw), self.connection)
            self.close_connection = True
            if answer is None:
                _cut(self.connection)
            else:
                self.wfile.write(answer)

        def do_GET(self) -> None:
            self.do_POST()

        def do_PUT(self) -> None:
            self.do_POST()

    return Handler


def faults_from(text: str) -> list[Fault]:
    """Read faults from JSON: a list of objects with the fields of `Fault`."""
    return [Fault(**fault) for fault in json.loads(text)]


def serve(stand_in: StandIn, **shown: str) -> None:
    """Run a stand-in as a process: print its addresses as one JSON line, then serve until killed."""
    with stand_in:
        line = {
            "port": stand_in.port,
            **{name: stand_in.url + path for name, path in shown.items()},
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        threading.Event().wait()
