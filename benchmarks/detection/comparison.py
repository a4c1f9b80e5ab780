"""The trend monitor and its rivals on the same ramps: detected share and delay against the oracle's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.curves import PYTHIA, Log, simulated
from benchmarks.detection.matching import STEADY_POINTS, CleanRun, Trial, ours_matched, tried
from benchmarks.detection.ramps import Case, Ramp
from benchmarks.detection.rivals import RIVALS
from benchmarks.intervals import Interval, bootstrap, rate_interval
from benchmarks.progress import spread
from benchmarks.report import Measure

PYTHIA_EVENT = (4600, 5600)
"""Its loss really rises at point 4,605, by 18 sigma."""
REAL_POOL = "real logs from elsewhere"
SIMULATED = 25
SIMULATED_SEED = 7


@dataclass(frozen=True)
class Comparison:
    """All methods on one set of ramps: ours as it is, and all, ours too, set by the ``pool``."""

    where: str
    pool: str
    ours: list[Ramp]
    matched: Trial
    trials: list[Trial]

    @property
    def kept(self) -> list[Trial]:
        """The rivals that may have kept the rate they were set to; all, if none has."""
        return [trial for trial in self.trials if trial.kept] or self.trials


def best(trials: Sequence[Trial]) -> Trial:
    """Return the one with the least median delay."""
    return min(trials, key=lambda trial: median_ratio(trial.ramps))


def median_ratio(ramps: Sequence[Ramp]) -> float:
    """Return the median of delay ÷ the oracle's, misses as the horizon."""
    return float(np.median([ramp.ratio for ramp in ramps]))


def detected(ramps: Sequence[Ramp]) -> float:
    """Return the share that was seen."""
    return sum(ramp.delay is not None for ramp in ramps) / len(ramps)


def grouped(ramps: Sequence[Ramp]) -> list[list[Ramp]]:
    """Return the ramps by what stands or falls together: a run, or a place where there is one run only."""
    one_run = len({ramp.run for ramp in ramps}) == 1
    groups: dict[object, list[Ramp]] = {}
    for ramp in ramps:
        groups.setdefault(ramp.onset if one_run else ramp.run, []).append(ramp)
    return list(groups.values())


def seen(
    name: str, ramps: list[Ramp], at_least: float, at_most: float, surely: bool
) -> Iterator[Measure]:
    """Say how many ramps the trend monitor saw, and how late.

    ``surely``: the kinder end of the interval is held against the target.
    """
    groups = grouped(ramps)
    share, late = bootstrap(groups, detected), bootstrap(groups, median_ratio)
    note = f"{len(ramps)} ramps in {len({ramp.run for ramp in ramps})} runs"
    group = "Slow rises"
    yield Measure(
        f"{name}, detected",
        detected(ramps),
        at_least=at_least,
        note=note,
        interval=share,
        judged=share[1] if surely else None,
        group=group,
    )
    yield Measure(
        f"{name}, median delay ÷ oracle's",
        median_ratio(ramps),
        at_most=at_most,
        note="misses count as the horizon",
        interval=late,
        judged=late[0] if surely else None,
        group=group,
    )


def compare(
    pool: Executor, clean: Sequence[Log], cases: Sequence[Case], ours: dict[str, list[Ramp]]
) -> list[Comparison]:
    """Try all rivals on the ramps, set by real logs from elsewhere and, apart, by simulated runs.

    ``ours``: what the trend monitor did, by the name of the set; the cases are those of all sets in turn.
    """
    runs = [clean_run(log) for log in clean]
    simulated_runs = [
        CleanRun(f"simulated {i}", "simulated", simulated(SIMULATED_SEED, i)[1])
        for i in range(SIMULATED)
    ]
    comparisons = []
    for from_where, calibration in (
        (REAL_POOL, runs),
        ("simulated runs", simulated_runs),
    ):
        jobs = [(rival, runs, calibration, cases) for rival in RIVALS]
        what = "rivals, by " + from_where.split()[0]
        own = pool.submit(ours_matched, (runs, calibration, cases))
        trials = spread(pool, what, tried, jobs)
        matched = own.result()
        begin = 0
        for where, ramps in ours.items():
            part = slice(begin, begin + len(ramps))
            begin += len(ramps)
            comparisons.append(
                Comparison(
                    where,
                    from_where,
                    ramps,
                    replace(matched, ramps=matched.ramps[part]),
                    [replace(trial, ramps=trial.ramps[part]) for trial in trials],
                )
            )
    return comparisons


def clean_run(log: Log) -> CleanRun:
    """Make a clean log ready for rivals: its finite losses, and where it is from."""
    event = PYTHIA_EVENT if log.name in PYTHIA else (0, 0)
    return CleanRun(log.name, log.name.split("_")[0], log.losses[np.isfinite(log.losses)], event)


def against(comparison: Comparison, at_least: float | None) -> Iterator[Measure]:
    """Say how much later the best rival is, and how each did.

    A target is for the rivals that kept the rate they were set to, as far as can be told: without its
    rate, a threshold says nothing.
    """
    group = f"Other methods, set by {comparison.pool}"
    for trials, which, bound in (
        (comparison.kept, "the best rival that kept its rate", at_least),
        (comparison.trials, "the best rival, rate kept or not", None),
    ):
        one = best(trials)
        for how, ours in (
            ("ours", comparison.ours),
            ("ours set likewise", comparison.matched.ramps),
        ):
            yield Measure(
                f"{comparison.where}: delay of {which} ÷ {how}",
                median_ratio(one.ramps) / median_ratio(ours),
                at_least=bound if ours is comparison.ours else None,
                note=one.name,
                interval=_between(ours, trials),
                group=group,
            )
    for trial in (comparison.matched, *comparison.trials):
        low, high = rate_interval(trial.alarms, trial.points)
        alarms = f"{trial.alarms / trial.points * 1e5:.2g} [{low:.2g}, {high:.2g}]"
        steady = trial.steady_alarms / STEADY_POINTS * 1e5
        yield Measure(
            f"{comparison.where}: {trial.name}, delay ÷ oracle's",
            median_ratio(trial.ramps),
            note=f"detected {detected(trial.ramps):.0%}; alarms /100k: {alarms} in clean logs,"
            f" {steady:.2g} in steady noise",
            interval=bootstrap(grouped(trial.ramps), median_ratio, 200),
            group=group,
        )


def _between(ours: Sequence[Ramp], trials: Sequence[Trial]) -> Interval:
    """The interval of the best rival's delay ÷ ours; the best one is found anew in every draw."""
    methods = [ours, *(trial.ramps for trial in trials)]
    groups = [grouped(ramps) for ramps in methods]
    together = [
        list(zip(*(group[i] for group in groups), strict=True)) for i in range(len(groups[0]))
    ]

    def of(rows: list[tuple[Ramp, ...]]) -> float:
        medians = np.median([[ramp.ratio for ramp in row] for row in rows], axis=0)
        return float(medians[1:].min() / medians[0])

    return bootstrap(together, of)
