"""What a line of a text log says: a step and values, and the parts from which readers of lines make it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wtwin_adapters.naming import VAL_LOSS
from wtwin_adapters.numbers import UNREADABLE, Value, number
from wtwin_adapters.pairs import NUMBER, Pair, pairs, speaks_of_evaluation
from wtwin_watch.metrics import Names

QUOTED = re.compile(rf"""["']([^"']{{1,100}})["']\s*:\s*["']?({NUMBER})["']?\s*[,}}]""", re.I)
"""A number behind its name in quotes, as in Python's dictionaries and in JSON."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a line says."""

    step: Value
    values: list[tuple[str, Value]]
    step_name: str = "step"
    epoch: int | None = None
    """The line says only that this epoch begins, counted from 0."""
    within: float | None = None
    """The epoch that the step may be counted in."""
    total: float = 0.0
    """Steps of an epoch, where the step is counted within one that an earlier line told."""


def as_number(text: str) -> Value:
    """Read a number, which may have commas between thousands."""
    return number(text.replace(",", ""))


def fields_of(text: str, between: str, behind: str) -> list[tuple[str, Value]]:
    """Split ``name: value | name: value``; a value ends where its number does."""
    found: list[tuple[str, Value]] = []
    for field in text.split(between):
        name, separator, value = field.strip().partition(behind)
        words = value.split(None, 1)
        if separator and words:
            found.append((name.strip(), as_number(words[0])))
    return found


def values_in(text: str, names: Names) -> list[tuple[str, Value]]:
    """The metrics of a text with their numbers."""
    return chosen(pairs(text, names), text, names)


def chosen(found: list[Pair], text: str, names: Names) -> list[tuple[str, Value]]:
    """Of several numbers for one metric the first one; a loss of validation is called so."""
    values: dict[str, Value] = {}
    for pair in found:
        name = pair.name
        plain = name.lower() == "loss" and names.loss != name
        if plain and speaks_of_evaluation(text[: pair.at]):
            name = VAL_LOSS
        value = pair.number
        if value is not UNREADABLE:
            values.setdefault(name, value)
    return list(values.items())
