"""A service manager's side of sd_notify(3): the socket in ``$NOTIFY_SOCKET``."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Self

from tests.support.process import wait_until


class ServiceManager:
    """Collects what a service says. ``address`` goes into its environment."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "notify")
        self._said: list[tuple[float, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._socket.setblocking(False)

    def said(self) -> list[str]:
        """Every assignment so far, oldest first."""
        self._read()
        return [text for _, text in self._said]

    def hears(self, assignment: str) -> bool:
        """Wait for an assignment that begins like this."""
        return bool(wait_until(lambda: any(text.startswith(assignment) for text in self.said())))

    def silent_for_s(self, name: str) -> float:
        """How long ago ``name`` was last assigned, seconds."""
        self._read()
        return time.monotonic() - max(
            (at for at, text in self._said if text.startswith(name + "=")), default=0.0
        )

    def _read(self) -> None:
        while True:
            try:
                message = self._socket.recv(4096).decode()
            except BlockingIOError:
                return
            self._said += [(time.monotonic(), text) for text in message.split("\n")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()
