"""Rows of JSON Lines: one object a line, nested ones flattened to names joined by ``/``."""

from __future__ import annotations

import json
import math
import re
from itertools import groupby, islice
from typing import Any

import orjson

from wtwin_adapters.epochs import Epochs, epoch_among
from wtwin_adapters.naming import NO_LOSS, ROW_NUMBER, VAL_LOSS, is_loss, usable
from wtwin_adapters.numbers import UNREADABLE, Value, number, numbers
from wtwin_adapters.sink import Sink
from wtwin_watch.metrics import Names, choose_step

_BLOCK, _ODD_BLOCK, _FEW = 512, 256, 4
_DEPTH = 8
_MAX_NAMES = 64
_MAX_PLANS = 1024
_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r,]*")
_MODE, _EVALUATION = "mode", frozenset(("val", "valid", "validation", "eval", "test"))
"""What older tools of OpenMMLab say a row is about."""
_decode = json.JSONDecoder().raw_decode


def flatten(row: dict[str, Any], joint: str = "/") -> dict[str, Any]:
    """Flatten nested objects to eight levels, their names joined; deeper ones are left out."""
    flat: dict[str, Any] = {}
    stack: list[tuple[str, dict[str, Any], int]] = [("", row, 0)]
    while stack:
        prefix, inner, depth = stack.pop()
        for key, value in inner.items():
            if isinstance(value, dict):
                if depth < _DEPTH:
                    stack.append((f"{prefix}{key}{joint}", value, depth + 1))
            else:
                # A name spelt out at the top wins over the same name made by nesting.
                flat.setdefault(prefix + key, value)
    return flat


def objects(line: bytes) -> list[Any]:
    """Read the values of a line, usually one, none of a blank line. Raises ValueError where it isn't JSON."""
    try:
        return [orjson.loads(line)]
    except orjson.JSONDecodeError:
        pass
    # NaN, Infinity and 1e999 are not JSON but common; so are two objects in a line after a crash.
    text = line.strip(b"\0 \t\r").removeprefix(_BOM).decode("utf-8")
    found: list[Any] = []
    at = 0
    while at < len(text):
        try:
            value, at = _decode(text, at)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        found.append(value)
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    return found


class JsonRows:
    """Reads a line at a time. The step's name is settled by the first row that holds a loss."""

    def __init__(self, names: Names, form: dict[str, Any] | None = None) -> None:
        form = form or {}
        self._names = names
        self._settled: bool = form.get("settled", False)
        self._step: str | None = form.get("step")
        self._epoch: str | None = form.get("epoch")
        self._epochs = Epochs.load(form.get("epochs"))
        # Objects already taken from the next line, where it holds several.
        self._inside: int = form.get("inside", 0)
        # Points of a row, as far as seen, to read no more rows than there is room for.
        self._width = 1
        self._plans: dict[tuple[str, ...], list[str]] = {}

    def dump(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "settled": self._settled,
            "step": self._step,
            "epoch": self._epoch,
            "epochs": self._epochs.dump(),
            "inside": self._inside,
        }

    @property
    def step_name(self) -> str | None:
        """What steps are taken from, or None while that is not known."""
        return (self._step or ROW_NUMBER) if self._settled else None

    def take(self, chunk: bytes, sink: Sink, *, last: bool) -> int:
        """Give the rows of ``chunk`` (whole lines) to ``sink``; returns the bytes consumed."""
        lines = chunk.split(b"\n")
        if not lines[-1]:
            lines.pop()
        done = 0
        while done < len(lines) and not sink.full:
            room = sink.rows_left(self._width)
            block = lines[done : done + min(room, _BLOCK)]
            taken = self._take_block(block, sink) if room > 0 else 0
            for line in islice(lines, done, done + _ODD_BLOCK) if not taken else ():
                if not self._take_line(line, sink):
                    break
                taken += 1
            done += taken
        return min(sum(map(len, islice(lines, done))) + done, len(chunk))

    def _take_block(self, block: list[bytes], sink: Sink) -> int:
        """Take lines of one flat object each, those with the same keys together; 0 if any is odd."""
        if not self._settled or self._inside:
            return 0
        together = b",".join(block)
        if together.count(b"{") != len(block):
            return 0
        try:
            rows = orjson.loads(b"[" + together + b"]")
        except orjson.JSONDecodeError:
            return 0
        if len(rows) != len(block) or set(map(type, rows)) != {dict}:
            return 0
        taken = 0
        for keys, group in groupby(rows, tuple):
            alike = list(group)
            n = self._take_alike(keys, alike, sink) if len(alike) >= _FEW else 0
            while n < len(alike) and self.take_object(alike[n], sink):
                n += 1
            taken += n
            if n < len(alike):
                break
        return taken

    def _take_alike(self, keys: tuple[str, ...], rows: list[dict[str, Any]], sink: Sink) -> int:
        names = self._plan(rows[0])
        if not names or (self._step is not None and self._step not in keys) or _MODE in keys:
            return 0
        cells = dict(zip(keys, zip(*map(dict.values, rows), strict=True), strict=True))
        columns, sparse = [], False
        for name in names:
            column = numbers(cells[name])
            if column is None:
                return 0
            columns.append(column[0])
            sparse |= column[1]
        if self._step is None:
            steps: Any = [sink.progress.row + n + 1.0 for n in range(len(rows))]
        else:
            found = numbers(cells[self._step])
            if found is None or found[1]:
                return 0
            steps = found[0]
        told = numbers(cells[self._epoch]) if self._epoch in cells else None
        counted = self._epochs.counted_block(steps, told[0]) if told is not None else None
        if counted is None and (told is not None or self._epochs.added):
            return 0
        self._width = len(names)
        taken = sink.add_block(names, counted[0] if counted else steps, columns, sparse=sparse)
        if taken and counted and told:
            done = self._epochs.counted_block(steps[:taken], told[0][:taken])
            self._epochs = done[1] if done else self._epochs
        return taken

    def _take_line(self, line: bytes, sink: Sink) -> bool:
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            return self._take_odd_line(line, sink)
        return self.take_object(row, sink)

    def _take_odd_line(self, line: bytes, sink: Sink) -> bool:
        try:
            found = objects(line)
        except ValueError:
            sink.skipped["bad JSON"] += 1
            return True
        for row in found[self._inside :]:
            if not self.take_object(row, sink):
                return False
            self._inside += 1
        self._inside = 0
        return True

    def take_object(self, row: Any, sink: Sink) -> bool:
        """Give one row to ``sink``; False if it must wait."""
        if row.__class__ is not dict:
            sink.skipped["not an object"] += 1
            return True
        if dict in map(type, row.values()):
            row = flatten(row)
        values = [(name, _value(row[name])) for name in self._plan(row)]
        if not self._settled:
            if not any(isinstance(v, float) and is_loss(n, self._names) for n, v in values):
                return sink.offer(None, [], NO_LOSS)
            counters = [name for name, value in row.items() if isinstance(_value(value), float)]
            self._step, self._settled = choose_step(counters, self._names), True
            self._epoch = epoch_among(counters, self._step)
            self._plans.clear()
            values = [(name, value) for name, value in values if name != self._step]
        if self._step is None:
            return sink.offer(sink.progress.row + 1.0, values)
        step, epochs = _value(row.get(self._step)), self._epochs
        if row.get(_MODE) in _EVALUATION:
            # Its counters are those of the validation data.
            step = epochs.added + epochs.top if math.isfinite(epochs.top) else step
            losses = [(n, v) for n, v in values if is_loss(n, self._names)]
            values = [(VAL_LOSS if name == "loss" else name, value) for name, value in losses]
        elif isinstance(step, float) and self._epoch is not None:
            step, epochs = epochs.counted(step, _value(row.get(self._epoch)))
        if not sink.offer(step, values):
            return False
        self._epochs = epochs
        return True

    def _plan(self, row: dict[str, Any]) -> list[str]:
        """The names to read from a row with these keys; rows of a log share few sets of keys."""
        keys = tuple(row)
        plan = self._plans.get(keys)
        if plan is None:
            used = [k for k in keys if k != self._step and usable(k, self._names)]
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = self._plans[keys] = used[:_MAX_NAMES]
        return plan


def _value(value: Any) -> Value:
    if value.__class__ is float or value is None:
        return value
    if value.__class__ is int:
        try:
            return float(value)
        except OverflowError:
            return UNREADABLE
    return number(value) if isinstance(value, str) else UNREADABLE
