"""Simulated runs with evaluations and checkpoints, watched as the daemon does: who is said to stall?

Step times are between 0.05 s and 2 min, jittered. Evaluations and checkpoints come every 20 to 1,000 rows
and pause the run for up to 20 step times. Rows are written at once, every so many seconds, or by the
bufferful, and looked for every 2 to 60 s; the source is down now and then. A run is first seen somewhere in
the middle. The judgement is the daemon's own, `wtwin_watch.ingest.cadence`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Measure
from wtwin_watch.ingest.cadence import KNOWN_AFTER, LEARNT_AFTER, UNSEEN_STEPS, Cadence

STALL_AFTER_S = 300.0
MOST_STEP_TIMES = 20.0
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Simulated:
    """When the rows of a run can be read first, and how the run is looked at. Seconds."""

    visible: Floats
    interval_s: float
    first_look: float
    end: float
    outages: tuple[tuple[float, float], ...]
    logged: Floats | None
    """The times that its log has for its rows; None where it has none."""

    def readable(self, moment: float) -> bool:
        """Whether its source answers."""
        return not any(begin <= moment < end for begin, end in self.outages)


@dataclass(frozen=True, slots=True)
class Watched:
    """What came of it: times at which it was called stalled, and what is known at the end."""

    hours: float
    stalled_at: list[float]
    last_arrival: float
    longest_s: float
    """Between two arrivals, as far as the source answered, or in the times of the log."""
    arrivals: int
    """How often new rows were there."""
    step_s: float
    """The mean time of the steps that were watched."""
    known: int
    """Steps whose times were in the log before it was watched."""


def measure(quick: bool) -> Iterator[Measure]:
    """Yield all measures; ``quick``: a tenth of the hours."""
    yield false_stalls(100.0 if quick else 1_000.0)
    yield told_in_time(60 if quick else 600)
    yield from told_early(60 if quick else 600)


def false_stalls(hours: float) -> Measure:
    """How often runs that go on are called stalled, in so many run-hours."""
    chance = random.Random(1)
    seen, false = 0.0, 0
    while seen < hours:
        watched = watch(simulate(chance, hours=chance.choice((1.0, 5.0, 20.0))))
        seen += watched.hours
        false += len(watched.stalled_at)
    return Measure(
        f"false stalls in {hours:,.0f} simulated run-hours with pauses up to 20 step times",
        false,
        at_most=0,
    )


def told_in_time(runs: int) -> Measure:
    """Which share of real hangs is told within max(5 min, 4 x the longest pause seen) of the last row.

    A hang comes after `LEARNT_AFTER` rows, by when the run has shown its pauses, and the source answers.
    """
    chance = random.Random(2)
    shares = []
    while len(shares) < runs:
        run = simulate(chance, hours=20.0, least_rows=2 * LEARNT_AFTER)
        known = int(np.searchsorted(run.visible, run.first_look)) + LEARNT_AFTER
        if known < len(run.visible):
            watched, after_s = hang(run, chance.randrange(known, len(run.visible)))
            shares.append(after_s / target_s(watched))
    return Measure(
        "share of real hangs told within max(5 min, 4 x the longest pause seen)",
        sum(share <= 1.0 for share in shares) / runs,
        at_least=1.0,
        note=f"{runs} hangs; the latest took {max(shares):.0%} of the time allowed",
    )


def told_early(runs: int) -> Iterator[Measure]:
    """The same for hangs within the first `LEARNT_AFTER` rows watched, where half of the logs have times.

    A run that hangs and one that evaluates for the first time look alike until the evaluation ends. So for
    slow runs, told within the same time and never told in vain can't both be had; the second is.
    """
    chance = random.Random(3)
    shares, kept, later = [], 0, []
    while len(shares) < runs:
        run = simulate(chance, hours=20.0, least_rows=2 * LEARNT_AFTER)
        first = int(np.searchsorted(run.visible, run.first_look)) + 10
        if first + LEARNT_AFTER >= len(run.visible):
            continue
        watched, after_s = hang(run, chance.randrange(first, first + LEARNT_AFTER))
        if watched.arrivals < KNOWN_AFTER:
            continue  # it isn't judged, as `wtwin_watch.ingest.cadence` says
        shares.append(after_s / target_s(watched))
        later.append(after_s - target_s(watched))
        unseen_s = watched.longest_s + UNSEEN_STEPS * watched.step_s + 3.0 * run.interval_s
        kept += after_s <= max(target_s(watched), unseen_s * (watched.known < LEARNT_AFTER))
    yield Measure(
        "share of hangs in the first 1,000 rows watched that are told within the same time",
        sum(share <= 1.0 for share in shares) / runs,
        note=f"{runs} hangs; the others {np.median([s for s in later if s > 0.0]) / 60.0:.0f} min later in"
        f" the median, {max(later) / 60.0:.0f} min at most",
    )
    yield Measure(
        "share of them told within that, or 22 step times more than the longest pause seen",
        kept / runs,
        at_least=1.0,
    )


def hang(run: Simulated, rows: int) -> tuple[Watched, float]:
    """Watch ``run`` hang after so many rows; says after how many seconds that is told, infinite if never."""
    hung = run.visible[:rows]
    begun = float(hung[-1])
    longest_s = float(np.diff(hung).max(initial=STALL_AFTER_S))
    end = begun + max(5.0 * longest_s, 30.0 * float(np.diff(run.visible).max()))
    # While the source doesn't answer, nobody can know.
    outages = tuple(outage for outage in run.outages if outage[1] < begun)
    watched = watch(replace(run, visible=hung, end=end, outages=outages))
    told = [at - begun for at in watched.stalled_at if at > watched.last_arrival]
    return watched, told[0] if told else math.inf


def target_s(watched: Watched) -> float:
    """How long a hang may last before it is told, seconds."""
    return max(STALL_AFTER_S, 4.0 * watched.longest_s)


def simulate(chance: random.Random, hours: float, least_rows: int = 0) -> Simulated:
    """Draw a run that is watched for ``hours``, or for so long that it has ``least_rows`` then."""
    step_s = 0.05 * 2_400.0 ** chance.random()
    count = max(int(hours * 3600.0 / step_s), least_rows) + 1
    noise = np.random.default_rng(chance.getrandbits(64))
    jitter = chance.uniform(0.0, 0.3)
    gaps = step_s * np.exp(noise.normal(0.0, jitter, count) - 0.5 * jitter**2)
    pauses = np.zeros(count)
    for _ in ("evaluation", "checkpoint"):
        every = chance.randrange(20, 1_000)
        rows = np.arange(chance.randrange(every), count, every)
        longest = chance.uniform(0.0, MOST_STEP_TIMES) * step_s
        # An evaluation and a checkpoint at one row are one pause: 20 step times are the most there is.
        pauses[rows] = np.maximum(pauses[rows], longest * noise.uniform(0.5, 1.0, len(rows)))
    written = np.cumsum(gaps + pauses)
    end = float(written[-1])
    interval_s = chance.uniform(2.0, 60.0)
    begin = chance.uniform(0.0, 0.3) * end
    outages = tuple(
        (at, at + 60.0 * 60.0 ** chance.random())
        for at in (chance.uniform(begin, end) for _ in range(chance.randrange(3)))
    )
    visible = flushed(chance, written)
    logged = written[: len(visible)] if chance.random() < 0.5 else None
    return Simulated(visible, interval_s, begin, end, outages, logged)


def flushed(chance: random.Random, written: Floats) -> Floats:
    """When rows that were written so can be read: at once, every few seconds, or by the bufferful."""
    how = chance.randrange(3)
    if how == 0:
        return written
    if how == 1:
        every_s = chance.uniform(5.0, 120.0)
        return np.ceil(written / every_s) * every_s
    size = chance.randrange(10, 200)
    full = (np.arange(len(written)) // size + 1) * size - 1
    whole = full < len(written)
    return np.asarray(written[full[whole]])


def watch(run: Simulated) -> Watched:
    """Look at ``run`` as the daemon does, and judge."""
    cadence = Cadence()
    known = int(np.searchsorted(run.visible, run.first_look, "right"))
    history = run.logged[:known].tolist() if run.logged is not None else []
    cadence.recall(history)
    cadence.begin(run.first_look)
    before = known
    stalled_at: list[float] = []
    moment = last_arrival = run.first_look
    # The first look brings rows too: those that are there.
    longest_s, seen_whole = cadence.longest_pause_s, True
    while (moment := moment + run.interval_s) < run.end:
        if not run.readable(moment):
            cadence.blind()
            seen_whole = False
            continue
        now = int(np.searchsorted(run.visible, moment, "right"))
        if now > known:
            cadence.came(moment, run.interval_s, now - known)
            cadence.stalled = False
            if seen_whole:
                longest_s = max(longest_s, moment - last_arrival)
            known, last_arrival, seen_whole = now, moment, True
            continue
        cadence.looked(moment, run.interval_s)
        if not cadence.stalled and cadence.stalls(STALL_AFTER_S, run.interval_s):
            cadence.stalled = True
            stalled_at.append(moment)
    step_s = (last_arrival - run.first_look) / max(known - before, 1)
    hours = (run.end - run.first_look) / 3600.0
    arrivals = cadence.arrivals
    return Watched(hours, stalled_at, last_arrival, longest_s, arrivals, step_s, len(history))
