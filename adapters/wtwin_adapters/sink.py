"""Where rows become points: a sink takes rows until a limit is reached or the steps go back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from operator import le
from typing import Any

from wtwin_adapters.files import digest
from wtwin_adapters.numbers import Column, Value
from wtwin_adapters.points import Block, Points
from wtwin_watch.model import ROW_LOGGED, Point, Restart

OTHER_WRITER = "row of another writer"
"""Why a row gives no points where two processes write their steps into one log."""

_MAX_SEEN = 256
_LEAPS, _SOON, _MANY_BEHIND = 2, 8, 100
_ENOUGH = 0.75
_new = tuple.__new__


@dataclass(slots=True)
class Order:
    """Tells a log that goes on from an earlier step from one that two processes write to in turn.

    The first counts up again from where it went back to. The second leaps ahead of all it had, and back
    again: after two such leaps soon after steps went back, rows behind the others are another writer's.
    """

    top: float = 0.0
    """The highest step before the steps went back last."""
    since: int | None = None
    """Rows since then, while they are few."""
    leaps: int = 0
    mixed: bool = False
    """Two processes write."""
    behind: int = 0
    """Rows behind the others in a row; where they are many, the log does go on from there."""

    def forward(self, step: float) -> None:
        """Take note of a row that is no step back."""
        self.behind = 0
        if self.since is None:
            return
        self.since += 1
        if step > self.top:
            self.leaps, self.since = self.leaps + 1, None
            self.mixed = self.leaps >= _LEAPS
        elif self.since > _SOON:
            self.leaps, self.since = 0, None


@dataclass(slots=True)
class Progress:
    """How far a log was read, in rows. ``dump`` and ``load`` are its JSON form."""

    row: int = 0
    """Data rows consumed; header and blank lines don't count."""
    part: int = 0
    """Points of the next row already given away, where a row has more points than a limit."""
    seen: dict[str, float] = field(default_factory=dict)
    """The last step of each metric."""
    first: str | None = None
    """What the first row said, as a digest."""
    last: str | None = None
    """What the row consumed last said."""
    order: Order = field(default_factory=Order)
    """What is known of rows whose steps went back."""

    def dump(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "row": self.row,
            "part": self.part,
            "seen": dict(list(self.seen.items())[-_MAX_SEEN:]),
            "first": self.first,
            "last": self.last,
            "order": asdict(self.order),
        }

    @classmethod
    def load(cls, form: dict[str, Any]) -> Progress:
        """Read the JSON form."""
        order = Order(**form.get("order", {}))
        return cls(
            form["row"], form["part"], dict(form["seen"]), form["first"], form["last"], order
        )


class Sink:
    """Collects at most ``limit`` points; is ``full`` when the next row must wait for the next fetch.

    ``max_row`` ends it after that many rows of the log. A step lower than the last one of the same
    metric ends it too, and opens the next sink with a `Restart`; it is per metric because training and
    validation rows of one log need not be in order with each other.
    """

    def __init__(self, progress: Progress, limit: int, max_row: int | None = None) -> None:
        self.progress = progress
        self.points = Points()
        self.skipped: Counter[str] = Counter()
        self.restart: Restart | None = None
        self.full = False
        self._limit = limit
        self._max_row = max_row
        self._last: tuple[float | None, Sequence[tuple[str, float]]] | None = None

    def offer(
        self,
        step: Value,
        values: Sequence[tuple[str, Value]],
        idle: str | None = None,
        wall_time: float | None = None,
    ) -> bool:
        """Take a row as it was read, or say that it must wait. What is no number is counted as skipped.

        ``idle`` is why such rows give no points at all. ``wall_time`` is when it was logged, unix seconds.
        """
        good: list[tuple[str, float]] = []
        reasons = [idle] if idle else []
        for name, value in values:
            if isinstance(value, float):
                good.append((name, value))
            elif value is not None:
                reasons.append("not a number")
        if isinstance(step, float) and math.isfinite(step):
            taken = self.add(step, good, wall_time, told=not idle)
        else:
            if good:
                reasons.append("no step" if step is None else "step is not a number")
            taken = self.add(None, [])
        if taken and reasons:
            self.skipped.update(reasons)
        return taken

    def add(
        self,
        step: float | None,
        values: Sequence[tuple[str, float]],
        wall_time: float | None = None,
        *,
        told: bool = True,
    ) -> bool:
        """Take a row, or say that it must wait. ``step`` None: the row has no values either.

        A row with a step and no values is told by a point of `ROW_LOGGED`, unless it isn't to be ``told``.
        """
        progress = self.progress
        if self._max_row is not None and progress.row >= self._max_row:
            self.full = True
            return False
        if values and step is not None:
            rest = values[progress.part :] if progress.part else values
            room = self._limit - len(self.points)
            too_long = len(rest) > room
            # A row is kept together unless it is larger than the limit itself.
            if too_long and (self.points or room <= 0):
                self.full = True
                return False
            if not progress.part:
                if self._is_another_writers(step, values):
                    self.skipped[OTHER_WRITER] += 1
                    return self._done(step, values)
                if not self._in_order(step, values):
                    return False
            for name, value in rest[:room] if too_long else rest:
                self.points.append(_new(Point, (name, step, value, wall_time)))
                progress.seen[name] = step
            if too_long:
                self.full = True
                progress.part += room
                return False
        if told and step is not None and not values:
            if len(self.points) >= self._limit:
                self.full = True
                return False
            self.points.append(_new(Point, (ROW_LOGGED, step, 0.0, wall_time)))
        return self._done(step, values)

    def _done(self, step: float | None, values: Sequence[tuple[str, float]]) -> bool:
        progress = self.progress
        progress.part = 0
        progress.row += 1
        self._last = (step, values)
        if progress.row == 1:
            progress.first = _row_digest(step, values)
        return True

    def rows_left(self, width: int) -> int:
        """How many rows of ``width`` points may still come."""
        room = (self._limit - len(self.points)) // width
        return room if self._max_row is None else min(room, self._max_row - self.progress.row)

    def add_block(
        self, names: Sequence[str], steps: list[float], columns: Sequence[Column], *, sparse: bool
    ) -> int:
        """Take rows column by column, which is several times as fast; returns how many were taken.

        Only if ``sparse`` may columns hold None. No row is taken where one needs a closer look: then
        they go through `add`.
        """
        progress, width = self.progress, len(names)
        room = self.rows_left(width)
        if room <= 0 or progress.part or progress.order.since is not None:
            return 0
        if len(steps) > room:
            steps, columns = steps[:room], [column[:room] for column in columns]
        # The steps between are finite too, since they are in order.
        if not (math.isfinite(steps[0]) and math.isfinite(steps[-1])):
            return 0
        if not all(map(le, steps, islice(steps, 1, None))):
            return 0
        ends = [_ends(steps, column) if sparse else (steps[0], steps[-1]) for column in columns]
        seen = progress.seen
        for name, (first, _) in zip(names, ends, strict=True):
            if first is not None and first < seen.get(name, first):
                return 0
        self.points.add(Block(names, steps, columns, sparse=sparse))
        if progress.row == 0:
            progress.first = _row_digest(steps[0], _row(names, columns, 0))
        progress.row += len(steps)
        progress.order.behind = 0
        seen.update((n, last) for n, (_, last) in zip(names, ends, strict=True) if last is not None)
        self._last = (steps[-1], _row(names, columns, len(steps) - 1))
        # What is left of the room isn't worth ever smaller blocks.
        self.full = sparse and len(self.points) >= _ENOUGH * self._limit
        return len(steps)

    def close(self) -> None:
        """Bring ``progress`` up to date for its JSON form."""
        if self._last is not None:
            self.progress.last = _row_digest(*self._last)

    def _is_another_writers(self, step: float, values: Sequence[tuple[str, float]]) -> bool:
        order, seen = self.progress.order, self.progress.seen
        if not order.mixed or all(step >= seen.get(name, step) for name, _ in values):
            return False
        if order.behind + 1 >= _MANY_BEHIND:
            return False
        order.behind += 1
        return True

    def _in_order(self, step: float, values: Sequence[tuple[str, float]]) -> bool:
        seen = self.progress.seen
        for name, _ in values:
            if step < seen.get(name, step):
                if self.points or self.restart:
                    self.full = True
                    return False
                self.restart = Restart(f"steps go back from {seen[name]:.15g} to {step:.15g}", step)
                leaps = 0 if self.progress.order.mixed else self.progress.order.leaps
                self.progress.order = Order(top=max(seen.values()), since=0, leaps=leaps)
                self.progress.seen = {n: min(s, step) for n, s in seen.items()}
                return True
        self.progress.order.forward(step)
        return True


def _ends(steps: list[float], column: Column) -> tuple[float | None, float | None]:
    """The steps of the first and the last value of a column."""
    first = next((s for s, v in zip(steps, column, strict=False) if v is not None), None)
    back = zip(reversed(steps), reversed(column), strict=True)
    return first, next((s for s, v in back if v is not None), None)


def _row(names: Sequence[str], columns: Sequence[Column], i: int) -> list[tuple[str, float]]:
    cells = ((name, column[i]) for name, column in zip(names, columns, strict=True))
    return [(name, value) for name, value in cells if value is not None]


def _row_digest(step: float | None, values: Sequence[tuple[str, float]]) -> str:
    # By name and sorted: a header written anew may hold the same columns in another order.
    said = (step, sorted((name, repr(value)) for name, value in values))
    return digest(repr(said).encode())
