"""Holds the process in which the genuine ``wandb`` client works: starts it, bounds it, ends it.

The client can wait for ever, keeps state that goes stale and has a helper process that may die; so it works
in a process of its own, where each of these has a cure: end it, and start it again when it is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from wtwin_watch.errors import SourceError

START_S = 40.0
"""The first answer may take so long: the client is imported, its helper started."""
CALL_S = 30.0
MOST_MEMORY = 1 << 30
"""Bytes of the process and its helper; past it, it is started anew after the answer."""
_LONGEST_ANSWER = 1 << 28
_GOES_BY_ITSELF_S = 3.0

_HANDED_ON = frozenset(
    {
        *("HOME", "PATH", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME", "VIRTUAL_ENV", "NETRC"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "PYTHONPATH", "LD_LIBRARY_PATH"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
        *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
        *("XDG_CONFIG_HOME", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"),
    }
)
_OF_A_JOB = ("WANDB_MODE", "WANDB_DISABLED", "WANDB_RUN_", "WANDB_SERVICE", "WANDB_RESUME")


class ClientFailed(Exception):
    """The client answered with an error of its own. ``status`` is the HTTP status, where there was one."""

    def __init__(self, kind: str, status: int | None, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = status


class _Died(Exception):
    """The process ended before its answer."""


def child_environment(
    environ: Mapping[str, str], base_url: str | None, key: str | None
) -> dict[str, str]:
    """Make the environment of the client: what it needs of ours, its key, and bounds for its patience."""
    env = {
        name: value
        for name, value in environ.items()
        if name in _HANDED_ON or (name.startswith("WANDB_") and not name.startswith(_OF_A_JOB))
    }
    if base_url is not None:
        env["WANDB_BASE_URL"] = base_url
    if key is not None:
        env["WANDB_API_KEY"] = key
    return env | {
        "WANDB_SILENT": "true",
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_HTTP_TIMEOUT": "10",
        "WANDB_X_GRAPHQL_RETRY_MAX": "2",
        "WANDB_X_GRAPHQL_RETRY_WAIT_MAX_SECONDS": "3",
        "WTWIN_WANDB_TIMEOUT_S": str(int(CALL_S) - 5),
    }


class Child:
    """The process, there from the first request on. ``env`` is its whole environment.

    One request at a time; others wait for their turn within their own time.
    """

    def __init__(self, env: Mapping[str, str], call_s: float = CALL_S) -> None:
        self._env = dict(env)
        self._call_s = call_s
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the process, while it is there."""
        process = self._process
        return None if process is None else process.pid

    def ask(self, what: str, within_s: float, **details: Any) -> dict[str, Any]:
        """Let the client do ``what``, and give its answer.

        Raises `ClientFailed` with an error of the client's, `SourceError` where there was no answer.
        """
        until = time.monotonic() + within_s
        if not self._turn.acquire(timeout=within_s):
            raise SourceError(f"the wandb client was busy for {within_s:.0f} s; it is asked again")
        try:
            for left in (1, 0):
                try:
                    answer = self._attempt(what, details, until)
                except _Died as died:
                    if left and not self._closed:
                        continue
                    raise SourceError("the wandb client died; it is started again") from died
                error = answer.get("error")
                if answer.get("lost") or answer.get("memory", 0) > MOST_MEMORY:
                    self._end()
                if not error:
                    return answer
                if not (answer.get("lost") and left):
                    raise ClientFailed(error["type"], error["status"], error["text"])
            raise AssertionError("unreachable")
        finally:
            self._turn.release()

    def close(self) -> None:
        """End the process. A request that is under way fails. From any thread."""
        self._closed = True
        process = self._process
        if process is not None and process.stdin is not None:
            # At the end of its input it goes, and whoever waits for its answer sees that.
            with contextlib.suppress(OSError):
                process.stdin.close()
        if self._turn.acquire(timeout=2 * _GOES_BY_ITSELF_S):
            self._end()
            self._turn.release()
        elif process is not None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

    def _attempt(self, what: str, details: dict[str, Any], until: float) -> dict[str, Any]:
        fresh = self._process is None or self._process.poll() is not None
        if fresh:
            self._end()
            self._start()
        process = self._process
        if process is None or process.stdin is None:
            raise SourceError("the wandb client was ended")
        self._number += 1
        request = {"id": self._number, "do": what, "with": details}
        until = min(until, time.monotonic() + (START_S if fresh else self._call_s))
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            return self._answer(process, until)
        except (OSError, ValueError) as error:
            self._end()
            if isinstance(error, TimeoutError):
                raise SourceError(
                    "the wandb client gave no answer in time and was ended; it is started again"
                ) from error
            raise _Died from error

    def _start(self) -> None:
        if self._closed:
            raise SourceError("the wandb client was ended")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "wtwin_adapters.wandb_child_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._env,
            start_new_session=True,
        )

    def _answer(self, process: subprocess.Popen[bytes], until: float) -> dict[str, Any]:
        assert process.stdout is not None
        pieces: list[bytes] = []
        size = 0
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise TimeoutError("no answer")
                piece = os.read(process.stdout.fileno(), 1 << 20)
                if not piece:
                    raise OSError("no answer any more")
                pieces.append(piece)
                size += len(piece)
                if piece.endswith(b"\n"):
                    break
                if size > _LONGEST_ANSWER:
                    raise ValueError("an answer beyond all reason")
        answer = json.loads(b"".join(pieces))
        if not isinstance(answer, dict) or answer.get("id") != self._number:
            raise ValueError("an answer to another question")
        return answer

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        # At the end of its input it goes by itself and takes its helper along.
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GOES_BY_ITSELF_S)
        if process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        with contextlib.suppress(OSError):
            process.stdout.close()
