"""Reading on in the metrics of one run of an MLflow file store: a file a metric, a line a value.

A line is ``timestamp value step``, in the order in which values were logged. Metrics are merged by time, as
those of a server are (`wtwin_adapters.mlflow_rows`).
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wtwin_adapters.files import digest, opened
from wtwin_adapters.growing import HEAD, Position, Replaced, is_same
from wtwin_adapters.mlflow_rows import Course, Merge, Row, row_with
from wtwin_adapters.naming import ROW_NUMBER
from wtwin_adapters.numbers import number
from wtwin_watch.model import Batch, Cursor, Restart

_CHUNK = 1 << 16
_LAST = 256
_VERSION = 1
_JUNK, _LONG = "line that is no metric", "line too long"
# Two fields have the step 0. Behind the step there may be a data set's name and digest.
_LINE = re.compile(
    rb"[\0\s]*(-?\d{1,15}) (\S+)(?: (-?\d{1,19})(?: \S+ \S.*)?)?\s*", re.ASCII | re.DOTALL
)


@dataclass(slots=True)
class _Mark:
    """How far one metric was read."""

    position: Position = field(default_factory=Position)
    course: Course = field(default_factory=Course)

    def dump(self) -> list[Any]:
        return [self.position.offset, self.position.head, self.course.dump()]

    @classmethod
    def load(cls, form: list[Any]) -> _Mark:
        offset, head, course = form
        return cls(Position(offset, head=head), Course(*course))


def read_run(files: Mapping[str, str], cursor: Cursor | None, limit: int) -> Batch:
    """Read at most ``limit`` points after ``cursor`` in the metrics' files, paths by metrics' names.

    Costs what is new, and opening each file. Raises `SourceError` where one can't be read.
    """
    marks, restart = {}, None
    if cursor is not None:
        if cursor.get("v") == _VERSION:
            marks = {name: _Mark.load(form) for name, form in cursor["metrics"].items()}
        else:
            restart = Restart("the position was stored by another version")
    try:
        return _read(files, marks, limit, restart)
    except Replaced as replaced:
        if any(mark.course.taken for mark in marks.values()):
            restart = Restart(f"metric {replaced} was replaced or cut")
        return _read(files, {}, limit, restart)


def _read(
    files: Mapping[str, str], marks: dict[str, _Mark], limit: int, restart: Restart | None
) -> Batch:
    streams = [
        _MetricFile(name, path, marks.setdefault(name, _Mark()))
        for name, path in sorted(files.items())
        if os.path.exists(path)
    ]
    courses = [mark.course for mark in marks.values()]
    merge = Merge(restart=restart)
    merge.read(streams, courses, max(limit, 1))
    skipped: Counter[str] = Counter()
    for stream in streams:
        stream.keep_place()
        skipped += stream.skipped
    taken = max((course.taken for course in courses), default=0)
    counted = any(stream.only_zeros and stream.course.taken > 1 for stream in streams)
    return Batch(
        merge.points,
        {"v": _VERSION, "metrics": {name: mark.dump() for name, mark in sorted(marks.items())}},
        merge.more,
        merge.restart,
        dict(skipped),
        f"point {taken}",
        ROW_NUMBER if counted else "step",
    )


class _MetricFile:
    """The rows of one file behind ``mark``, a `wtwin_adapters.mlflow_rows.Stream`.

    Lines are whole ones of the file as it is when this is made. Raises `Replaced` if it is another file
    than that which was read before.
    """

    def __init__(self, name: str, path: str, mark: _Mark) -> None:
        self.name = name
        self.course = mark.course
        self.skipped: Counter[str] = Counter()
        self._path = path
        self._position = mark.position
        self._lines: deque[tuple[int, Row | str]] = deque()
        self._at = mark.position.offset
        with opened(path) as fd:
            self._size = os.fstat(fd).st_size
            if not is_same(fd, self._size, mark.position):
                raise Replaced(name)
            self._head = os.pread(fd, HEAD, 0)
            last = os.pread(fd, _LAST, max(0, self._size - _LAST))
        whole = last[: last.rfind(b"\n") + 1].splitlines()
        latest = _row(whole[-1]) if whole else None
        self.only_zeros = isinstance(latest, Row) and latest.step == 0 and not self.course.top
        """Whether no steps are given: the last one is 0, and none was another."""

    @property
    def counted(self) -> bool:
        """Whether rows are counted in place of steps."""
        row = self.peek()
        return self.only_zeros and not self.course.top and row is not None and row.step == 0

    def peek(self) -> Row | None:
        """The next row, or None at the end. Lines before it that are none are counted and passed over."""
        while True:
            while self._lines:
                end, row = self._lines[0]
                if isinstance(row, Row):
                    return row
                if row:
                    self.skipped[row] += 1
                self._lines.popleft()
                self._position.offset = end
            if not self._more():
                return None

    def pop(self) -> None:
        """Take that row."""
        self._position.offset, _ = self._lines.popleft()

    def keep_place(self) -> None:
        """Remember the beginning of what was read, to know the file by."""
        self._position.head = digest(self._head[: self._position.offset])

    def _more(self) -> bool:
        """Read the next whole lines; False if there are none."""
        length = min(_CHUNK, self._size - self._at)
        with opened(self._path) as fd:
            chunk = os.pread(fd, length, self._at)
            whole = chunk[: chunk.rfind(b"\n") + 1]
            if not whole:
                return len(chunk) == _CHUNK and self._pass_over(fd)
        for line in whole[:-1].split(b"\n"):
            self._at += len(line) + 1
            self._lines.append((self._at, _row(line)))
        return True

    def _pass_over(self, fd: int) -> bool:
        """Go behind a line that is longer than any metric's, once it has its end; else it stays."""
        at = self._at
        while at < self._size:
            chunk = os.pread(fd, min(_CHUNK, self._size - at), at)
            if not chunk:
                return False
            end = chunk.find(b"\n")
            if end >= 0:
                self._at = at + end + 1
                self._lines.append((self._at, _LONG))
                return True
            at += len(chunk)
        return False


def _row(line: bytes) -> Row | str:
    """Read a line; where it is no row, why it is skipped, empty for a blank one."""
    if not line.strip(b"\0 \t\r"):
        return ""
    parts = _LINE.fullmatch(line)
    if parts is None:
        return _JUNK
    value = number(parts[2].decode("ascii", "replace"))
    if not isinstance(value, float):
        return _JUNK
    return row_with(int(parts[1]), int(parts[3] or 0), value)
