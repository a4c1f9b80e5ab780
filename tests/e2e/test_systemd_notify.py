import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e


def test_systemd_hears_that_the_program_is_ready_alive_and_ends(tmp_path: Path):
    log = tmp_path / "run.csv"
    log.write_text("step,loss\n1,2.5\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(30)
        environ = {
            **os.environ,
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "STATE_DIRECTORY": str(tmp_path / "state"),
            "HOME": str(tmp_path),
        }
        program = subprocess.Popen(
            [sys.executable, "-m", "wtwin_watch", "--csv", str(log)],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            heard: list[str] = []
            wanted = ["READY=1", "WATCHDOG=1", "STATUS=watching 1 run"]
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not all(
                any(line.startswith(start) for line in heard) for start in wanted
            ):
                heard += ear.recv(4096).decode().split("\n")

            program.send_signal(signal.SIGTERM)
            while "STOPPING=1" not in heard and time.monotonic() < deadline:
                heard += ear.recv(4096).decode().split("\n")

            assert "STOPPING=1" in heard
            assert program.wait(30) == 0
            assert (tmp_path / "state" / "state.db").exists()
        finally:
            program.kill()
            program.communicate()
