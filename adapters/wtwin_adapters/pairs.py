"""Names and numbers in a line of text: ``step 100 | train loss: 2.31``, ``{'loss': 2.31}``, ``lr=3e-4``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from wtwin_adapters.naming import usable
from wtwin_adapters.numbers import Value, number
from wtwin_watch.metrics import Names, choose_step

NUMBER = (
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?"
    r"|nan|inf(?:inity)?|1\.\#\w+)"
)
"""A number as people print it, also with commas between thousands; match it without regard to case."""

# Words of a name are taken whole and never given back, so that a line costs its length.
_WORD = r"[A-Za-z_][\w/.\-]*+"
_PAIR = re.compile(
    rf"(?<![\w/.\-])(?P<name>{_WORD}(?: {_WORD}){{0,3}})"
    r"(?:['\"]?\s*+[:=]\s*+|\s++|(?=\[))['\"]?(?:tensor\(|[\[(])?\s*+"
    rf"(?P<value>{NUMBER})(?:\s*+/\s*+(?P<total>\d+))?(?![\w%]|\.\d)",
    re.I,
)
_NOISE = frozenset((
    "info", "debug", "warning", "error", "root", "main", "rank", "the", "at", "and", "with", "for",
    "train", "training", "trainer", "current", "average", "mean", "avg", "running", "completed",
    "s", "ms", "sec",
))  # fmt: skip
_EVALUATION = re.compile(
    r"(?<![\w/.\-])(?:valid|validation|eval|evaluation|val|dev|test)(?![\w/.\-])", re.I
)


class Pair(NamedTuple):
    """A name and the number behind it, as text; ``total`` of ``100/600``; the value begins ``at``."""

    name: str
    value: str
    total: str | None
    at: int

    @property
    def number(self) -> Value:
        """The value as a number."""
        return number(self.value.replace(",", ""))


def pairs(text: str, names: Names) -> list[Pair]:
    """Find all metrics and steps that have a number behind them, in the order of the line."""
    found = []
    for match in _PAIR.finditer(text):
        said, value, total = match.groups()
        name = metric_in(said, names)
        if name is not None:
            found.append(Pair(name, value, total, match.start("value")))
    return found


@lru_cache(maxsize=1024)
def step_among(found: tuple[str, ...], names: Names) -> str | None:
    """Choose the step among the names of a line, of which there are few kinds."""
    return choose_step(found, names)


@lru_cache(maxsize=4096)
def metric_in(name: str, names: Names) -> str | None:
    """The metric or step that ``name`` ends with: of ``INFO Train Epoch`` that is ``Epoch``; or None.

    Words that say nothing may stand before it, but ``z loss`` is not ``loss``.
    """
    words = name.split(" ")
    for i in range(len(words)):
        rest = " ".join(words[i:]).rstrip(".-/")
        if usable(rest, names) or choose_step([rest], names):
            given = rest in (names.step, names.loss, names.lr, names.grad_norm, names.val_loss)
            noise = all(word.lower().strip("-./") in _NOISE for word in words[:i])
            return rest if given or noise else None
    return None


def speaks_of_evaluation(text: str) -> bool:
    """Whether a line says that it is about validation data."""
    return _EVALUATION.search(text) is not None
