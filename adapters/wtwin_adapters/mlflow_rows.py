"""The rows of MLflow metrics, and how those of several metrics become the points of one run.

Rows are taken in the order of their time, over all metrics of the run, whatever pieces they were read in.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from wtwin_watch.model import Point, Restart

_INFINITE = 1.797e308
_LARGEST = sys.float_info.max
"""What a server stores for infinity."""
_RACE_MS = 1000
_RACE_STEPS = 50
"""Steps that go back this little within a second are writers who race, not a restart."""


class Row(NamedTuple):
    """One logged value. The order of rows is a server's own: by time, then step, then value."""

    timestamp: int
    """Unix milliseconds."""
    step: int
    value: float | None
    """None for NaN, so that equal rows are equal; infinity as the server stores it."""

    @property
    def rank(self) -> tuple[int, int, float]:
        """What rows are ordered by; a NaN lies among them as a zero."""
        return self.timestamp, self.step, 0.0 if self.value is None else self.value


def row_of(metric: Mapping[str, Any]) -> Row:
    """Read a metric as a server's JSON has it. Raises ValueError or TypeError if it is none."""
    value = float(metric.get("value", 0.0))
    return row_with(int(metric.get("timestamp", 0)), int(metric.get("step", 0)), value)


def row_with(timestamp: int, step: int, value: float) -> Row:
    """Make a row of a value as it was logged."""
    stored = None if math.isnan(value) else max(-_LARGEST, min(value, _LARGEST))
    return Row(timestamp, step, stored)


@dataclass(slots=True)
class Course:
    """How far the points of one metric have come."""

    taken: int = 0
    """Rows that became points."""
    newest: int | None = None
    """The latest time of them, unix milliseconds."""
    top: int | None = None
    """The highest step of them."""
    seen: int | None = None
    """The highest step of them since the log last went back."""

    def dump(self) -> list[Any]:
        """Give the JSON form."""
        return [self.taken, self.newest, self.top, self.seen]

    @property
    def behind(self) -> bool:
        """Whether the log went back and hasn't come again to where it was."""
        return self.seen is not None and self.top is not None and self.seen < self.top

    def when(self, row: Row) -> int:
        """The time by which ``row`` is merged: a late one comes right after what came before it."""
        return row.timestamp if self.newest is None else max(self.newest, row.timestamp)

    def goes_back(self, row: Row) -> bool:
        """Whether with ``row`` the log starts again from an earlier step."""
        if self.seen is None or self.newest is None or row.step >= self.seen:
            return False
        waited = row.timestamp - self.newest
        return waited >= 0 and (waited > _RACE_MS or self.seen - row.step > _RACE_STEPS)

    def take(self, row: Row) -> None:
        """Count ``row`` in."""
        self.taken += 1
        self.newest = self.when(row)
        self.top = row.step if self.top is None else max(self.top, row.step)
        self.seen = row.step if self.seen is None else max(self.seen, row.step)


class Stream(Protocol):
    """The rows of one metric from where reading stands."""

    name: str
    course: Course

    @property
    def counted(self) -> bool:
        """Whether every row has the step 0, as when none is given: their number is their step then."""
        ...

    def peek(self) -> Row | None:
        """The next row, or None at the end. Raises `SourceError`."""
        ...

    def pop(self) -> None:
        """Take that row."""
        ...


@dataclass(slots=True)
class Merge:
    """The points of at most ``limit`` rows, taken from several streams in the order of their time."""

    points: list[Point] = field(default_factory=list)
    restart: Restart | None = None
    more: bool = False

    def read(self, streams: Sequence[Stream], courses: Iterable[Course], limit: int) -> None:
        """Take rows until ``limit`` points are there or a restart has to go before what is next.

        ``courses`` are those of all metrics of the run, since a restart is one for all of them.
        """
        courses = list(courses)
        heads = {stream.name: (stream, row) for stream in streams if (row := stream.peek())}
        while heads:
            stream, row = min(
                heads.values(), key=lambda h: (h[0].course.when(h[1]), h[1].step, h[0].name)
            )
            if len(self.points) >= limit or not self._begin(stream, row, courses):
                self.more = True
                return
            self._take(stream, row)
            following = stream.peek()
            if following is None:
                del heads[stream.name]
            else:
                heads[stream.name] = stream, following

    def _begin(self, stream: Stream, row: Row, courses: Sequence[Course]) -> bool:
        """Begin anew where the log goes back; whether ``row`` may come now."""
        if stream.counted or not stream.course.goes_back(row):
            return True
        if self.points or self.restart:
            return False
        self.restart = Restart(
            f"steps go back from {stream.course.seen} to {row.step}", float(row.step)
        )
        for course in courses:
            if course.seen is not None:
                course.seen = min(course.seen, row.step)
        return True

    def _take(self, stream: Stream, row: Row) -> None:
        course = stream.course
        step = float(course.taken if stream.counted else row.step)
        self.points.append(Point(stream.name, step, number(row), row.timestamp / 1000.0))
        course.take(row)
        stream.pop()


def number(row: Row) -> float:
    """The value of ``row`` as it was logged."""
    value = row.value
    if value is None:
        return math.nan
    return math.copysign(math.inf, value) if abs(value) >= _INFINITE else value
