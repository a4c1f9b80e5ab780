"""Rows of a run's history as W&B gives them, and the points that they make."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wtwin_adapters.files import digest
from wtwin_adapters.naming import NO_LOSS, is_loss, usable
from wtwin_adapters.numbers import UNREADABLE, Value
from wtwin_watch.metrics import Names
from wtwin_watch.model import ROW_LOGGED, Point, Restart

STEP = "_step"
"""The counter that W&B keeps: it never repeats within a run."""
STAMP = "_timestamp"

_TRAINER_STEPS = ("trainer/global_step", "train/global_step", "global_step")
"""Where Lightning and Hugging Face write the step of training, while ``_step`` counts their calls."""
_SPELT = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DEEPEST = 8
_MAX_SEEN = 256


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its ``_step``, when it was logged, and what stands in it under flat names."""

    step: float
    stamp: float | None
    values: Mapping[str, Value]

    def digest(self, names: Names) -> str:
        """Tell this row from another one at the same step, by the metrics that are read."""
        said = sorted(
            (n, repr(v)) for n, v in self.values.items() if v is not None and usable(n, names)
        )
        return digest(repr((self.stamp, said)).encode())


def rows_of(answers: list[Any], skipped: Counter[str]) -> list[Row]:
    """Make rows of what was answered, in the order of their steps, each step once."""
    rows: dict[float, Row] = {}
    for answer in answers:
        row = _row(answer)
        if row is None:
            skipped["row without a step"] += 1
        else:
            rows.setdefault(row.step, row)
    return [rows[step] for step in sorted(rows)]


def _row(answer: Any) -> Row | None:
    if not isinstance(answer, dict):
        return None
    values = flat(answer)
    step, stamp = values.get(STEP), values.get(STAMP)
    if not isinstance(step, float) or not math.isfinite(step):
        return None
    known = isinstance(stamp, float) and math.isfinite(stamp)
    return Row(step, stamp if known and isinstance(stamp, float) else None, values)


def flat(row: Mapping[str, Any]) -> dict[str, Value]:
    """Give nested values dotted names, as the W&B page does; media and tables are left out."""
    found: dict[str, Value] = {}
    _flatten(row, "", found, 0)
    return found


def _flatten(row: Mapping[str, Any], prefix: str, found: dict[str, Value], depth: int) -> None:
    for key, value in row.items():
        if isinstance(value, dict):
            if "_type" not in value and depth < _DEEPEST:
                _flatten(value, f"{prefix}{key}.", found, depth + 1)
        else:
            found[prefix + key] = _value(value)


def _value(value: Any) -> Value:
    if isinstance(value, float):
        return value
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return UNREADABLE
    return _SPELT.get(value, UNREADABLE) if isinstance(value, str) else UNREADABLE


@dataclass(slots=True)
class Taken:
    """How far the rows of a run were made into points. ``dump`` and ``load`` are its JSON form."""

    last: tuple[float, float | None, str] | None = None
    """``_step``, time and digest of the row taken last."""
    part: int = 0
    """Points of the next row already given, where a row has more points than a limit."""
    step_name: str | None = None
    """What steps are taken from, as of the first row with a loss."""
    seen: dict[str, float] = field(default_factory=dict)
    """The last step of each metric."""
    rewound: bool = False
    """Rows were taken back: the next one may replace another of the same step."""

    def dump(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "last": None if self.last is None else list(self.last),
            "part": self.part,
            "step": self.step_name,
            "seen": dict(list(self.seen.items())[-_MAX_SEEN:]),
            "rewound": self.rewound,
        }

    @classmethod
    def load(cls, form: Mapping[str, Any]) -> Taken:
        """Read the JSON form."""
        last = form["last"]
        return cls(
            None if last is None else (last[0], last[1], last[2]),
            form["part"],
            form["step"],
            dict(form["seen"]),
            form["rewound"],
        )


class Gatherer:
    """Makes at most ``limit`` points of rows that are offered in their order.

    It is ``full`` when the next row has to wait for the next fetch: because of the limit, or because
    the steps of training go back, which a `Restart` at the head of the next batch tells.
    """

    def __init__(self, taken: Taken, names: Names, limit: int) -> None:
        self.taken = taken
        self.points: list[Point] = []
        self.skipped: Counter[str] = Counter()
        self.restart: Restart | None = None
        self.full = False
        self._names = names
        self._limit = limit

    def offer(self, row: Row) -> bool:
        """Take a row, or say that it must wait. A row that was taken before is passed over."""
        taken = self.taken
        if taken.last is not None and row.step <= taken.last[0]:
            return True
        # By name, since the client gives the cells of a row in another order each time.
        values = sorted(
            (n, v) for n, v in row.values.items() if v is not None and usable(n, self._names)
        )
        good = [(name, value) for name, value in values if isinstance(value, float)]
        step = self._step(row)
        if step is None:
            idle = NO_LOSS if taken.step_name is None else "no step"
            if values:
                self.skipped[idle] += 1
        elif not self._give(row, step, good):
            return False
        elif len(good) < len(values):
            self.skipped["not a number"] += len(values) - len(good)
        taken.part = 0
        taken.last = (row.step, row.stamp, row.digest(self._names))
        return True

    def _step(self, row: Row) -> float | None:
        taken = self.taken
        if taken.step_name is None and any(
            value is not None and is_loss(name, self._names) for name, value in row.values.items()
        ):
            taken.step_name = self._names.step or next(
                (name for name in _TRAINER_STEPS if isinstance(row.values.get(name), float)), STEP
            )
        step = row.values.get(taken.step_name) if taken.step_name is not None else None
        return step if isinstance(step, float) and math.isfinite(step) else None

    def _give(self, row: Row, step: float, values: list[tuple[str, float]]) -> bool:
        taken = self.taken
        room = self._limit - len(self.points)
        if room <= 0:
            self.full = True
            return False
        if not values:
            self.points.append(Point(ROW_LOGGED, step, 0.0, row.stamp))
            return True
        if not taken.part and not self._in_order(step, values):
            return False
        rest = values[taken.part :]
        if len(rest) > room:
            self.full = True
            # A row is kept together unless it is larger than the limit itself.
            if self.points:
                return False
            rest = rest[:room]
            taken.part += room
        for name, value in rest:
            self.points.append(Point(name, step, value, row.stamp))
            taken.seen[name] = step
        return not self.full

    def _in_order(self, step: float, values: list[tuple[str, float]]) -> bool:
        seen = self.taken.seen
        passed = max((seen.get(name, -math.inf) for name, _ in values), default=-math.inf)
        if self.taken.rewound:
            passed = max(seen.values(), default=-math.inf)
        if step < passed or (self.taken.rewound and step == passed):
            if self.points or self.restart:
                self.full = True
                return False
            self.restart = Restart(f"steps go back from {passed:.15g} to {step:.15g}", step)
            self.taken.seen = {name: min(last, step) for name, last in seen.items()}
        self.taken.rewound = False
        return True
