"""Reading many records at once that differ in time, step and number alone.

A writer logs the same few scalars at every step, so for long stretches its records repeat in groups, and
every byte but those of the three repeats too. That is checked for all groups at once, byte by byte of a
group; what differs is taken out as columns. It is several times as fast as a loop over the records.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, cast

from wtwin_adapters.tfframes import FOOTER, HEADER

MANY = 1 << 10
"""So many groups are taken at once at most."""
FEW = 4
"""Fewer are not worth it."""
SANE_TIME = 1e12
"""Later than this, in unix seconds, is no time."""
_WALL_AT = HEADER + 1
_STEP_AT = HEADER + 10
# A double that begins with this byte lies between 2^17 and 2^33: as times do until the year 2242.
_USUAL_TIME = b"\x41"
_WIDE = {"f": 4, "d": 8}


class Form(NamedTuple):
    """How a record lies that holds one scalar; offsets are from its beginning."""

    size: int
    """Bytes with its frame."""
    step_size: int
    """Bytes of the step."""
    value_at: int
    double: bool
    """The number takes eight bytes, not four."""


Column = tuple[list[float], list[float], list[float]]
"""Steps, values and times of one of the records of a group."""


@dataclass(frozen=True, slots=True)
class Alike:
    """A stretch of groups: how many, and a column for each record of a group."""

    count: int
    columns: list[Column]


def read_alike(data: bytes, pos: int, forms: Sequence[Form], most: int) -> Alike | None:
    """Read the groups like the one at ``pos``, whose records have ``forms``; None if they are few.

    At most ``most`` groups. Steps of a record never fall within them, and times make sense.
    """
    size = sum(form.size for form in forms)
    most = min(most, MANY, (len(data) - pos) // size)
    count = _count(data, pos, size, _same(tuple(forms)), most) if most >= FEW else 0
    if count < FEW:
        return None
    block = data[pos : pos + count * size]
    columns: list[Column] = []
    start = 0
    for form in forms:
        steps = _steps([block[start + _STEP_AT + i :: size] for i in range(form.step_size)])
        walls = _numbers(block, start + _WALL_AT, size, "d")
        usual = block[start + _WALL_AT + 7 :: size].count(_USUAL_TIME) == count
        if steps is None or not (usual or _make_sense(walls)):
            return None
        values = _numbers(block, start + form.value_at, size, "d" if form.double else "f")
        columns.append((steps, values, walls))
        start += form.size
    return Alike(count, columns)


@lru_cache(maxsize=256)
def _same(forms: tuple[Form, ...]) -> list[int]:
    """The offsets within a group of the bytes that repeat."""
    same, start = [], 0
    for form in forms:
        step_end = _STEP_AT + form.step_size
        value_end = form.value_at + (8 if form.double else 4)
        offsets = (
            *range(_WALL_AT),
            _STEP_AT - 1,
            *range(step_end, form.value_at),
            *range(value_end, form.size - FOOTER),
        )
        same += [start + offset for offset in offsets]
        start += form.size
    return same


def _count(data: bytes, pos: int, size: int, same: list[int], most: int) -> int:
    """How many groups in a row have the bytes of the first one at ``same``."""
    count = most
    for offset in same:
        at = pos + offset
        column, usual = data[at : pos + count * size : size], data[at : at + 1]
        if column != usual * count:
            count -= len(column.lstrip(usual))
            if count < FEW:
                return 0
    return count


def _numbers(block: bytes, at: int, size: int, kind: Literal["f", "d"]) -> list[float]:
    """The numbers of a column, which begin ``at`` in each group of ``size`` bytes."""
    wide = _WIDE[kind]
    numbers = bytearray(len(block) // size * wide)
    for i in range(wide):
        numbers[i if sys.byteorder == "little" else wide - 1 - i :: wide] = block[at + i :: size]
    return cast(list[float], memoryview(numbers).cast(kind).tolist())


def _steps(columns: list[bytes]) -> list[float] | None:
    """Decode the bytes of a column of steps; None where they are no steps, or fall.

    A step has seven bits a byte, the lowest first; each byte but its last has the eighth bit set. All of
    them together are one large number here, eight bytes a step.
    """
    count = len(columns[0])
    lanes = bytearray(8 * count)
    for i, column in enumerate(columns):
        lanes[i::8] = column
    packed = int.from_bytes(lanes, "little")
    marks, ends, bits = _masks(len(columns), count)
    if packed & marks != ends:
        return None
    joined = 0
    for i, mask in enumerate(bits):
        joined |= (packed & mask) >> i
    numbers = memoryview(joined.to_bytes(8 * count, sys.byteorder)).cast("Q")
    steps = list(map(float, numbers))
    if sys.byteorder == "big":
        steps.reverse()
    return steps if steps == sorted(steps) else None


@lru_cache(maxsize=64)
def _masks(step_size: int, count: int) -> tuple[int, int, list[int]]:
    """The eighth bits of the bytes of steps, those that are set, and the bits of each byte."""

    def of_all(step: int) -> int:
        return int.from_bytes(step.to_bytes(8, "little") * count, "little")

    marks = [128 << 8 * i for i in range(step_size)]
    return (
        of_all(sum(marks)),
        of_all(sum(marks[:-1])),
        [of_all(127 << 8 * i) for i in range(step_size)],
    )


def _make_sense(walls: Sequence[float]) -> bool:
    # The sum of many is NaN if one is, which neither min nor max would tell.
    return min(walls) >= 0.0 and max(walls) < SANE_TIME and math.isfinite(sum(walls))
