"""What a cell of a log means: a number, nothing, or something that isn't a number.

Python's ``float`` is too generous for logs (``1_000``) and too strict (``1.#IND``); this is the table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from types import NoneType
from typing import Any, Final

UNREADABLE: Final = "unreadable"
"""Stands for a cell that holds something else than a number."""

BLANK: Final = " \t\r\n\f\v\x1c\x1d\x1e\x1f\x85\xa0\0"
"""Nothing to be seen: what ``float`` strips, and the zeros that a crashed file system leaves."""

Value = float | None | str
"""A number, None for a missing one, or `UNREADABLE`."""
Column = Sequence[float | None]
_FLOATS, _NUMBERS, _GAPS = {float}, {float, int}, {float, int, NoneType}

_MISSING = frozenset({"", "n/a", "na", "null", "none"})
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:e[+-]?[0-9]+)?")
# The second spelling of each is the C runtime's of Windows.
_NAN = re.compile(r"[+-]?(?:nan(?:\(.*\))?|1\.#(?:ind|qnan|snan)0*)")
_INF = re.compile(r"[+-]?(?:inf(?:inity)?|1\.#inf0*)")


def number(cell: str, *, decimal_comma: bool = False) -> Value:
    """Read a cell. Missing is ``N/A``, ``NA``, ``null``, ``None`` or blank; NaN and inf are numbers.

    With ``decimal_comma`` the cell ``0,5`` is a half, otherwise it is no number.
    """
    text = cell.strip(BLANK).lower()
    if text in _MISSING:
        return None
    if _NUMBER.fullmatch(text):
        return float(text)
    if decimal_comma and _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    if _NAN.fullmatch(text):
        return math.nan
    if _INF.fullmatch(text):
        return -math.inf if text.startswith("-") else math.inf
    return UNREADABLE


def numbers(cells: Sequence[Any]) -> tuple[Column, bool] | None:
    """Read a column of parsed JSON, and say whether it has gaps; None if anything else is in it."""
    kinds = set(map(type, cells))
    if kinds == _FLOATS:
        return cells, False
    try:
        if kinds <= _NUMBERS:
            return list(map(float, cells)), False
        if kinds <= _GAPS:
            if int in kinds:
                cells = [None if cell is None else float(cell) for cell in cells]
            return cells, True
    except OverflowError:
        pass
    return None
