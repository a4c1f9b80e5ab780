"""A real SMTP server on loopback that keeps the mail it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller


class _Keep:
    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))  # type: ignore[arg-type]
        return "250 OK"


@contextmanager
def smtp_server() -> Iterator[tuple[int, list[EmailMessage]]]:
    """Serve; yields the port and the list of mails taken."""
    kept = _Keep()
    controller = _AnyPort(kept, hostname="127.0.0.1", port=0)
    controller.start()
    try:
        yield controller.port, kept.mails
    finally:
        controller.stop()


class _AnyPort(Controller):
    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()
