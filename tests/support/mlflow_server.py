"""A real MLflow tracking server on loopback, and a job that logs to it through MLflow's own client.

Both are processes of their own: the client changes warnings and hooks of the process it is imported in.

    python -m tests.support.mlflow_server URI

is the job: each line on stdin is a JSON list, a method of `MlflowClient` and its arguments; it answers with
what the method returns. Metrics are lists of key, value, timestamp and step.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.process import ROOT

START_S = 150.0
"""How long a server may take to answer: it imports a great deal, on a machine that may be busy."""
NOW_MS = 1_790_000_000_000
"""A time for points whose own doesn't matter, unix milliseconds."""
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
}


def environ(**more: str) -> dict[str, str]:
    """The environment without settings of MLflow that a person may have."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    return {**env, **QUIET, "PYTHONPATH": str(ROOT), **more}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class MlflowServer:
    """A server with its database in ``folder``. ``program`` is the Python that has MLflow."""

    def __init__(
        self, folder: Path, program: str = sys.executable, env: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.database = folder / "mlflow.db"
        self.log = folder / "server.log"
        self.port = free_port()
        self._program = program
        self._env = environ(**(env or {}))
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        """Start it, and wait until it answers."""
        command = [self._program, "-m", "mlflow", "server", "--host", "127.0.0.1", "-w", "1"]
        command += ["--port", str(self.port), "--backend-store-uri", f"sqlite:///{self.database}"]
        command += ["--default-artifact-root", str(self.folder / "artifacts")]
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env,
                cwd=self.folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            told = self.log.read_text(errors="replace")[-2000:]
            assert self._popen.poll() is None, f"the server ended:\n{told}"
            assert time.monotonic() < deadline, f"the server doesn't answer:\n{told}"
            time.sleep(0.1)

    def down(self) -> None:
        """End it with all its children."""
        if self._popen is not None:
            # The group is its own, so that no child stays.
            os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()
            self._popen = None

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.uri}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *exc: object) -> None:
        self.down()


class MlflowJob:
    """A process with MLflow's client, as its test sees it. ``home`` holds no settings of a person."""

    def __init__(self, uri: str, home: Path, env: Mapping[str, str] | None = None) -> None:
        self.uri = uri
        self._names = 0
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "tests.support.mlflow_server", uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=environ(HOME=str(home), **(env or {})),
        )

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of `MlflowClient`; returns its value as JSON."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._popen.stdin.write(json.dumps([method, *args]) + "\n")
        self._popen.stdin.flush()
        answer = json.loads(self._popen.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def experiment(self, name: str) -> str:
        """Make an experiment, and return its id."""
        number: str = self.call("create_experiment", name)
        return number

    def run(self, experiment: str, name: str | None = None, tags: Any = None) -> str:
        """Begin a run in the experiment of this id, and return the run's id."""
        number: str = self.call("create_run", experiment, None, tags, name)["run_id"]
        return number

    def log(
        self,
        run: str,
        values: Sequence[float],
        key: str = "loss",
        first: int = 0,
        at: int = NOW_MS,
        each_ms: int = 1000,
    ) -> None:
        """Log ``values`` at the steps from ``first`` on, a second apart."""
        rows = [[key, v, at + i * each_ms, first + i] for i, v in enumerate(values)]
        self.rows(run, rows)

    def rows(self, run: str, rows: Sequence[Sequence[Any]]) -> None:
        """Log rows of key, value, timestamp and step."""
        for begin in range(0, len(rows), 1000):
            self.call("log_batch", run, rows[begin : begin + 1000])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._popen.kill()
        self._popen.wait()
        self._popen.stdin.close()
        self._popen.stdout.close()


@contextmanager
def server_and_job(
    folder: Path, program: str = sys.executable
) -> Iterator[tuple[MlflowServer, MlflowJob]]:
    """A server, and a job that logs to it."""
    with MlflowServer(folder, program) as server, MlflowJob(server.uri, folder) as job:
        yield server, job


def main() -> None:
    """Be the job."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient(sys.argv[1])
    # The client prints on stdout what it thinks a person likes to read.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        method, *args = json.loads(line)
        if method == "log_batch":
            args[1] = [Metric(*row) for row in args[1]]
        try:
            answer = {"value": _plain(getattr(client, method)(*args))}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


def _plain(value: Any) -> Any:
    """What a method returned, as far as tests look at it."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if hasattr(value, "info"):
        return {
            "run_id": value.info.run_id,
            "name": value.info.run_name,
            "status": value.info.status,
        }
    if hasattr(value, "step"):
        return [value.key, value.value, value.timestamp, value.step]
    return value if isinstance(value, str | int | float | bool) else None


if __name__ == "__main__":
    main()
