"""The program as a process: started, followed through its log, killed and ended by a test.

A `Program` is one state file and the settings to start with; each `Program.start` is a process of its own.
The fixture ``program`` makes one whose home, settings and environment are empty.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from wtwin_watch.store import read_status
from wtwin_watch.store.status import RunStatus, Status

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
"""How long a test waits for what must come: much, since the machine may be busy."""
KILLED = -signal.SIGKILL


def wait_until(condition: Callable[[], Any], timeout_s: float = PATIENCE_S) -> Any:
    """Wait until ``condition`` gives something true, and return that; else what it gave last."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


class Process:
    """One start of the program. ``log`` is what it wrote to stderr so far, ``out`` to stdout."""

    def __init__(self, command: list[str], env: Mapping[str, str], folder: Path, number: int):
        self._log = folder / f"{number}.log"
        self._out = folder / f"{number}.out"
        with self._log.open("wb") as err, self._out.open("wb") as out:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=ROOT
            )
        self.started_at = time.time()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def out(self) -> str:
        return self._out.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def logged(self, phrase: str, times: int = 1, timeout_s: float = PATIENCE_S) -> bool:
        """Wait until ``phrase`` stands in the log ``times`` times; whether it came to that."""

        def enough() -> bool:
            return self.log.count(phrase) >= times

        wait_until(lambda: enough() or not self.running, timeout_s)
        return enough()

    def ready(self) -> Process:
        """Wait until every source has answered once."""
        assert self.logged(" ready "), self.log
        return self

    def kill(self) -> None:
        """End it as a power cut would."""
        self._popen.kill()
        self._popen.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout_s: float = PATIENCE_S) -> int:
        """Ask it to end, and return its exit code."""
        self._popen.send_signal(number)
        return self.wait(timeout_s)

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """Wait for its own end; returns the exit code, negative for a signal."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s} s:\n{self.log}") from None


@dataclass
class Program:
    """The program with its state in ``folder``. ``args`` come with every start."""

    folder: Path
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)

    @property
    def state(self) -> str:
        return str(self.folder / "state.db")

    def configure(self, text: str) -> None:
        """Start with this settings file from now on."""
        path = self.folder / "config.toml"
        path.write_text(text)
        self.args += ["--config", str(path)]

    def start(self, *more: str, fault: str | None = None) -> Process:
        """Start it; with ``fault`` through `tests.support.faulty_daemon`."""
        command = [sys.executable, "-m", "wtwin_watch"]
        if fault is not None:
            command = [sys.executable, "-m", "tests.support.faulty_daemon", "--fault", fault, "--"]
        command += ["run", *self.args, "--state", self.state, *more]
        process = Process(command, self._environ(), self.folder, len(self.processes))
        self.processes.append(process)
        return process

    def once(self, *more: str) -> Process:
        """Let it look once, to its end."""
        process = self.start("--once", *more)
        process.wait()
        return process

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run another command of the program to its end."""
        return subprocess.run(
            [sys.executable, "-m", "wtwin_watch", *args],
            env=self._environ(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def status(self) -> Status:
        return read_status(self.state, time.time())

    def runs(self) -> dict[str, RunStatus]:
        """How each run stands in the state, by its source's name."""
        return {run.run.key.source: run for run in self.status().runs}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the state itself."""
        with closing(sqlite3.connect(f"file:{self.state}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()

    def alerts(self) -> list[dict[str, Any]]:
        """Every alert there ever was, in the order of their steps."""
        alerts = [json.loads(text) for (text,) in self.rows("SELECT alert_json FROM alerts")]
        return sorted(alerts, key=lambda alert: alert["detection"]["onset_step"] or 0)

    def monitors(self) -> dict[str, Any]:
        """The state of each run's monitor, by its source's name."""
        return {
            source: json.loads(text)["state"]
            for source, text in self.rows("SELECT source, monitor_json FROM runs")
        }

    def known(self, count: int = 1) -> bool:
        """Wait until ``count`` runs are known: their history is read and saved."""

        def saved() -> bool:
            runs = self.status().runs
            return len(runs) == count and not any(run.backlog for run in runs)

        self.processes[-1].ready()
        return bool(wait_until(saved))

    def _environ(self) -> dict[str, str]:
        ours = ("WTWIN_WATCH_", "SLACK_", "XDG_", "NOTIFY_", "WATCHDOG_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return {**env, "HOME": str(self.folder), "PYTHONPATH": str(ROOT), **self.env}

    def end(self) -> None:
        """Leave no process behind."""
        for process in self.processes:
            if process.running:
                process.kill()


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The program, with nothing known and nothing set."""
    program = Program(tmp_path_factory.mktemp("program"))
    yield program
    program.end()
