"""Failures of known kind added to clean runs: how soon they are seen, how often told, what called."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from benchmarks.curves import PYTHIA, Floats, Log, sigma_before, simulated
from benchmarks.detection.ramps import at_onsets
from benchmarks.intervals import bootstrap
from benchmarks.progress import spread
from benchmarks.report import Measure
from wtwin_watch.monitor.trend import TrendMonitor

AFTER = 9000
"""Points that are watched from the onset on."""
JUMP, NAN = "step of 5", "NaN"
T = np.arange(AFTER)
FAILURES: dict[str, tuple[str, Floats]] = {
    "spike of 5, tau 20": ("spike", 5.0 * np.exp(-T / 20)),
    "spike of 25, tau 20": ("spike", 25.0 * np.exp(-T / 20)),
    "spike of 50, tau 200": ("transient", 50.0 * np.exp(-T / 200)),
    "ramp of 10 in 500, and back": (
        "transient",
        10.0 * np.clip(np.minimum(T / 500, (2000 - T) / 500), 0, 1),
    ),
    "step of 2.5": ("level_shift", np.full(AFTER, 2.5)),
    JUMP: ("level_shift", np.full(AFTER, 5.0)),
    "step of 15": ("level_shift", np.full(AFTER, 15.0)),
    "ramp of 5 in 2000": ("drift", 5.0 * np.minimum(1.0, T / 2000)),
    "ramp of 10 in 1000": ("drift", 10.0 * np.minimum(1.0, T / 1000)),
    "divergence, tau 200": ("divergence", 0.25 * np.expm1(np.minimum(T / 200, 6.0))),
    "divergence, tau 1000": ("divergence", 0.25 * np.expm1(np.minimum(T / 1000, 6.0))),
    NAN: ("nonfinite", np.where(T < 30, math.nan, 0.0)),
}
"""The kind it ought to be called in the end, and what is added from the onset on, in sigma."""


@dataclass(frozen=True)
class Found:
    """What became of one failure: points until its alert (None: missed), alerts, the first one's kind."""

    run: str
    failure: str
    delay: int | None
    alerts: int
    kind: str | None


def on_simulated(pool: Executor, quick: bool) -> Iterator[Measure]:
    """Failures in simulated runs that have settled, and, without a target, in such as still fall."""
    runs = range(5 if quick else 20)
    jobs: list[Job] = [(f"settled {i}", settled(i), [16_000 + 250 * i]) for i in runs]
    found = spread(pool, "failures, settled", inflicted, jobs)
    yield from judged(found, "settled simulated runs")
    if quick:
        return
    falling: list[Job] = []
    for index in range(300):
        family, losses = simulated(2, index)
        if family == "white" and len(losses) > 2 * AFTER:
            falling.append((f"falling {index}", losses, places(losses, 1)))
    found = spread(pool, "failures, falling", inflicted, falling)
    yield _kinds(found, "falling simulated runs", at_least=None)


def on_logs(pool: Executor, clean: Sequence[Log], quick: bool) -> Iterator[Measure]:
    """Failures in the Pythia log, and, in the full form, in the other long logs."""
    for log in clean:
        if log.name in PYTHIA:
            jobs: list[Job] = [
                (log.name, log.losses, [onset]) for onset in places(log.losses, 5 if quick else 20)
            ]
            yield from judged(spread(pool, "failures, Pythia", inflicted, jobs), "Pythia")
    if quick:
        return
    others = [log for log in clean if len(log) > AFTER and log.name not in PYTHIA]
    jobs = [(log.name, log.losses, places(log.losses, 5)) for log in others]
    yield from judged(spread(pool, "failures, long logs", inflicted, jobs), "other long logs")


def settled(seed: int) -> Floats:
    """Make a run that falls by less than a third of a sigma while a failure in it is watched."""
    rng = np.random.default_rng((8, seed))
    points = 30_000
    noise = rng.standard_normal(points) if seed % 2 else rng.standard_t(4, points) / math.sqrt(2.0)
    sigma = rng.uniform(0.01, 0.05)
    fall = 150.0 * sigma * np.arange(1.0, points + 1.0) ** -0.5
    return np.asarray(rng.uniform(0.5, 3.0) + fall + sigma * noise)


def places(losses: Floats, count: int) -> list[int]:
    """Choose so many onsets in the 6 to 90 % of a run, at least 4,000 points before its end."""
    rng = np.random.default_rng((5, len(losses)))
    last = min(0.9, 1.0 - 4000 / len(losses))
    return sorted((rng.uniform(0.06, last, count) * len(losses)).astype(int).tolist())


Job = tuple[str, Floats, list[int]]


def inflicted(job: Job) -> list[Found]:
    """Add each failure to a run at each of its onsets, and watch what becomes of it."""
    name, losses, onsets = job
    found = []
    for onset, state in at_onsets(losses, onsets):
        part = losses[onset : onset + AFTER]
        sigma = sigma_before(losses, onset)
        for failure, (_, added) in FAILURES.items():
            monitor = TrendMonitor.restore(state)
            before = monitor.episodes[-1].number if monitor.episodes else 0
            rows = monitor.update_many(
                np.arange(onset + 1, onset + 1 + len(part)), part + sigma * added[: len(part)]
            )
            new = [episode for episode in monitor.episodes if episode.number > before]
            delay = int(np.argmax(rows["alert"])) + 1 if rows["alert"].any() else None
            found.append(Found(name, failure, delay, len(new), new[0].kind if new else None))
    return found


def judged(runs: Sequence[Sequence[Found]], where: str) -> Iterator[Measure]:
    """Say how soon, how often and by what name the failures were told."""
    group = f"Failures added to {where}"
    every = [found for run in runs for found in run]
    number = f"{len(every)} failures"
    for name, failure, at_most in (
        ("jump of 5 sigma, median", JUMP, 5.0),
        ("NaN, longest", NAN, 1.0),
    ):
        delays = [
            math.inf if found.delay is None else float(found.delay)
            for found in every
            if found.failure == failure
        ]
        delay = max(delays) if failure == NAN else float(np.median(delays))
        yield Measure(f"{name} delay, {where}", delay, at_most=at_most, unit="points", group=group)

    def per_event(found: Sequence[Found]) -> float:
        return sum(one.alerts for one in found) / len(found)

    yield Measure(
        f"alerts for one failure, {where}",
        per_event(every),
        at_most=1.2,
        note=number,
        interval=bootstrap(runs, per_event, 200) if len(runs) > 1 else None,
        group=group,
    )
    yield _kinds(runs, where, at_least=0.9)


def _kinds(runs: Sequence[Sequence[Found]], where: str, at_least: float | None) -> Measure:
    shares = kinds_right([found for run in runs for found in run])
    return Measure(
        f"kind right, mean over kinds, {where}",
        float(np.mean(list(shares.values()))),
        at_least=at_least,
        note=", ".join(f"{kind} {share:.0%}" for kind, share in shares.items()),
        interval=bootstrap(runs, _mean_right, 200) if len(runs) > 1 else None,
        group=f"Failures added to {where}",
    )


def kinds_right(found: Sequence[Found]) -> dict[str, float]:
    """Return the share of failures of each kind that were called so."""
    right: dict[str, list[bool]] = {}
    for one in found:
        wanted = FAILURES[one.failure][0]
        right.setdefault(wanted, []).append(one.kind == wanted)
    return {kind: sum(hits) / len(hits) for kind, hits in right.items()}


def _mean_right(found: Sequence[Found]) -> float:
    return float(np.mean(list(kinds_right(found).values())))
