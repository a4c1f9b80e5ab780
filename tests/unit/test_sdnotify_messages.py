import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wtwin_watch.sdnotify import Systemd


@pytest.fixture(params=["file", "abstract"])
def listening(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[str, socket.socket]]:
    """A socket as systemd has one: its name in the environment, and the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        if request.param == "file":
            name = str(tmp_path / "notify")
            ear.bind(name)
        else:
            name = f"@wtwin-watch-test-{os.getpid()}"
            ear.bind("\0" + name[1:])
        ear.settimeout(5)
        yield name, ear


def test_systemd_hears_each_message_as_its_manual_has_it(listening: tuple[str, socket.socket]):
    name, ear = listening
    systemd = Systemd({"NOTIFY_SOCKET": name})

    systemd.ready()
    assert ear.recv(4096) == b"READY=1"
    systemd.status("watching 12 runs,\n1 firing")
    assert ear.recv(4096) == b"STATUS=watching 12 runs, 1 firing"
    systemd.watchdog()
    assert ear.recv(4096) == b"WATCHDOG=1"
    systemd.stopping()
    assert ear.recv(4096) == b"STOPPING=1\nSTATUS=stopping"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_without_systemd_nothing_happens(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    opened = []
    real = socket.socket
    monkeypatch.setattr(socket, "socket", lambda *args: opened.append(args) or real(*args))
    systemd = Systemd(environ)

    systemd.ready()
    systemd.watchdog()

    assert bool(opened) == bool(environ)


def test_a_full_socket_holds_nothing_up(tmp_path: Path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        systemd = Systemd({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        started = time.monotonic()

        for _ in range(2000):
            systemd.status("x" * 900)

        assert time.monotonic() - started < 5
