"""How often the type of failure that ``suggest`` names is the right one, by kind and size of the alert.

``WTWIN_WATCH_CORPUS=… python -m benchmarks.confidence`` prints the table of
``wtwin_watch/monitor/confidence.py``. Failures of known type are added to synthetic runs, and to clean
real logs where the corpus is there; each is judged up to 1,500 points after it began. Runs without a
failure are in it too: an alert in them is wrong, whatever it is called.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wtwin_watch.monitor.confidence import size_of
from wtwin_watch.monitor.options import ClassicOptions, TrendOptions
from wtwin_watch.monitor.suggest import suggest

Array = Any
SEED = 20
SYNTHETIC = 30
REAL = 20
AFTER = 1500
LEAST = 1500
MOST = 4000


def ramp(i: Array, size: float, length: float) -> Array:
    """Rise to ``size`` within ``length`` points, and stay."""
    return size * np.clip(i / length, 0.0, 1.0)


def spike(i: Array, size: float, tau: float) -> Array:
    """Jump, and fall back with time constant ``tau``."""
    return size * np.exp(-i / tau)


def burst(i: Array, size: float, length: float) -> Array:
    """Jump, and come back after ``length`` points."""
    return size * (i < length)


def divergence(i: Array, size: float, tau: float) -> Array:
    """Grow exponentially."""
    return size * np.expm1(np.minimum(i / tau, 6.0))


def nan(i: Array, size: float, length: float) -> Array:
    """No longer be a number."""
    return np.where(i >= 0, math.nan, 0.0)


GRADUAL, ABRUPT = "gradual_drift", "abrupt_spike"
FAILURES: list[tuple[str, Callable[[Array, float, float], Array], float, float]] = [
    *((GRADUAL, ramp, size, length) for size in (1, 2.5, 5, 15) for length in (100, 500, 1500)),
    *((GRADUAL, divergence, 0.25, tau) for tau in (50, 200)),
    *((ABRUPT, ramp, size, 1) for size in (1.5, 3, 10, 30)),
    *((ABRUPT, spike, size, tau) for size in (5, 15, 50) for tau in (20, 100)),
    *((ABRUPT, burst, size, 20) for size in (5, 25)),
    *((ABRUPT, nan, 0, length) for length in (1, 2)),
    *(("none", burst, 0, 1) for _ in range(4)),
]
"""(type, shape, size in sigma, points)."""


def synthetic(chance: np.random.Generator) -> Array:
    """A clean run: power law, and noise that is white or remembers, Gaussian or heavy-tailed."""
    n = int(chance.integers(2000, MOST))
    t = np.arange(1, n + 1)
    start, end = chance.uniform(1, 8), chance.uniform(0.3, 3.0)
    sigma = math.exp(chance.uniform(math.log(0.005), math.log(0.1)))
    noise = (
        chance.standard_t(4, n) / math.sqrt(2) if chance.random() < 0.3 else chance.normal(0, 1, n)
    )
    memory = chance.choice([0.0, 0.0, 0.3, 0.7])
    for i in range(1, n):
        noise[i] = memory * noise[i - 1] + math.sqrt(1 - memory**2) * noise[i]
    return end + start * t ** -chance.uniform(0.3, 0.6) + sigma * noise


def real() -> Iterator[Array]:
    """Some clean logs of the corpus that are long enough, spread over all of them."""
    folder = os.environ.get("WTWIN_WATCH_CORPUS")
    if not folder:
        return
    corpus = Path(folder) / "corpus"
    with (corpus / "index.csv").open() as index:
        rows = [row for row in csv.DictReader(index) if row["label"] == "clean"]
    files = sorted(row["file"] for row in rows if int(row["steps"]) >= LEAST)
    for file in files[:: max(1, len(files) // REAL)]:
        path = corpus / file
        if not path.exists():
            path = path.with_name(path.name + ".gz")
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as opened:
            losses = [float(row["loss"]) for row in csv.DictReader(opened) if row["loss"]]
        yield np.array(losses[:MOST])


def judged(losses: Array) -> Iterator[tuple[str, Any]]:
    """What each detector suggests."""
    steps = np.arange(1.0, len(losses) + 1)
    trend = TrendOptions().monitor(None)
    trend.update_many(steps, losses)
    yield "trend", suggest(trend)
    classic = ClassicOptions().monitor(None)
    for step, loss in zip(steps.tolist(), losses.tolist(), strict=True):
        classic.update(step, loss)
    yield "classic", suggest(classic)


def main() -> None:
    """Print the table."""
    chance = np.random.default_rng(SEED)
    right: Counter[tuple[str, str, str]] = Counter()
    of: Counter[tuple[str, str, str]] = Counter()
    curves = [synthetic(chance) for _ in range(SYNTHETIC)] + list(real())
    for curve in curves:
        for truth, shape, size, length in FAILURES:
            onset = int(chance.uniform(0.15, 0.9) * len(curve))
            losses = curve[: onset + AFTER].copy()
            before = losses[max(0, onset - 400) : onset]
            sigma = 1.4826 * float(np.median(np.abs(np.diff(before)))) / math.sqrt(2)
            losses[onset:] += shape(np.arange(len(losses) - onset), size * sigma, length)
            for detector, said in judged(losses):
                if not said.alert or said.failure_type == "uncertain":
                    continue
                kind = said.kind
                if detector == "classic" and kind != "nonfinite":
                    kind = said.failure_type
                far = said.d_spike if detector == "classic" else said.excess_sigma
                key = (detector, kind, size_of(far if kind != "nonfinite" else None))
                of[key] += 1
                right[key] += said.failure_type == truth and said.first_alert_step > onset
    print(f"# {len(curves)} curves, {len(FAILURES)} cases each")
    print("TABLE: dict[tuple[str, str, str], Cases] = {")
    for key in sorted(of):
        print(f'    ("{key[0]}", "{key[1]}", "{key[2]}"): Cases({right[key]}, {of[key]}),')
    print("}")


if __name__ == "__main__":
    main()
