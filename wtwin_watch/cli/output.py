"""Results on standard output: tables for a person, JSON for a program."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click


def print_json(value: Any) -> None:
    """Print JSON. A number that JSON doesn't know becomes the text ``NaN``, ``Infinity`` or ``-Infinity``."""
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def table(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """Lay rows out in columns."""
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)] if shown else []
    return [
        (
            indent + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        ).rstrip()
        for row in shown
    ]


def one_line(text: str) -> str:
    """Show what was read somewhere without letting it steer the terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def number(value: float | None) -> str:
    """Show a number short; nothing as a dash."""
    if value is None:
        return "-"
    whole = math.isfinite(value) and value == int(value) and abs(value) < 10**15
    return str(int(value)) if whole else f"{value:.6g}"


def moment(unix_s: float | None) -> str:
    """Show a time as local time; nothing as a dash."""
    if unix_s is None:
        return "-"
    return f"{datetime.fromtimestamp(unix_s):%Y-%m-%d %H:%M:%S}"


def counted(counts: Mapping[str, int]) -> str:
    """Show counts by reason: ``3 short row, 1 no number``."""
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
