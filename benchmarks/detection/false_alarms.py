"""How often the trend monitor alerts in runs that nothing is wrong with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor

import numpy as np

from benchmarks.curves import Floats, Log, simulated
from benchmarks.detection.ramps import FAR
from benchmarks.intervals import rate_interval
from benchmarks.progress import spread
from benchmarks.report import Measure
from wtwin_watch.monitor.trend import TrendMonitor

GROUP = "False alarms"
LANGUAGE = ("llm-pretrain", "finetune")
SEED = 1
Count = tuple[str, int, int]
"""Of what, alerts, points."""


def on_simulated(pool: Executor, quick: bool) -> Iterator[Measure]:
    """Simulated runs of every noise; the quick form fails only where chance can't be the reason."""
    rows = spread(pool, "simulated runs", simulated_alerts, range(40 if quick else 300))
    for family, alerts, points in sorted(by_kind(rows)):
        yield rate(f"simulated, {family} noise", alerts, points, 2.0, surely=quick)


def on_logs(pool: Executor, clean: Sequence[Log]) -> Iterator[Measure]:
    """The clean real logs, by what was trained."""
    rows = by_kind(spread(pool, "clean logs", log_alerts, clean))
    language = [row for row in rows if row[0] in LANGUAGE]
    alerts, points = (sum(row[i] for row in language) for i in (1, 2))
    yield rate("real logs, language models and fine-tuning", alerts, points, 1.0)
    for kind, alerts, points in sorted(rows):
        yield rate(f"real logs, {kind}", alerts, points, 10.0)


def rate(of: str, alerts: int, points: int, at_most: float, surely: bool = False) -> Measure:
    """Return alerts in 100,000 points; ``surely``: only its lower end is held against the target."""
    interval = rate_interval(alerts, points)
    return Measure(
        f"false alarms, {of}",
        alerts / points * 1e5,
        at_most=at_most,
        unit="/100k",
        note=f"{alerts} in {points:,} points" + (", its lower end is judged" if surely else ""),
        interval=interval,
        judged=interval[0] if surely else None,
        group=GROUP,
    )


def by_kind(rows: Iterable[Count]) -> list[Count]:
    """Sum up what is of one kind."""
    alerts, points = Counter[str](), Counter[str]()
    for kind, count, length in rows:
        alerts[kind] += count
        points[kind] += length
    return [(kind, alerts[kind], points[kind]) for kind in points]


def log_alerts(log: Log) -> Count:
    """Return kind, alerts and points of a log, watched with its steps and learning rates."""
    return log.kind, alerts_in(log.losses, log.steps, log.lrs), len(log)


def simulated_alerts(index: int) -> Count:
    """Return the same of a simulated run, and its family for the kind."""
    family, losses = simulated(SEED, index)
    return family, alerts_in(losses), len(losses)


def alerts_in(losses: Floats, steps: Floats | None = None, lrs: Floats | None = None) -> int:
    """Count the episodes of one run."""
    monitor = TrendMonitor(far=FAR, history_limit=0)
    monitor.update_many(np.arange(1, len(losses) + 1) if steps is None else steps, losses, lrs)
    return monitor.episodes[-1].number if monitor.episodes else 0
