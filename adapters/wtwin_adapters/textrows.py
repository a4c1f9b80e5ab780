"""Rows of a text log: the lines among all others that tell a step and a loss."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from wtwin_adapters.epochs import Epochs
from wtwin_adapters.naming import ROW_NUMBER, is_loss, usable
from wtwin_adapters.numbers import Value, number
from wtwin_adapters.patterns import PATTERNS, Pattern
from wtwin_adapters.sink import Sink
from wtwin_adapters.textline import Row
from wtwin_watch.metrics import Names, Role, belief

OWN = "own pattern"
"""The name of a pattern that the user gave."""
LONGEST_OWN = 2048
"""A longer line isn't searched for the user's pattern, whose cost may grow as the square of it."""
_LONGEST = 1 << 14
_MARKS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_MAX_METRICS = 64
_ENOUGH = 2000
_HINTS = (
    rb"loss",
    rb"t[re]l:",
    rb": cost ",
    rb"xent: ",
    rb" avg.* rate, ",
    rb"\[(?:step|batch)=\d",
)
"""What is in the lines that are chosen by."""
SAME_STEP = "another row of the same step"


def own_pattern(regex: str) -> Pattern:
    """Make a pattern of a user's regular expression, whose named groups are the step and the metrics."""
    compiled = re.compile(regex)

    def read(text: str, names: Names) -> Row | None:
        found = compiled.search(text) if len(text) <= LONGEST_OWN else None
        if found is None:
            return None
        values = [(k, number(v)) for k, v in found.groupdict().items() if v is not None]
        step = next((value for key, value in values if key == "step"), None)
        rest = [(key, value) for key, value in values if key != "step"]
        return Row(step, rest, "step" if "step" in compiled.groupindex else ROW_NUMBER)

    counted = "step" not in compiled.groupindex
    return Pattern(OWN, re.compile(b""), read, counts_rows=counted)


def lines_of(chunk: bytes) -> list[bytes]:
    """Split at line ends; a carriage return, with which progress bars begin anew, is one too."""
    return chunk.replace(b"\r", b"\n").split(b"\n")


def choose_pattern(lines: Iterable[bytes], names: Names) -> Pattern | None:
    """Choose the pattern that reads ``lines``, a log from its beginning; None if there is none (yet)."""
    lines = _candidates(lines, names)
    counts = {p.name: _rows(p, lines, lambda n: is_loss(n, names), names) for p in _patterns(names)}
    most = max(counts.values())
    for pattern in _patterns(names):
        # The last one reads nearly everything, and so it has to find more to be believed.
        enough = 2 if pattern.name == "key=value" else 1
        if counts[pattern.name] >= max(enough, most / 2):
            return pattern
    return None


def _patterns(names: Names) -> list[Pattern]:
    if names.loss is None and names.val_loss is None:
        return list(PATTERNS)
    given = [re.escape(name.encode()) for name in (names.loss, names.val_loss) if name]
    mark = re.compile(b"(?i)" + b"|".join([b"loss", *given]))
    last = PATTERNS[-1]
    return [*PATTERNS[:-1], Pattern(last.name, mark, last.read)]


def _candidates(lines: Iterable[bytes], names: Names) -> list[bytes]:
    """The first lines that may tell a loss; there are enough of them to choose by."""
    given = [re.escape(name.encode()) for name in (names.loss, names.val_loss) if name]
    may = re.compile(b"(?i)" + b"|".join([*_HINTS, *given])).search
    return list(islice((line for line in lines if len(line) <= _LONGEST and may(line)), _ENOUGH))


def tells_training(pattern: Pattern, lines: Iterable[bytes], names: Names) -> bool:
    """Whether a log that ``pattern`` reads tells another loss than that of validation."""
    found = _candidates(lines, names)
    return _rows(pattern, found, lambda name: role_of(name) is Role.LOSS, names) > 0


def role_of(name: str) -> Role | None:
    """The role a metric usually has."""
    known = belief(name)
    return known[0] if known is not None else None


def _rows(
    pattern: Pattern, lines: Iterable[bytes], wanted: Callable[[str], bool], names: Names
) -> int:
    """Count the lines that have both a step and a metric that is ``wanted``."""
    count, at = 0, None
    for line in lines:
        if not pattern.mark.search(line):
            continue
        row = pattern.read(_text(line), names)
        if row is None:
            continue
        at = row.step if row.step is not None else at if pattern.step_before else None
        if at is not None or pattern.counts_rows:
            count += any(isinstance(v, float) and wanted(n) for n, v in row.values)
    return count


def _text(line: bytes) -> str:
    if b"\x1b" in line:
        line = _MARKS.sub(b"", line)
    return line.decode("utf-8", "replace")


class TextRows:
    """Reads the lines of one pattern and passes over all others. ``dump`` gives its state as JSON."""

    def __init__(self, names: Names, form: dict[str, Any], own: Pattern | None = None) -> None:
        self._names = names
        name: str = form["pattern"]
        by_name = {pattern.name: pattern for pattern in _patterns(names)}
        self._pattern = own if own is not None else by_name[name]
        self._step_name: str | None = form.get("step")
        # The step that was read last: a line without one belongs to it.
        self._at: float | None = form.get("at")
        self._epoch: int = form.get("epoch", 0)
        self._epochs = Epochs.load(form.get("epochs"))
        # The metrics seen at that step.
        self._here: list[str] = list(form.get("here", []))

    def dump(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "pattern": self._pattern.name,
            "step": self._step_name,
            "at": self._at,
            "epoch": self._epoch,
            "epochs": self._epochs.dump(),
            "here": self._here,
        }

    @property
    def step_name(self) -> str | None:
        """What steps are taken from, or None while that is not known."""
        return self._step_name

    def take(self, chunk: bytes, sink: Sink, *, last: bool) -> int:
        """Give the rows of ``chunk`` (whole lines) to ``sink``; returns the bytes consumed."""
        lines = lines_of(chunk)
        if not lines[-1]:
            lines.pop()
        mark = self._pattern.mark.search
        done = 0
        for line in lines:
            if sink.full:
                break
            if len(line) > _LONGEST:
                sink.skipped["line too long"] += 1
            elif mark(line) and not self._take_line(line, sink):
                break
            done += 1
        return min(sum(map(len, islice(lines, done))) + done, len(chunk))

    def _take_line(self, line: bytes, sink: Sink) -> bool:
        row = self._pattern.read(_text(line), self._names)
        if row is None:
            return True
        values = [(n, v) for n, v in row.values if usable(n, self._names)][:_MAX_METRICS]
        if row.epoch is not None:
            self._epoch = row.epoch
            return True
        if row.step is None and not values:
            return True
        step, epochs = self._step_of(row, values, sink)
        if step is None and self._pattern.counts_rows:
            return True
        if not isinstance(step, float) or not math.isfinite(step):
            return sink.offer(step, values)
        if self._pattern.step_before and row.step is not None:
            self._step_name = self._step_name or row.step_name
            self._at, self._here = step, []
            return True
        return self._take_row(row, step, values, sink, epochs)

    def _step_of(
        self, row: Row, values: list[tuple[str, Value]], sink: Sink
    ) -> tuple[Value, Epochs]:
        """The step of a row, and how epochs are counted once it is taken."""
        step, epochs = row.step, self._epochs
        if step is None:
            if not self._pattern.counts_rows:
                return self._at, epochs
            told = any(isinstance(value, float) for _, value in values)
            return (sink.progress.row + 1.0 if told else None), epochs
        if row.total and isinstance(step, float):
            step += self._epoch * row.total
        elif row.within is not None and isinstance(step, float):
            return epochs.counted(step, row.within)
        return step, epochs

    def _take_row(
        self,
        row: Row,
        step: float,
        values: list[tuple[str, Value]],
        sink: Sink,
        epochs: Epochs,
    ) -> bool:
        here = self._here if step == self._at else []
        fresh = (
            values if row.step_name.lower() == "epoch" else [v for v in values if v[0] not in here]
        )
        if values and not fresh:
            sink.skipped[SAME_STEP] += 1
            return True
        if not values and step == self._at:
            return True
        if not sink.offer(step, fresh):
            return False
        self._epochs = epochs
        self._step_name = self._step_name or row.step_name
        self._at, self._here = step, list(dict.fromkeys([*here, *(n for n, _ in fresh)]))
        return True
