"""Durations as people write them: ``"5m"``, ``"1h30m"``, or a number of seconds."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_WHOLE = re.compile(rf"(?:{_PART})+", re.ASCII)
LONGEST_S = 366 * 86400.0


def parse_duration(value: Any) -> float:
    """Turn a written duration into seconds. Raises ValueError saying how to write one."""
    how = 'should be a duration such as "30s", "5m" or "1h30m", or a number of seconds'
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(how)
    if isinstance(value, str):
        text = value.replace(" ", "").lower()
        if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?", text):
            seconds = float(text)
        elif _WHOLE.fullmatch(text):
            seconds = sum(float(n) * _UNITS[unit] for n, unit in re.findall(_PART, text))
        else:
            raise ValueError(how)
    else:
        # NaN, and integers that no float can hold, are out of bounds as well.
        seconds = float(value) if abs(value) <= LONGEST_S else -1.0
    if not 0 <= seconds <= LONGEST_S:
        raise ValueError("should be between 0 and 366 days")
    return seconds


def shown_duration(seconds: float) -> str:
    """Write seconds the short way: ``90`` as ``1m30s``. What is below a millisecond is rounded."""
    ms = round(seconds * 1000)
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "examples": ["30s", "5m", "1h30m"]},
                {"type": "number", "minimum": 0},
            ]
        }
    ),
]
"""A settings field that takes a written duration and holds seconds."""
