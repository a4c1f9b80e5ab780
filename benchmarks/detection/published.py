"""The published nano-GPT experiments: failures injected at step 2000 of per-step logs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from benchmarks.curves import read
from benchmarks.detection.ramps import FAR
from benchmarks.progress import spread
from benchmarks.report import Measure
from wtwin_watch.monitor.trend import TrendMonitor

GROUP = "The published experiments"
ONSET = 2000
ABRUPT = ("weightcorrupt", "dropout", "lrspike")


def on_logs(pool: Executor, folder: Path) -> Iterator[Measure]:
    """Measure delays and false alarms, without and with the learning rate as logged."""
    paths = sorted((folder / "nanogpt").glob("*.csv.gz"))
    for with_lr in (False, True):
        how = "with lr" if with_lr else "without lr"
        rows = spread(pool, f"nano-GPT {how}", first_alert, [(path, with_lr) for path in paths])
        delays = {name: math.inf if step is None else step - ONSET for name, step in rows}
        linear = [delay for name, delay in delays.items() if "linear" in name]
        gradual = [delay for name, delay in delays.items() if name.startswith("prog")]
        abrupt = [delay for name, delay in delays.items() if name.startswith(ABRUPT)]
        clean = [delay for name, delay in delays.items() if name.startswith("none")]
        steps = ", ".join(f"{delay:g}" for delay in linear)
        yield Measure(
            f"linear label noise {how}, mean delay",
            float(np.mean(linear)),
            at_most=11.0,
            unit="steps",
            note=steps,
            group=GROUP,
        )
        yield Measure(
            f"linear label noise {how}, longest delay",
            max(linear),
            at_most=14.0,
            unit="steps",
            group=GROUP,
        )
        yield Measure(
            f"progressive failures {how}, detected",
            sum(0 < delay < math.inf for delay in gradual),
            at_least=7,
            note=f"of {len(gradual)}",
            group=GROUP,
        )
        yield Measure(
            f"abrupt failures {how}, longest delay",
            max(abrupt),
            at_most=5.0,
            unit="steps",
            note=f"{len(abrupt)} runs",
            group=GROUP,
        )
        yield Measure(
            f"clean runs {how}, with an alert",
            sum(delay < math.inf for delay in clean),
            at_most=0,
            note=f"of {len(clean)}",
            group=GROUP,
        )


def first_alert(job: tuple[Path, bool]) -> tuple[str, float | None]:
    """Return name and step of the first alert of a log, with or without its learning rate."""
    path, with_lr = job
    log = read(path, column="train_loss")
    monitor = TrendMonitor(far=FAR, history_limit=0)
    monitor.update_many(log.steps, log.losses, log.lrs if with_lr else None)
    return path.name.split(".")[0], monitor.first_alert_step()
