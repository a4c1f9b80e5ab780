"""``python -m benchmarks.detection``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.curves import PYTHIA, Log, corpus, shared
from benchmarks.detection import conditions, cost, document, failures, false_alarms, published
from benchmarks.detection.comparison import REAL_POOL, Comparison, against, compare, seen
from benchmarks.detection.ramps import Case, Ramp, early_ramps, pythia_cases, short_cases, watched
from benchmarks.intervals import bootstrap
from benchmarks.progress import spread, workers
from benchmarks.report import Measure, Part, Skipped, main

PYTHIA_SET, SHORT_SET = "Pythia ramps", "short ramps"
AGAINST_RIVALS = {PYTHIA_SET: 1.2, SHORT_SET: 2.0}
NO_LOGS = "set WTWIN_WATCH_CORPUS to the folder of given logs"


class Study:
    """All measurements, and what the report needs of them beside the measures."""

    def __init__(self) -> None:
        self.comparisons: list[Comparison] = []
        self._ramps: dict[str, list[Ramp]] | None = None

    def parts(self) -> dict[str, Part]:
        """Return what can be measured, by name."""
        return {
            "cost": cost.measure,
            "simulated": self.on_simulated,
            "logs": self.on_logs,
            "rivals": self.rivals,
        }

    def on_simulated(self, quick: bool) -> Iterator[Measure]:
        """Measure what needs no given logs."""
        with workers() as pool:
            yield from false_alarms.on_simulated(pool, quick)
            yield from failures.on_simulated(pool, quick)
            yield from conditions.on_simulated(pool, quick)

    def on_logs(self, quick: bool) -> Iterator[Measure | Skipped]:
        """Measure what the given logs are for; the quick form takes every fourth of the short ones."""
        folder = shared()
        if folder is None:
            yield Skipped("logs", NO_LOGS)
            return
        given = Given.read(folder, quick)
        with workers() as pool:
            yield from false_alarms.on_logs(pool, given.others)
            yield from published.on_logs(pool, folder)
            ramps = self._watched(pool, given)
            yield from seen(PYTHIA_SET, ramps[PYTHIA_SET], 0.95, 1.22, quick)
            yield from seen(SHORT_SET, ramps[SHORT_SET], 0.64, 1.60, quick)
            early = spread(pool, "early ramps", early_ramps, given.short)
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
            yield from failures.on_logs(pool, given.clean, quick)
            if not quick:
                yield from conditions.on_logs(pool, given.clean)

    def rivals(self, quick: bool) -> Iterator[Measure | Skipped]:
        """Compare with other methods; this has no quick form."""
        folder = shared()
        if folder is None or quick:
            yield Skipped("rivals", NO_LOGS if folder is None else "they take minutes")
            return
        given = Given.read(folder, quick)
        with workers() as pool:
            ramps = self._watched(pool, given)
            self.comparisons = compare(pool, given.clean, given.cases, ramps)
        for comparison in self.comparisons:
            judged = comparison.pool == REAL_POOL
            yield from against(comparison, AGAINST_RIVALS[comparison.where] if judged else None)

    def write(self, path: Path, measures: Sequence[Measure]) -> None:
        """Write the report, which holds everything."""
        if not self.comparisons:
            raise SystemExit(
                "no report: it needs WTWIN_WATCH_CORPUS, and neither --quick nor --only"
            )
        document.write(path, measures, self.comparisons)

    def _watched(self, pool: Executor, given: Given) -> dict[str, list[Ramp]]:
        if self._ramps is None:
            long, *short = spread(pool, "ramps", watched, given.jobs)
            self._ramps = {PYTHIA_SET: long, SHORT_SET: [ramp for found in short for ramp in found]}
        return self._ramps


@dataclass(frozen=True)
class Given:
    """The clean logs, and the ramps that are added: to Pythia's, and to the short ones in turn."""

    clean: list[Log]
    short: list[Log]
    jobs: list[tuple[Log, list[Case]]]

    @classmethod
    def read(cls, folder: Path, quick: bool) -> Given:
        """Read them."""
        clean = list(corpus(folder))
        pythia = next(log for log in clean if log.name in PYTHIA)
        long_enough = [log for log in clean if log is not pythia and len(log) >= 1000]
        short = list(eight_an_origin(long_enough))
        short = short[::4] if quick else short
        jobs = [(pythia, pythia_cases(pythia, quick)), *((log, short_cases(log)) for log in short)]
        return cls(clean, short, jobs)

    @property
    def others(self) -> list[Log]:
        """All but Pythia's, which has a real spike."""
        return [log for log in self.clean if log.name not in PYTHIA]

    @property
    def cases(self) -> list[Case]:
        """All ramps."""
        return [case for _, cases in self.jobs for case in cases]


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
    sys.exit(main("detection", study.parts(), document=study.write))
