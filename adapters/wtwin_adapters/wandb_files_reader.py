"""Reading on in the ``.wandb`` files of one run: from a cursor to a batch of points."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from wtwin_adapters.files import shown
from wtwin_adapters.growing import Position, Positions, Replaced, read_files
from wtwin_adapters.naming import usable
from wtwin_adapters.sink import Order, Progress, Sink
from wtwin_adapters.wandb_files_blocks import CORRUPT, MAGIC, Blocks
from wtwin_adapters.wandb_records import HISTORY, STEP, Rows, parts
from wtwin_watch.errors import SourceError
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Restart

_VERSION = 1
NO_RECORD = "record that is no record of wandb"
# A fetch that finds no points at all still ends, so that a worker isn't held for ever.
_MAX_BYTES = 1 << 26


class RunReader:
    """Reads on in the files of a run, given oldest first by the names they have in the cursor."""

    def __init__(self, names: Names, paths: Mapping[str, str]) -> None:
        self._names = names
        self._paths = paths

    def read(self, cursor: Mapping[str, Any] | None, limit: int) -> Batch:
        """Read at most ``limit`` points after ``cursor``. Raises `SourceError`."""
        positions, progress, restart = Positions(), Progress(), None
        if cursor is not None:
            if cursor.get("v") == _VERSION:
                positions = Positions.load(cursor["where"])
                progress = Progress.load(cursor["progress"])
            else:
                restart = Restart("the position was stored by another version")
        reader = _Files(self._names, progress, limit, restart)
        try:
            more = read_files(positions, self._paths, reader)
        except Replaced as replaced:
            if progress.seen:
                restart = Restart(f"{replaced} was replaced or cut")
            positions = Positions()
            reader = _Files(self._names, Progress(), limit, restart)
            more = read_files(positions, self._paths, reader)
        sink = reader.sink
        sink.close()
        positions.tidy(self._paths)
        form = {"v": _VERSION, "where": positions.dump(), "progress": sink.progress.dump()}
        row = f"row {sink.progress.row}"
        skipped = dict(sink.skipped)
        return Batch(sink.points, form, more, sink.restart, skipped, row, self._names.step or STEP)


class _Files:
    """Takes rows out of one file after the other, into a sink."""

    def __init__(
        self, names: Names, progress: Progress, limit: int, restart: Restart | None
    ) -> None:
        self.sink = Sink(progress, max(limit, 1))
        self.sink.restart = restart
        self._rows = Rows(lambda name: usable(name, names), names.step or STEP)
        self._left = _MAX_BYTES

    @property
    def full(self) -> bool:
        return self.sink.full

    @property
    def given(self) -> int:
        return len(self.sink.points)

    @property
    def begun(self) -> bool:
        return bool(self.sink.points or self.sink.restart)

    def next_file(self, *, beside: bool) -> None:
        # A file has one writer, whatever was seen of the one before.
        self.sink.progress.order = Order()
        if beside:
            self.sink.progress.seen = {}

    def read(self, path: str, fd: int, size: int, position: Position) -> None:
        """Read on up to the file's end, or until the sink is full."""
        if not _begins(path, fd):
            return
        sink = self.sink
        sink.progress.part = position.part
        start = position.offset
        blocks = Blocks(fd, position.offset)
        for piece, end in blocks:
            if isinstance(piece, str):
                # What is damaged at the end of a file was told when it was found.
                if piece != CORRUPT or not position.damaged:
                    sink.skipped[piece] += 1
                position.damaged = False
            elif not self._take(piece):
                break
            position.offset = end
            if end - start > self._left:
                sink.full = True
                break
        position.part, sink.progress.part = sink.progress.part, 0
        self._left -= position.offset - start
        if blocks.damaged and not position.damaged:
            sink.skipped[CORRUPT] += 1
            position.damaged = True

    def _take(self, record: bytes) -> bool:
        try:
            found = parts(record)
            if HISTORY not in found:
                return True
            row = self._rows.row(record, *found[HISTORY])
        except ValueError:
            self.sink.skipped[NO_RECORD] += 1
            return True
        return self.sink.offer(row.step, row.values, wall_time=row.wall_time)


def _begins(path: str, fd: int) -> bool:
    """Whether the file has its header. Raises `SourceError` where it has another one."""
    head = os.pread(fd, len(MAGIC), 0)
    if not MAGIC.startswith(head):
        raise SourceError(
            f"{shown(path)} doesn't begin as files of wandb do; take it out of the source's path"
        )
    return len(head) == len(MAGIC)
