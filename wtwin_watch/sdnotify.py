"""Talk to systemd: ready, alive, what is being done, stopping. Nothing happens where systemd isn't.

Messages are datagrams to the socket named by ``$NOTIFY_SOCKET`` (sd_notify(3)).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

LONGEST_STATUS = 1000


class Systemd:
    """The service manager that started this process, if one did. Sending never raises and never waits."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the null byte of Linux's abstract sockets.
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def ready(self) -> None:
        """Say that starting is over."""
        self._send("READY=1")

    def status(self, status: str) -> None:
        """Say in a line what is being done; ``systemctl status`` shows it."""
        self._send(f"STATUS={_line(status)}")

    def watchdog(self) -> None:
        """Say that the work goes on. systemd restarts a service that stops saying so."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the service is about to end."""
        self._send("STOPPING=1", "STATUS=stopping")

    def _send(self, *assignments: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.setblocking(False)
                channel.sendto("\n".join(assignments).encode(), self._address)
        except OSError:
            # systemd misses a message at worst; the watching must not suffer for it.
            pass


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_STATUS]
