"""What the trend monitor costs, as ratios of two things that are timed in turn, and in bytes."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from benchmarks.curves import Floats
from benchmarks.report import Measure
from wtwin_watch.model import Point
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.monitor.trend import TrendMonitor
from wtwin_watch.monitor.wtwin import WTwinState

GROUP = "Cost"
STRETCH = 2000
MANY = 20_000
KIB = 1024


def measure(quick: bool) -> Iterator[Measure]:
    """Measure time and memory."""
    yield update_ratio(rounds=11 if quick else 41)
    yield many_ratio(rounds=5 if quick else 15)
    yield run_bytes(points=20_000 if quick else 100_000)
    monitor = TrendMonitor(history_limit=0)
    points = 60_000
    monitor.update_many(np.arange(1, points + 1), losses(points))
    size = len(json.dumps(monitor.snapshot(), separators=(",", ":")))
    yield Measure(
        f"snapshot of a TrendMonitor, {points:,} points",
        size / KIB,
        at_most=32.0,
        unit="KiB of JSON",
        group=GROUP,
    )


def losses(points: int, seed: int = 3) -> Floats:
    """A healthy loss."""
    noise = np.random.default_rng(seed).normal(0.0, 0.02, points)
    return np.asarray(2.0 + 3.0 * np.arange(1.0, points + 1.0) ** -0.4 + noise)


def update_ratio(rounds: int) -> Measure:
    """Time of an update ÷ time to build the state it returns; each stretch of the one beside the other."""
    monitor = TrendMonitor(history_limit=0)
    first = 5000
    curve = losses(first + rounds * STRETCH).tolist()
    monitor.update_many(np.arange(1, first + 1), curve[:first])
    ratios, spent = [], []
    for i in range(rounds):
        begin = first + i * STRETCH
        part = curve[begin : begin + STRETCH]

        def update(part: list[float] = part, begin: int = begin) -> None:
            for step, loss in enumerate(part, begin + 1):
                monitor.update(step, loss)

        def build(part: list[float] = part, begin: int = begin) -> None:
            for step, loss in enumerate(part, begin + 1):
                WTwinState(step, loss, loss, 0.5, 1.0, 4.5, -4.0, False)

        updating = seconds(update)
        ratios.append(updating / seconds(build))
        spent.append(updating / STRETCH)
    return Measure(
        "update ÷ building one WTwinState",
        statistics.median(ratios),
        at_most=15.0,
        note=f"median of {rounds}; {statistics.median(spent) * 1e6:.1f} µs an update",
        group=GROUP,
    )


def many_ratio(rounds: int) -> Measure:
    """Time of update_many of 20,000 points ÷ time of as many updates."""
    curve = losses(MANY)
    steps = np.arange(1.0, MANY + 1.0)
    pairs = list(zip(steps.tolist(), curve.tolist(), strict=True))

    def many() -> None:
        TrendMonitor(history_limit=0).update_many(steps, curve)

    def one_by_one() -> None:
        monitor = TrendMonitor(history_limit=0)
        for step, loss in pairs:
            monitor.update(step, loss)

    ratios, spent = [], []
    for _ in range(rounds):
        at_once = seconds(many)
        ratios.append(at_once / seconds(one_by_one))
        spent.append(at_once / MANY)
    return Measure(
        f"update_many of {MANY:,} ÷ the same by update",
        statistics.median(ratios),
        at_most=1 / 3,
        note=f"median of {rounds}; {statistics.median(spent) * 1e6:.2f} µs a point",
        group=GROUP,
    )


def seconds(work: Callable[[], None]) -> float:
    """Return the processor time of ``work``: what else the machine does meanwhile isn't in it."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def run_bytes(points: int) -> Measure:
    """Memory of one run's monitor that has seen so many points of each of four metrics."""
    monitor = RunMonitor()
    loss, rng = losses(points), np.random.default_rng(4)
    columns = {
        "loss": loss,
        "grad_norm": np.exp(rng.normal(0.0, 0.2, points)),
        "val_loss": loss + 0.1,
        "throughput": rng.normal(1000.0, 30.0, points),
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    for step, row in enumerate(rows, 1):
        named = zip(columns, row, strict=True)
        monitor.feed([Point(name, float(step), value) for name, value in named])
    return Measure(
        f"state of a RunMonitor with four metrics, {points:,} points",
        held_bytes(monitor) / KIB,
        at_most=128.0,
        unit="KiB",
        group=GROUP,
    )


NOT_STATE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def held_bytes(thing: Any) -> int:
    """Return the bytes of an object and all that only data leads to; code and classes aren't counted."""
    seen: set[int] = set()
    waiting, total = [thing], 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, NOT_STATE):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        waiting += gc.get_referents(one)
    return total
