"""What every benchmark prints: measure, value, target, verdict; and the exit code that follows."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
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


def main(
    name: str,
    measure: Callable[[bool], Iterable[Measure]],
    arguments: Sequence[str] | None = None,
) -> int:
    """Parse the arguments, measure, print, and return the exit code: 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument("--quick", action="store_true", help="smaller, for every change")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(arguments)
    measures = []
    for found in measure(options.quick):
        measures.append(found)
        if not options.json:
            verdict = "ok" if found.kept else "MISSED"
            value = f"{found.value:.4g} {found.unit}".rstrip()
            note = f"  ({found.note})" if found.note else ""
            print(f"{verdict:<7} {found.name}: {value}, target {found.target}{note}", flush=True)
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
        print(json.dumps({"benchmark": name, "quick": options.quick, "measures": rows}))
    if missed:
        print(f"{missed} of {len(measures)} targets missed", file=sys.stderr)
    return 1 if missed else 0
