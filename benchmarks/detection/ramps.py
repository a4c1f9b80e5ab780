"""Slow rises added to clean logs, and how the trend monitor sees them against an oracle's delay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.curves import Floats, Log, bound, sigma_before
from wtwin_watch.monitor.trend import TrendMonitor

FAR = 1e5


@dataclass(frozen=True)
class Ramp:
    """How a ramp was seen: delay in points (None: missed), an oracle's delay, and the horizon."""

    run: str
    onset: int
    delay: int | None
    oracle: float
    horizon: int

    @property
    def ratio(self) -> float:
        """Delay ÷ the oracle's; a miss counts as the horizon."""
        return (self.horizon if self.delay is None else self.delay) / self.oracle


@dataclass(frozen=True)
class Case:
    """A ramp to be added: to ``delta`` within ``duration`` points from ``onset`` on, noise ``sigma``."""

    run: str
    onset: int
    delta: float
    duration: int
    sigma: float

    @property
    def horizon(self) -> int:
        """Points from the onset on after which it is missed."""
        return 2 * self.duration + 2000

    def injected(self, losses: Floats) -> Floats:
        """Return the losses up to the horizon, with the ramp."""
        changed = losses[: self.onset + self.horizon].copy()
        after = np.arange(len(changed) - self.onset)
        changed[self.onset :] += self.delta * np.minimum(1.0, after / self.duration)
        return changed

    def seen(self, delay: int | None) -> Ramp:
        """Say how it was seen."""
        oracle = bound(FAR, self.sigma, self.delta, self.duration)
        return Ramp(self.run, self.onset, delay, oracle, self.horizon)


def pythia_cases(log: Log, quick: bool) -> list[Case]:
    """Ramps of .02 to .5 nats over 500 to 10,000 points in the long Pythia log; sigma is .02 there."""
    shifts = (0,) if quick else (0, 700, 1500, 2300)
    return [
        Case(log.name, int(len(log) * share) + shift, delta, duration, 0.02)
        for share in (0.1, 0.25, 0.5, 0.75, 0.9)
        for shift in shifts
        for delta in (0.02, 0.05, 0.1, 0.2, 0.5)
        for duration in (500, 2000, 10_000)
    ]


def short_cases(log: Log) -> list[Case]:
    """Ramps of 1, 2.5 and 5 sigma over 100 and 500 points from 15 to 80 % of a run, that end within it."""
    cases = []
    for share in (0.15, 0.4, 0.6, 0.8):
        onset = int(share * len(log))
        sigma = sigma_before(log.losses, onset)
        cases += [
            Case(log.name, onset, sigmas * sigma, duration, sigma)
            for sigmas in (1.0, 2.5, 5.0)
            for duration in (100, 500)
            if onset + duration <= len(log)
        ]
    return cases


def watched(job: tuple[Log, Sequence[Case]]) -> list[Ramp]:
    """Watch one log's ramps at the nominal false-alarm rate."""
    log, cases = job
    return watch(log.losses, cases, FAR)


def watch(losses: Floats, cases: Sequence[Case], far: float) -> list[Ramp]:
    """Watch ramps in one run's losses with the trend monitor, point by point, steps 1, 2, …"""
    onsets = sorted({case.onset for case in cases})
    states = dict(at_onsets(losses, onsets, far))
    return [
        case.seen(
            first_alert(
                TrendMonitor.restore(states[case.onset]),
                case.onset,
                case.injected(losses)[case.onset :],
            )
        )
        for case in cases
    ]


def early_ramps(log: Log) -> list[bool]:
    """Ramps of 3, 6 and 12 sigma over 60 points at points 100 to 400: seen within 500?"""
    found = []
    for onset, state in at_onsets(log.losses, (100, 150, 230, 400)):
        for sigmas in (3.0, 6.0, 12.0):
            part = log.losses[onset : onset + 500]
            rise = np.minimum(1.0, np.arange(len(part)) / 60)
            part = part + sigmas * sigma_before(log.losses, onset) * rise
            found.append(first_alert(TrendMonitor.restore(state), onset, part) is not None)
    return found


def at_onsets(
    losses: Floats, onsets: Sequence[int], far: float = FAR
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the monitor's state at each onset, in their order, of a log with steps 1, 2, …"""
    monitor = TrendMonitor(far=far, history_limit=0)
    done = 0
    for onset in onsets:
        monitor.update_many(np.arange(done + 1, onset + 1), losses[done:onset])
        done = onset
        yield onset, monitor.snapshot()


def first_alert(monitor: TrendMonitor, first: int, losses: Floats) -> int | None:
    """Return after how many points the monitor alerts, None if it doesn't or did before."""
    if monitor.open_episodes:
        return None
    for count, loss in enumerate(losses.tolist(), 1):
        if monitor.update(first + count, loss).alert:
            return count
    return None
