"""What every benchmark prints: measure, value, target, verdict; and the exit code that follows."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measure:
    """One measured value, its 95 % interval where there is one, and the bound it has to keep.

    One without a bound is information. ``judged``: the number that is held against the bound instead
    of the value, such as the lower end of the interval. ``group``: the heading it stands under.
    """

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""
    note: str = ""
    interval: tuple[float, float] | None = None
    judged: float | None = None
    group: str = ""

    @property
    def kept(self) -> bool:
        """Whether the value keeps its bound; NaN never does."""
        value = self.value if self.judged is None else self.judged
        below = self.at_most is None or value <= self.at_most
        return below and (self.at_least is None or value >= self.at_least)

    @property
    def verdict(self) -> str:
        """How it stands, in a word."""
        if self.at_most is None and self.at_least is None:
            return "info"
        return "ok" if self.kept else "MISSED"

    @property
    def target(self) -> str:
        """The bound in words."""
        parts = [
            f"{sign} {bound:g}"
            for sign, bound in (("≥", self.at_least), ("≤", self.at_most))
            if bound is not None
        ]
        return " and ".join(parts)

    @property
    def shown(self) -> str:
        """Value, interval and unit; what takes for ever is never."""
        if self.value == math.inf:
            return "never"
        between = ""
        if self.interval is not None:
            between = f" [{self.interval[0]:.3g}, {self.interval[1]:.3g}]"
        return f"{self.value:.4g}{between} {self.unit}".rstrip()

    @property
    def line(self) -> str:
        """All of it, for a person."""
        target = f", target {self.target}" if self.target else ""
        note = f"  ({self.note})" if self.note else ""
        return f"{self.verdict:<7} {self.name}: {self.shown}{target}{note}"

    def as_dict(self) -> dict[str, object]:
        """All of it, for a program."""
        return {
            "measure": self.name,
            "value": self.value,
            "interval": self.interval,
            "unit": self.unit,
            "target": self.target,
            "kept": self.kept,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Skipped:
    """A measure that can't be taken here, and why: no miss, but no success either."""

    name: str
    reason: str

    @property
    def line(self) -> str:
        """Both, for a person."""
        return f"skipped {self.name}: {self.reason}"


Part = Callable[[bool], Iterable[Measure | Skipped]]
"""Measures one thing after the other; told whether to be quick."""


def main(
    name: str,
    measure: Part | Mapping[str, Part],
    arguments: Sequence[str] | None = None,
    document: Callable[[Path, Sequence[Measure]], None] | None = None,
    parents: Sequence[argparse.ArgumentParser] = (),
) -> int:
    """Parse the arguments, measure, print, and return the exit code: 1 where a target is missed.

    With several parts by name, ``--only NAME`` asks for some of them. ``document`` writes the report that
    ``--report PATH`` asks for. ``parents`` hold options of the benchmark's own, which it has parsed itself.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", parents=list(parents))
    parser.add_argument("--quick", action="store_true", help="smaller, for every change")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parts = measure if isinstance(measure, Mapping) else {name: measure}
    if isinstance(measure, Mapping):
        parser.add_argument(
            "--only", action="append", choices=sorted(parts), help="this part; repeatable"
        )
    if document is not None:
        parser.add_argument(
            "--report",
            type=Path,
            metavar="PATH",
            help="write a report in Markdown, and its picture",
        )
    options = parser.parse_args(arguments)
    only = getattr(options, "only", None) or list(parts)
    measures, skipped = [], []
    for found in _measured((parts[part] for part in parts if part in only), options.quick):
        if isinstance(found, Skipped):
            skipped.append(found)
        else:
            measures.append(found)
        if not options.json:
            print(found.line, flush=True)
    missed = sum(not found.kept for found in measures)
    if options.json:
        rows = [found.as_dict() for found in measures]
        left = [{"measure": found.name, "reason": found.reason} for found in skipped]
        report = {"benchmark": name, "quick": options.quick, "measures": rows, "skipped": left}
        print(json.dumps(report))
    if document is not None and options.report is not None:
        document(options.report, measures)
    if missed:
        judged = sum(found.verdict != "info" for found in measures)
        print(f"{missed} of {judged} targets missed", file=sys.stderr)
    return 1 if missed else 0


def _measured(parts: Iterable[Part], quick: bool) -> Iterator[Measure | Skipped]:
    for part in parts:
        yield from part(quick)
