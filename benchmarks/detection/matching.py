"""Rivals at one false-alarm rate: thresholds found on some runs, frozen, and tried on others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.curves import Floats
from benchmarks.detection.ramps import Case, Ramp, watch
from benchmarks.detection.rivals import Bools, Rival
from benchmarks.intervals import rate_interval
from wtwin_watch.monitor.trend import TrendMonitor

AGAIN = 1000
"""An alarm that stays on counts again each time it has been on for so many points."""
STEADY_POINTS = 200_000
HISTORY = 20_000
"""A rival is started so many points before a ramp: longer than any of them remembers in its sums."""


@dataclass(frozen=True)
class CleanRun:
    """A log without failures: its name, where it is from, its finite losses, and what really happened.

    Alarms from the one to the other point of ``event`` are right, so they aren't counted.
    """

    name: str
    origin: str
    losses: Floats
    event: tuple[int, int] = (0, 0)

    def __len__(self) -> int:
        return len(self.losses)


def steady() -> Floats:
    """Make a loss that has settled, with white Gaussian noise: the easiest there is."""
    return np.asarray(2.0 + np.random.default_rng(9).normal(0.0, 0.02, STEADY_POINTS))


def count_alarms(alarms: Bools, event: tuple[int, int] = (0, 0)) -> int:
    """Count how often an alarm begins, and again for each further thousand points it stays on."""
    on = np.flatnonzero(alarms)
    if not len(on):
        return 0
    begins = on[np.diff(on, prepend=-2) > 1]
    begin_of = begins[np.searchsorted(begins, on, side="right") - 1]
    counted = on[(on - begin_of) % AGAIN == 0]
    return int(((counted < event[0]) | (counted >= event[1])).sum())


def strictness(counts: Callable[[int], int], choices: int, allowed: int) -> int:
    """Bisect for the laxest of ``choices`` thresholds with at most ``allowed`` alarms.

    ``counts(i)``: the alarms at the i-th threshold, which fall as i grows. The strictest one if all
    have more.
    """
    low, high = 0, choices - 1
    while low < high:
        middle = (low + high) // 2
        if counts(middle) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low


class Calibration:
    """A rival's alarms in clean runs, looked up at a threshold only when asked for."""

    def __init__(self, rival: Rival, runs: Sequence[CleanRun]) -> None:
        self.rival = rival
        self.runs = runs
        self.levels = len(rival.thresholds)
        self._evidence = [rival.evidence(run.losses, 0) for run in runs]
        self._known: dict[tuple[int, int], int] = {}

    def alarms(self, run: int, level: int) -> int:
        """Return how many alarms there are in one run at one of the rival's thresholds."""
        if (run, level) not in self._known:
            on = self.rival.alarms(self._evidence[run], float(self.rival.thresholds[level]))
            self._known[run, level] = count_alarms(on, self.runs[run].event)
        return self._known[run, level]

    def level_without(self, origin: str, per_points: float = 1e5) -> int:
        """Return the threshold with one alarm in so many points of the runs from elsewhere.

        The number of alarms allowed is rounded to the nearest, which is for the rival half the time.
        """
        others = [i for i, run in enumerate(self.runs) if run.origin != origin]
        points = sum(len(self.runs[i]) for i in others)
        return strictness(
            lambda level: sum(self.alarms(i, level) for i in others),
            self.levels,
            round(points / per_points),
        )


@dataclass(frozen=True)
class Trial:
    """What one method did at its threshold: on the ramps, on clean runs it wasn't set by, on steady noise."""

    name: str
    ramps: list[Ramp]
    alarms: int
    points: int
    steady_alarms: int = 0

    @property
    def kept(self) -> bool:
        """Whether it may have kept one alarm in 100,000 points, on the clean runs and on steady noise."""
        rates = ((self.alarms, self.points), (self.steady_alarms, STEADY_POINTS))
        return all(rate_interval(count, points)[0] <= 1.0 for count, points in rates)


def tried(job: tuple[Rival, Sequence[CleanRun], Sequence[CleanRun], Sequence[Case]]) -> Trial:
    """Set a rival's threshold by runs from elsewhere, and try it on clean runs and on ramps.

    The job: the rival, the runs to try it on, those to set it by, and the ramps. Where these are the same
    runs, each origin has the threshold that the others set.
    """
    rival, runs, calibration_runs, cases = job
    calibration = Calibration(rival, calibration_runs)
    clean = calibration if calibration_runs is runs else Calibration(rival, runs)
    by_name = {run.name: run for run in runs}
    levels = {origin: calibration.level_without(origin) for origin in {run.origin for run in runs}}
    ramps = []
    for case in cases:
        run = by_name[case.run]
        threshold = float(rival.thresholds[levels[run.origin]])
        start = max(0, case.onset - HISTORY)
        on = rival.alarms(rival.evidence(case.injected(run.losses), start), threshold)
        ramps.append(case.seen(first_alarm(on, case.onset - start)))
    usual = float(rival.thresholds[calibration.level_without("")])
    return Trial(
        rival.name,
        ramps,
        sum(clean.alarms(i, levels[run.origin]) for i, run in enumerate(runs)),
        sum(len(run) for run in runs),
        count_alarms(rival.alarms(rival.evidence(steady(), 0), usual)),
    )


FARS = tuple(np.geomspace(100.0, 1e7, 51).tolist())
"""What the trend monitor's ``far`` is chosen from, to compare it as if its rate weren't a setting."""


class OwnCalibration(Calibration):
    """The trend monitor's alerts in clean runs, at one of `FARS`."""

    def __init__(self, runs: Sequence[CleanRun]) -> None:
        self.runs = runs
        self.levels = len(FARS)
        self._known = {}

    def alarms(self, run: int, level: int) -> int:
        """Return how many alerts there are in one run at this ``far``; what really happened isn't counted."""
        if (run, level) not in self._known:
            clean = self.runs[run]
            monitor = TrendMonitor(far=FARS[level], history_limit=0)
            rows = monitor.update_many(np.arange(1, len(clean) + 1), clean.losses)
            self._known[run, level] = count_alarms(rows["alert"], clean.event)
        return self._known[run, level]


def ours_matched(job: tuple[Sequence[CleanRun], Sequence[CleanRun], Sequence[Case]]) -> Trial:
    """Set the trend monitor's ``far`` as a rival's threshold is set, and try it on the same.

    The job: the runs to try it on, those to set it by, and the ramps.
    """
    runs, calibration_runs, cases = job
    calibration = OwnCalibration(calibration_runs)
    clean = calibration if calibration_runs is runs else OwnCalibration(runs)
    levels = {origin: calibration.level_without(origin) for origin in {run.origin for run in runs}}
    seen: dict[Case, Ramp] = {}
    for run in runs:
        own = [case for case in cases if case.run == run.name]
        seen.update(zip(own, watch(run.losses, own, FARS[levels[run.origin]]), strict=True))
    return Trial(
        "ours, far set likewise",
        [seen[case] for case in cases],
        sum(clean.alarms(i, levels[run.origin]) for i, run in enumerate(runs)),
        sum(len(run) for run in runs),
        OwnCalibration([CleanRun("steady", "", steady())]).alarms(0, calibration.level_without("")),
    )


def first_alarm(alarms: Bools, onset: int) -> int | None:
    """Return after how many points from ``onset`` on the first alarm is, None without one.

    The first of these points is number 1. An alarm that is on before earns nothing.
    """
    if onset > 0 and alarms[onset - 1]:
        return None
    later = np.flatnonzero(alarms[onset:])
    return int(later[0]) + 1 if len(later) else None
