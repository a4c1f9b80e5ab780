"""How well and how fast sources are read: each beside the library that people would use instead.

``python -m benchmarks.sources [--quick] [--json] [--only NAME]``. Each part is a module of its own with a
function ``measure(quick)``; one whose libraries aren't installed is skipped and says so. Both sides of a
ratio are measured in one run, in turn, so that a busy machine slows both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module

from benchmarks.report import Measure, Part, Skipped, main

PARTS = ("tabular", "tensorboard", "wandb", "mlflow", "stalls")
"""The modules ``benchmarks.sources_<part>``, in the order they run."""


def part(name: str) -> Part:
    """Measure with one module, or say why that can't be."""

    def measure(quick: bool) -> Iterator[Measure | Skipped]:
        try:
            module = import_module(f"benchmarks.sources_{name}")
        except ImportError as error:
            yield Skipped(name, str(error))
        else:
            yield from module.measure(quick)

    return measure


if __name__ == "__main__":
    sys.exit(main("sources", {name: part(name) for name in PARTS}))
