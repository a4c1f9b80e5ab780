"""Writers of logs, and a short way to read one."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from wtwin_adapters.tabular import TabularSource
from wtwin_adapters.tensorboard import TensorBoardSource
from wtwin_watch.model import ROW_LOGGED, Batch, Cursor, Point
from wtwin_watch.testing import points_of, read_on

NOBODY = 65534


class Log:
    """One text log and the source that reads it: ``write`` to it, then ``read`` what is new."""

    def __init__(self, path: Path, **options: str):
        self.path = path
        self.source = TabularSource("logs", TabularSource.Options(path=path, **options))
        self.cursor: Cursor | None = None

    def write(self, text: str | bytes) -> None:
        """Append."""
        with self.path.open("ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def rewrite(self, text: str | bytes) -> None:
        """Write the file anew in place: the inode stays."""
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(0)
            file.write(text if isinstance(text, bytes) else text.encode())

    def read(self, limit: int = 10_000) -> list[Batch]:
        """Read on from where the last read stopped."""
        (run,) = self.source.runs()
        batches = read_on(self.source, run, self.cursor, limit)
        self.cursor = batches[-1].cursor
        return batches

    def points(self, limit: int = 10_000) -> list[Point]:
        """Read on; the points alone."""
        return points_of(self.read(limit))

    def losses(self, metric: str = "loss") -> list[tuple[float, float]]:
        """Read on; step and value of one metric."""
        return [(p.step, p.value) for p in self.points() if p.metric == metric]

    def come_to_rest(self) -> None:
        """Let the last change be an hour ago."""
        then = self.path.stat().st_mtime - 3600
        os.utime(self.path, (then, then))


def values(batches: list[Batch]) -> list[Point]:
    """The points that hold a value: all but those that say only that a row was logged."""
    return [point for batch in batches for point in batch.points if point.metric != ROW_LOGGED]


def skipped_of(batches: list[Batch]) -> dict[str, int]:
    """What was skipped in all batches together."""
    total: dict[str, int] = {}
    for batch in batches:
        for reason, count in batch.skipped.items():
            total[reason] = total.get(reason, 0) + count
    return total


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder of an ordinary user, as whom the test runs meanwhile: root may read everything."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0:
            yield Path(folder)
            return
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


class EventLog:
    """One folder of event files and the source that reads it. Records are made by TensorBoard's protos."""

    def __init__(self, folder: Path, **options: str):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.file = folder / "events.out.tfevents.1700000000.host.1.0"
        self.source = TensorBoardSource("tb", TensorBoardSource.Options(path=folder, **options))
        self.cursor: Cursor | None = None
        self.run = "."

    def begin(self, name: str) -> None:
        """Go on in another file of the folder."""
        self.file = self.folder / f"events.out.tfevents.{name}"

    def write(self, *records: bytes) -> None:
        """Append."""
        with self.file.open("ab") as file:
            file.write(b"".join(records))

    def read(self, limit: int = 10_000) -> list[Batch]:
        """Read on from where the last read stopped."""
        (run,) = [run for run in self.source.runs() if run.key.run == self.run]
        batches = read_on(self.source, run, self.cursor, limit)
        self.cursor = batches[-1].cursor
        return batches

    def losses(self, metric: str = "loss") -> list[tuple[float, float]]:
        """Read on; step and value of one metric."""
        return [(p.step, p.value) for p in points_of(self.read()) if p.metric == metric]


def record(event: Event) -> bytes:
    """Frame an event as a TFRecord."""
    return framed(event.SerializeToString())


def framed(data: bytes) -> bytes:
    """Frame any bytes as a TFRecord."""
    length = struct.pack("<Q", len(data))
    crcs = [struct.pack("<I", masked_crc32c(part)) for part in (length, data)]
    return length + crcs[0] + data + crcs[1]


def version(wall_time: float = 1.7e9) -> bytes:
    """The first record of a file."""
    return record(Event(wall_time=wall_time, file_version="brain.Event:2"))


def scalar(step: int, value: float, tag: str = "loss", wall_time: float = 1.7e9) -> bytes:
    """A scalar as ``add_scalar`` writes it."""
    summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
    return record(Event(wall_time=wall_time, step=step, summary=summary))


def scalars(steps: range, tag: str = "loss") -> bytes:
    """A record a step; the values are powers of two, which a float holds exactly."""
    return b"".join(scalar(step, 2.0 ** -(step % 32), tag) for step in steps)


def tensor(
    step: int,
    tag: str = "loss",
    plugin: str | None = None,
    wall_time: float = 1.7e9,
    **proto: object,
) -> bytes:
    """A scalar as TensorFlow 2 and ``new_style=True`` write it."""
    value = Summary.Value(tag=tag, tensor=TensorProto(**proto))
    if plugin is not None:
        value.metadata.plugin_data.plugin_name = plugin
    return record(Event(wall_time=wall_time, step=step, summary=Summary(value=[value])))


def session_start(step: int) -> bytes:
    """What a writer with ``purge_step`` logs first."""
    return record(Event(step=step, session_log=SessionLog(status=SessionLog.START)))
