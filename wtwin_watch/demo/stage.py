"""The processes of the demo: started together, heard through one queue, and ended whatever happens."""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

PATIENCE_S = 15.0
"""How long a process may take to end in order; the watcher delivers what is under way meanwhile."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Line:
    """What a process wrote, or, with ``text`` None, that it has ended."""

    speaker: str
    text: str | None


@dataclass
class Stage:
    """The processes that were started, in order, and what they write."""

    lines: queue.Queue[Line] = field(default_factory=queue.Queue)
    _running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, speaker: str, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Start a process, and return its id. It has no input, and a process group of its own.

        So Ctrl-C reaches the parent alone, which ends the others in order.
        """
        process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,
            # All are started before there is a second thread, which is when this is safe.
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )
        self._running[speaker] = process
        return process.pid

    def first_line(self, speaker: str) -> str:
        """Wait for the first line of a process; empty if it ended without one. Before `listen` only."""
        output = self._running[speaker].stdout
        assert output is not None
        return output.readline()

    def listen(self) -> None:
        """Put what the processes write from now on into ``lines``. After all are started."""
        for speaker, process in self._running.items():
            threading.Thread(target=self._read, args=(speaker, process), daemon=True).start()

    def stop(self, speaker: str) -> None:
        """End a process in order, or after `PATIENCE_S` by force."""
        process = self._running[speaker]
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        # Nothing of ours starts children; should a part do so one day, they end here.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    def stop_all(self) -> None:
        """End every process, the last started first."""
        for speaker in reversed(self._running):
            self.stop(speaker)

    def _read(self, speaker: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for text in output:
                self.lines.put(Line(speaker, text.rstrip("\n")))
        self.lines.put(Line(speaker, None))


@contextmanager
def stage() -> Iterator[Stage]:
    """Give a stage, and end its processes: at the end, at an error, at Ctrl-C, at SIGTERM and SIGHUP.

    The signals come out as KeyboardInterrupt. In the main thread only.
    """
    actors = Stage()
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _interrupt) for number in ending}
    try:
        yield actors
    finally:
        # A second Ctrl-C must not leave anybody behind.
        for number in ending:
            signal.signal(number, signal.SIG_IGN)
        actors.stop_all()
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """Ask Linux to end this process when its parent is killed and can't do it any more."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
