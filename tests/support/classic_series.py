"""Loss curves for the tests of the W-Twin monitor: the corpus's golden series, and made-up ones."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def corpus() -> Path:
    """The folder of given data; skips the test where there is none."""
    folder = os.environ.get("WTWIN_WATCH_CORPUS")
    if not folder:
        pytest.skip("WTWIN_WATCH_CORPUS is not set: no golden series to compare with")
    return Path(folder)


@cache
def _parity(folder: Path) -> dict[str, dict[str, Any]]:
    series = json.loads((folder / "parity.json").read_text())["series"]
    return {one["name"]: one for one in series}


def golden(name: str) -> dict[str, Any]:
    """One series of parity.json."""
    return _parity(corpus())[name]


def decoded(value: Any) -> float:
    """A number as parity.json writes it: null is NaN, infinities are words."""
    if value is None:
        return math.nan
    return float(value)


def nanogpt(name: str) -> tuple[list[int], list[float]]:
    """Steps and losses of one nano-GPT log."""
    with gzip.open(corpus() / "nanogpt" / f"{name}.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    return [int(row["step"]) for row in rows], [float(row["train_loss"]) for row in rows]


def benchmark_curve(kind: str, seed: int, steps: int = 1000, failure: int = 600) -> list[float]:
    """A run of the published benchmark: 2 t^-0.5 + 0.1, noise 0.02, and a failure from step 600."""
    rng = np.random.default_rng(seed)
    t = np.arange(1, steps + 1, dtype=float)
    losses = np.maximum(2.0 * t**-0.5 + 0.1 + rng.normal(0, 0.02, steps), 0.1)
    if kind == "spike":
        losses[failure : failure + 20] += 0.5
    elif kind == "drift":
        losses[failure:] += np.linspace(0, 0.4, steps - failure)
    return [float(loss) for loss in losses]


def clean(steps: int = 400, seed: int = 0) -> list[float]:
    """A healthy run of the published benchmark."""
    return benchmark_curve("clean", seed, steps, steps)
