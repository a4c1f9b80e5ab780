"""Measure what a team is told in a fortnight: ``python -m benchmarks.fortnight [--quick] [--json]``.

Beside it stands what an automation of W&B would send that looks for a z-score of the loss: window 30,
threshold 3, one message a breach.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.curves import Floats
from benchmarks.fortnight.cluster import FORTNIGHT_S, Fortnight, Planned, plan
from benchmarks.fortnight.watch import ONE_A_WEEK, Happened, Message, tell, watch
from benchmarks.progress import Progress, workers
from benchmarks.report import Measure, main
from wtwin_watch.model import Event, Family

SEED = 20_261
WINDOW = 30
THRESHOLD = 3.0


def measure(quick: bool) -> Iterator[Measure]:
    """Yield what was sent, what of it was false, and how soon the incidents were told."""
    runs, span_s = (80, FORTNIGHT_S / 7.0) if quick else (300, FORTNIGHT_S)
    fortnight = plan(SEED, runs, span_s)
    happened = _watched(fortnight)
    weeks = span_s / (FORTNIGHT_S / 2.0)
    points = sum(len(run.log.losses) for run in fortnight.runs)
    curves = "real curves" if fortnight.real else "simulated curves"
    yield Measure(
        "runs", float(runs), note=f"{points} losses in {span_s / 86_400.0:g} days, {curves}"
    )
    messages = tell(fortnight, happened, ONE_A_WEEK)
    threads = [m for m in messages if m.told.event is Event.FIRING]
    yield Measure("messages, updates and ends included", float(len(messages)))
    yield Measure("alerts and groups that were told", float(len(threads)))
    false = [m for m in threads if not _is_true(fortnight, m)]
    note = ", ".join(f"{m.told.run.name} ({m.told.alert.kind})" for m in false)
    yield Measure("of these false", float(len(false)), at_most=max(1.0, weeks), note=note)
    yield from _incidents(fortnight, threads)
    hang = [m for m in threads if m.told.alert.family is Family.PROGRESS and _in_hang(fortnight, m)]
    yield Measure(
        "messages about the night the storage hung",
        float(len(hang)),
        at_most=3.0,
        note=f"{_live(fortnight)} runs stalled, those of a sweep by themselves",
    )
    unspent = [m for m in tell(fortnight, happened, None) if m.told.event is Event.FIRING]
    yield Measure("alerts told without a budget", float(len(unspent)))
    breaches = sum(_breaches(run.log.losses) for run in fortnight.runs)
    yield Measure(
        "messages of a rolling z-score",
        float(breaches),
        note=f"{breaches / max(1, len(threads)):.0f} times as many",
    )


def _watched(fortnight: Fortnight) -> list[list[Happened]]:
    bar = Progress("runs watched", len(fortnight.runs))
    found = []
    with workers() as pool:
        for happened in pool.map(watch, fortnight.runs, chunksize=4):
            found.append(happened)
            bar.step()
    return found


def _is_true(fortnight: Fortnight, message: Message) -> bool:
    """Whether something was wrong with one of the runs that a message is about, and had begun."""
    if message.told.alert.family is Family.PROGRESS and _in_hang(fortnight, message):
        return True
    named = {message.told.run.name, *(other.run.name for other in message.told.others)}
    return any(
        run.name in named and run.incident is not None and message.at >= _onset(run)
        for run in fortnight.runs
    )


def _onset(run: Planned) -> float:
    return float("inf") if run.incident is None else float(run.times[run.incident])


def _in_hang(fortnight: Fortnight, message: Message) -> bool:
    begin, end = fortnight.hang
    return begin <= message.at <= end


def _live(fortnight: Fortnight) -> int:
    begin, end = fortnight.hang
    return sum(
        bool(len(run.times)) and run.times[0] < begin and run.times[-1] > end
        for run in fortnight.runs
    )


def _incidents(fortnight: Fortnight, threads: list[Message]) -> Iterator[Measure]:
    real = [run for run in fortnight.runs if run.incident is not None and not run.on_purpose]
    delays = []
    for run in real:
        onset = _onset(run)
        told = [m.at for m in threads if m.told.run.name == run.name and m.at >= onset]
        if told:
            delays.append((min(told) - onset) / float(np.median(np.diff(run.times))))
    yield Measure(
        "incidents told", float(len(delays)), at_least=float(len(real)), note=f"of {len(real)}"
    )
    middle = float(np.median(delays)) if delays else float("inf")
    yield Measure("median delay of the incidents", middle, unit="rows")
    sweeps = [m for m in threads if m.told.run.group]
    yield Measure("alerts and groups about sweeps", float(len(sweeps)))


def _breaches(losses: Floats) -> int:
    """How often a loss begins to lie more than three deviations above the mean of the thirty before it."""
    if len(losses) <= WINDOW:
        return 0
    before = sliding_window_view(losses, WINDOW)[:-1]
    with np.errstate(all="ignore"):
        z = (losses[WINDOW:] - before.mean(axis=1)) / before.std(axis=1)
    above = z > THRESHOLD
    return int(above[0]) + int((above[1:] & ~above[:-1]).sum())


if __name__ == "__main__":
    sys.exit(main("fortnight", measure))
