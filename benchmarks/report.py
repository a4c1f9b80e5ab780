"""What every benchmark prints: measure, value, target, verdict; and the exit code that follows."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """One measured value and the bound it has to keep."""

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""
    note: str = ""

    @property
    def kept(self) -> bool:
        """Whether the value keeps its bound; NaN never does."""
        below = self.at_most is None or self.value <= self.at_most
        return below and (self.at_least is None or self.value >= self.at_least)

    @property
    def target(self) -> str:
        """The bound in words."""
        parts = [
            f"{sign} {bound:g}"
            for sign, bound in (("≥", self.at_least), ("≤", self.at_most))
            if bound is not None
        ]
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A measure that can't be taken here, and why: no miss, but no success either."""

    name: str
    reason: str


Part = Callable[[bool], Iterable[Measure | Skipped]]
"""Measures one thing after the other; told whether to be quick."""


def main(
    name: str, measure: Part | Mapping[str, Part], arguments: Sequence[str] | None = None
) -> int:
    """Parse the arguments, measure, print, and return the exit code: 1 where a target is missed.

    With several parts by name, ``--only NAME`` asks for some of them.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument("--quick", action="store_true", help="smaller, for every change")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parts = measure if isinstance(measure, Mapping) else {name: measure}
    if isinstance(measure, Mapping):
        parser.add_argument(
            "--only", action="append", choices=sorted(parts), help="this part; repeatable"
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
            print(_line(found), flush=True)
    missed = sum(not found.kept for found in measures)
    if options.json:
        rows = [
            {
                "measure": found.name,
                "value": found.value,
                "unit": found.unit,
                "target": found.target,
                "kept": found.kept,
                "note": found.note,
            }
            for found in measures
        ]
        left = [{"measure": found.name, "reason": found.reason} for found in skipped]
        report = {"benchmark": name, "quick": options.quick, "measures": rows, "skipped": left}
        print(json.dumps(report))
    if missed:
        print(f"{missed} of {len(measures)} targets missed", file=sys.stderr)
    return 1 if missed else 0


def _measured(parts: Iterable[Part], quick: bool) -> Iterator[Measure | Skipped]:
    for part in parts:
        yield from part(quick)


def _line(found: Measure | Skipped) -> str:
    if isinstance(found, Skipped):
        return f"skipped {found.name}: {found.reason}"
    verdict = "ok" if found.kept else "MISSED"
    value = f"{found.value:.4g} {found.unit}".rstrip()
    note = f"  ({found.note})" if found.note else ""
    return f"{verdict:<7} {found.name}: {value}, target {found.target}{note}"
