"""``python -m benchmarks.detection``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from pathlib import Path

from benchmarks.curves import PYTHIA, Log, corpus, shared
from benchmarks.detection import conditions, cost, failures, false_alarms, published
from benchmarks.detection.comparison import Comparison, against, compare, seen
from benchmarks.detection.ramps import early_ramps, pythia_cases, short_cases, watched
from benchmarks.intervals import bootstrap
from benchmarks.progress import spread, workers
from benchmarks.report import Measure, main

PYTHIA_SET, SHORT_SET = "Pythia ramps", "short ramps"
AGAINST_RIVALS = {PYTHIA_SET: 1.2, SHORT_SET: 2.0}


class Study:
    """All measurements, and what the report needs of them beside the measures."""

    def __init__(self) -> None:
        self.comparisons: list[Comparison] = []

    def measure(self, quick: bool) -> Iterator[Measure]:
        """Measure everything there is data for; the quick form leaves the rivals out."""
        yield from cost.measure(quick)
        with workers() as pool:
            yield from false_alarms.on_simulated(pool, quick)
            yield from failures.on_simulated(pool, quick)
            yield from conditions.on_simulated(pool, quick)
            folder = shared()
            if folder is not None:
                yield from self._on_logs(pool, folder, quick)

    def _on_logs(self, pool: Executor, folder: Path, quick: bool) -> Iterator[Measure]:
        clean = list(corpus(folder))
        pythia = next(log for log in clean if log.name in PYTHIA)
        others = [log for log in clean if log is not pythia]
        yield from false_alarms.on_logs(pool, others)
        yield from published.on_logs(pool, folder)

        logs = [log for log in eight_an_origin(others) if len(log) >= 1000]
        logs = logs[::4] if quick else logs
        jobs = [(pythia, pythia_cases(pythia, quick)), *((log, short_cases(log)) for log in logs)]
        long, *short = spread(pool, "ramps", watched, jobs)
        ours = {PYTHIA_SET: long, SHORT_SET: [ramp for ramps in short for ramp in ramps]}
        yield from seen(PYTHIA_SET, ours[PYTHIA_SET], 0.95, 1.22, quick)
        yield from seen(SHORT_SET, ours[SHORT_SET], 0.64, 1.60, quick)
        early = spread(pool, "early ramps", early_ramps, logs)
        interval = bootstrap(early, share)
        yield Measure(
            "early ramps, seen within 500 points",
            share([hit for hits in early for hit in hits]),
            at_least=0.55,
            note=f"{sum(map(len, early))} ramps in {len(early)} runs",
            interval=interval,
            judged=interval[1] if quick else None,
            group="Slow rises",
        )
        yield from failures.on_logs(pool, clean, quick)
        if quick:
            return
        yield from conditions.on_logs(pool, clean)
        cases = [case for _, part in jobs for case in part]
        self.comparisons = compare(pool, clean, cases, ours)
        for comparison in self.comparisons:
            judged = comparison is self.comparisons[0] or comparison is self.comparisons[1]
            yield from against(comparison, AGAINST_RIVALS[comparison.where] if judged else None)


def eight_an_origin(logs: Iterable[Log]) -> Iterator[Log]:
    """Take at most eight logs of one origin."""
    taken = Counter[str]()
    for log in logs:
        origin = log.name.split("_")[0]
        taken[origin] += 1
        if taken[origin] <= 8:
            yield log


def share(hits: list[bool]) -> float:
    """Return the share that is true."""
    return sum(hits) / len(hits)


if __name__ == "__main__":
    study = Study()
    sys.exit(main("detection", study.measure))
