"""Decoding the records of a ``.wandb`` file: rows of history, what the run is called, and how it ended.

Field numbers are those of wandb's ``wandb_internal.proto``. Everything here is bounded by the record.
"""

# Field numbers are written as numbers: the names of the fields stand in the proto.
# ruff: noqa: PLR2004

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

from wtwin_adapters.jsonrows import flatten
from wtwin_adapters.numbers import UNREADABLE, Value
from wtwin_adapters.wire import BYTES, FIXED64, VARINT, as_signed, fields, float64, varint

STEP, TIMESTAMP = "_step", "_timestamp"
HISTORY, STATS, RUN, EXIT, PREEMPTING = 2, 7, 17, 18, 23
"""Fields of a record that say what it is."""

_CACHED = 4096
_MAX_NESTED = 1 << 16
_NOT_FINITE = {b'"NaN"': math.nan, b'"Infinity"': math.inf, b'"-Infinity"': -math.inf}
# A record begins with its number; most are summaries or rows, which is seen without walking through them.
_NUMBER_TAG = 1 << 3 | VARINT
_SUMMARY_TAG, _HISTORY_TAG = bytes([3 << 3 | BYTES]), bytes([HISTORY << 3 | BYTES])
_ITEM_TAG = 1 << 3 | BYTES
_UNKNOWN = ("", False)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of history; metrics in the order of their names."""

    step: Value
    wall_time: float | None
    values: list[tuple[str, Value]]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run is called."""

    id: str = ""
    entity: str = ""
    project: str = ""
    name: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()


def parts(record: bytes) -> dict[int, tuple[int, int]]:
    """Say what a record holds: by the field, where its message begins and ends.

    Summaries, which are most of all records, are taken for nothing. Raises ValueError on bytes that are
    no record.
    """
    end = len(record)
    if end > 2 and record[0] == _NUMBER_TAG:
        _, i = varint(record, 1, end)
        tag = record[i : i + 1]
        if tag == _SUMMARY_TAG:
            return {}
        if tag == _HISTORY_TAG:
            size, i = varint(record, i + 1, end)
            if size <= end - i:
                return {HISTORY: (i, i + size)}
    found = fields(record, 0, end)
    return {number: (a, b) for number, wire, a, b in found if wire == BYTES}


def run_facts(record: bytes, start: int, end: int) -> RunFacts:
    """Decode what a run is called. Raises ValueError."""
    texts: dict[int, list[str]] = {}
    for number, wire, a, b in fields(record, start, end):
        if wire == BYTES and number in (1, 2, 3, 6, 8, 10):
            texts.setdefault(number, []).append(record[a:b].decode("utf-8", "replace"))
    last = {number: found[-1] for number, found in texts.items()}
    return RunFacts(
        last.get(1, ""),
        last.get(2, ""),
        last.get(3, ""),
        last.get(8, ""),
        last.get(6, ""),
        tuple(texts.get(10, ())),
    )


def exit_code(record: bytes, start: int, end: int) -> int:
    """Decode how a run ended. Raises ValueError."""
    code = 0
    for number, wire, a, _ in fields(record, start, end):
        if number == 1 and wire == VARINT:
            code = as_signed(a)
    return code


class Rows:
    """Decodes rows of history: the metrics that ``wanted`` says, the step and the time.

    ``step`` is the metric that counts steps, `STEP` unless a user named another.
    """

    def __init__(self, wanted: Callable[[str], bool], step: str = STEP) -> None:
        self._wanted = wanted
        self._step = step
        self._keys: dict[bytes, tuple[str, bool] | None] = {}

    def row(self, record: bytes, start: int, end: int) -> Row:
        """Decode the row in ``record[start:end]``. Raises ValueError."""
        step: Value = None
        wall_time = None
        values: dict[str, Value] = {}
        literal: set[str] = set()
        items, i = _short_items(record, start, end)
        for number, wire, a, b in fields(record, i, end):
            if number == 1 and wire == BYTES:
                items.append(record[a:b])
            elif number == 2 and wire == BYTES and self._step == STEP:
                step = _step_of(record, a, b)
        for item in items:
            for name, value, is_literal in self._item(item):
                if name == self._step:
                    step = value
                elif name == TIMESTAMP:
                    wall_time = value if isinstance(value, float) else None
                # A name spelt out wins over the same name made by nesting: their order is chance.
                elif is_literal or name not in literal:
                    values[name] = value
                    if is_literal:
                        literal.add(name)
        if wall_time is not None and not 0.0 <= wall_time < 1e12:
            wall_time = None
        return Row(step, wall_time, sorted(values.items()))

    def _item(self, item: bytes) -> list[tuple[str, Value, bool]]:
        """Decode an item: names, values, and whether the name was spelt out."""
        # Usually a key and the value's JSON; keys repeat, so they are looked up as they stand.
        key, _, rest = item.partition(b"\x82\x01")
        known = self._keys.get(key, _UNKNOWN)
        if known is not _UNKNOWN and rest and rest[0] == len(rest) - 1 < 128:
            if known is not None:
                return [(known[0], json_value(rest[1:]), known[1])]
            if rest[1:2] != b"{":
                return []
        return self._decode(item)

    def _decode(self, item: bytes) -> list[tuple[str, Value, bool]]:
        name, nested, value, raw, plain = "", [], None, None, 0
        for number, wire, a, b in fields(item, 0, len(item)):
            if number == 1 and wire == BYTES:
                name = item[a:b].decode("utf-8", "replace")
                plain = b
            elif number == 2 and wire == BYTES:
                nested.append(item[a:b].decode("utf-8", "replace"))
                plain = b
            elif number == 16 and wire == BYTES:
                raw = item[a:b]
            elif number in (3, 4, 5, 6, 7, 8):
                value = _typed(item, number, wire, a, b)
                raw = raw if number != 8 or raw is not None else item[a:b]
        is_literal = bool(name) or len(nested) == 1
        name = name or ".".join(nested)
        used = name in (self._step, TIMESTAMP) or self._wanted(name)
        if raw is not None and item[plain : plain + 2] == b"\x82\x01":
            if len(self._keys) >= _CACHED:
                self._keys.clear()
            self._keys[item[:plain]] = (name, is_literal) if used else None
        if used:
            return [(name, value if raw is None else json_value(raw), is_literal)]
        if raw is None or not raw.startswith(b"{"):
            return []
        inner = _nested(raw, name)
        return [(n, json_value(v), False) for n, v in inner.items() if self._wanted(n)]


def _short_items(record: bytes, start: int, end: int) -> tuple[list[bytes], int]:
    """The items that a row begins with, as far as they are short; and where they end."""
    items, i = [], start
    while i < end - 1 and record[i] == _ITEM_TAG and record[i + 1] < 128:
        stop = i + 2 + record[i + 1]
        if stop > end:
            break
        items.append(record[i + 2 : stop])
        i = stop
    return items, i


def json_value(raw: bytes) -> Value:
    """What the JSON of a value means: a number (also NaN and Infinity), None for null, or `UNREADABLE`."""
    try:
        return float(raw)
    except ValueError:
        if raw == b"null":
            return None
        return _NOT_FINITE.get(raw, UNREADABLE)


def _step_of(record: bytes, start: int, end: int) -> float | None:
    for number, wire, a, _ in fields(record, start, end):
        if number == 1 and wire == VARINT:
            return float(as_signed(a))
    return None


def _typed(item: bytes, number: int, wire: int, a: int, b: int) -> Value:
    """A value in a field of its own type, as newer writers may add it."""
    if number == 5 and wire == VARINT:
        return float((a >> 1) ^ -(a & 1))
    if number == 6 and wire == FIXED64:
        return float(float64(item, a)[0])
    if number == 3 and wire == VARINT:
        return None
    return UNREADABLE


def _nested(raw: bytes, name: str) -> dict[str, bytes]:
    """The leaves of a value that is an object, as older writers log nested ones; none of a media object."""
    if len(raw) > _MAX_NESTED:
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    if "_type" in value:
        return {}
    leaves = flatten({name: value}, ".").items()
    return {n: json.dumps(v).encode() for n, v in leaves if not isinstance(v, list)}
