"""A training job as a process of its own: it logs the losses it is told to.

    python -m tests.support.log_writer csv FILE
    python -m tests.support.log_writer tensorboard FOLDER

Each line on stdin is a JSON object: ``losses`` to log, and ``each_s``, the seconds between two of them.
It answers with the number of rows logged so far, once they are on disk. Event files are written by
TensorBoard's own writer. Tests hold it through `LogWriter`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tests.support.process import PATIENCE_S, ROOT

Log = Callable[[Sequence[tuple[int, float]]], None]


class LogWriter:
    """The job, as its test sees it. ``written`` is the number of rows it has confirmed."""

    def __init__(self, kind: str, path: Path) -> None:
        self.path = path
        self.written = 0
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "tests.support.log_writer", kind, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def write(self, losses: Sequence[float], each_s: float = 0.0) -> None:
        """Log ``losses``, and return when they are on disk."""
        self.begin(losses, each_s)
        self.finish()

    def begin(self, losses: Sequence[float], each_s: float = 0.0) -> None:
        """Log ``losses`` in the background, up to `finish`."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps({"losses": list(losses), "each_s": each_s}) + "\n")
        self._popen.stdin.flush()

    def finish(self) -> None:
        """Wait until what was begun is on disk."""
        assert self._popen.stdout is not None
        self.written = int(self._popen.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._popen.kill()
        self._popen.communicate(timeout=PATIENCE_S)


def _csv(path: Path) -> Log:
    path.parent.mkdir(parents=True, exist_ok=True)
    out = path.open("a", encoding="utf-8")
    out.write("step,loss\n")

    def log(rows: Sequence[tuple[int, float]]) -> None:
        out.write("".join(f"{step},{loss!r}\n" for step, loss in rows))
        out.flush()

    return log


def _tensorboard(folder: Path) -> Log:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))

    def log(rows: Sequence[tuple[int, float]]) -> None:
        for step, loss in rows:
            value = Summary.Value(tag="loss", simple_value=loss)
            event = Event(wall_time=time.time(), step=step, summary=Summary(value=[value]))
            writer.add_event(event)
        writer.flush()

    return log


def main() -> None:
    """Log what stdin says until it ends."""
    kind, path = sys.argv[1:]
    log = {"csv": _csv, "tensorboard": _tensorboard}[kind](Path(path))
    step = 0
    for line in sys.stdin:
        told = json.loads(line)
        rows = list(enumerate(told["losses"], start=step))
        step += len(rows)
        for piece in [[row] for row in rows] if told["each_s"] else [rows]:
            log(piece)
            time.sleep(told["each_s"])
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
