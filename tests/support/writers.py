"""Writers of logs, and a short way to read one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wtwin_adapters.tabular import TabularSource
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
