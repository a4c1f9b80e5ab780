"""Odd but healthy things, and failures that aren't rises: rates that have no target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor

import numpy as np

from benchmarks.curves import PYTHIA, Floats, Log
from benchmarks.detection.ramps import FAR, at_onsets
from benchmarks.intervals import rate_interval, share_interval
from benchmarks.progress import spread
from benchmarks.report import Measure
from wtwin_watch.monitor.episode import FROZEN
from wtwin_watch.monitor.trend import TrendMonitor

GROUP = "Other conditions"
PLACES = np.linspace(0.15, 0.85, 12)
NEXT = 5000
"""Points that are watched after something happened."""
RESTARTS = 4
CYCLE = 5000


def on_simulated(pool: Executor, quick: bool) -> Iterator[Measure]:
    """Restarts of the learning rate, logged and not."""
    runs = range(5 if quick else 40)
    for with_lr in (True, False):
        what = "restarts, simulated" + (" with lr" if with_lr else "")
        alerts = sum(spread(pool, what, restart_alerts, [(run, with_lr) for run in runs]))
        how = "is logged" if with_lr else "isn't logged"
        yield per_event(
            f"alerts per restart of a learning rate that {how}", alerts, len(runs) * RESTARTS
        )


def on_logs(pool: Executor, clean: Sequence[Log]) -> Iterator[Measure]:
    """Gaps, rollbacks, stalls and frozen values in the real logs."""
    pythia = next(log for log in clean if log.name in PYTHIA)
    for what, lengths in (("gap", (50, 1000, 10_000)), ("rollback", (200, 1000, 5000))):
        jobs = [(pythia, what, length) for length in lengths]
        for (_, _, length), alerts in zip(
            jobs, spread(pool, f"{what}s", disturbed_alerts, jobs), strict=True
        ):
            name = f"{what}s of {length:,} steps that bring an alert, Pythia"
            yield share(name, alerts, len(PLACES))
    long = [log for log in clean if len(log) >= 1000]
    looks = np.array(spread(pool, "stagnation", stagnating_looks, long)).sum(axis=0).tolist()
    yield share("clean logs called stagnating, share of looks", *looks)
    stalls = spread(pool, "stalls", stall_seen, [(pythia, at) for at in STALLS])
    for at, after in zip(STALLS, stalls, strict=True):
        yield Measure(
            f"stall at {at:.0%} of Pythia: called stagnating after",
            after,
            unit="of the run",
            group=GROUP,
        )
    frozen = spread(pool, "frozen values", frozen_delay, long)
    delays = [delay for delay, _ in frozen if delay is not None]
    yield share("frozen loss seen within 64 points", len(delays), len(frozen))
    yield Measure("frozen loss, median delay", float(np.median(delays)), unit="points", group=GROUP)
    yield per_event(
        "frozen alerts in these logs as they are, per log", sum(n for _, n in frozen), len(frozen)
    )


def share(name: str, count: int, of: int) -> Measure:
    """Return how many of those tried did it."""
    interval = share_interval(count, of)
    return Measure(name, count / of, note=f"{count} of {of:,}", interval=interval, group=GROUP)


def per_event(name: str, count: int, of: int) -> Measure:
    """Return how often something happened for each of these; it may be several times."""
    interval = rate_interval(count, of, per=1.0)
    return Measure(name, count / of, note=f"{count} in {of:,}", interval=interval, group=GROUP)


def restarted(seed: int) -> tuple[Floats, Floats]:
    """Make losses and learning rates of a run whose cosine begins anew four times.

    The loss falls as a power law of the summed rate; beside it stands a part that follows the rate,
    within some 200 steps.
    """
    rng = np.random.default_rng((6, seed))
    points = CYCLE * (RESTARTS + 1)
    rates = 0.05 + 0.95 * 0.5 * (1.0 + np.cos(np.pi * (np.arange(points) % CYCLE) / CYCLE))
    progress = np.cumsum(rates)
    weights = np.exp(-np.arange(1000) / 200.0)
    following = np.convolve(rates, weights / weights.sum())[:points]
    size = rng.uniform(0.05, 0.3)
    clean = 1.5 + 3.0 * progress ** -rng.uniform(0.3, 0.5) + size * following
    return clean + rng.normal(0.0, rng.uniform(0.01, 0.05), points), 3e-4 * rates


def restart_alerts(job: tuple[int, bool]) -> int:
    """Count the alerts in a run with restarts."""
    seed, with_lr = job
    losses, rates = restarted(seed)
    monitor = TrendMonitor(far=FAR, history_limit=0)
    monitor.update_many(np.arange(1, len(losses) + 1), losses, rates if with_lr else None)
    return monitor.episodes[-1].number if monitor.episodes else 0


def disturbed_alerts(job: tuple[Log, str, int]) -> int:
    """Count how often the points after a gap or a rollback bring an alert that was not there without."""
    log, what, length = job
    onsets = [int(place * len(log)) for place in PLACES]
    alerts = 0
    for onset, state in at_onsets(log.losses, onsets):
        goes_on = onset + length if what == "gap" else onset - length
        alerts += _new_alerts(state, log.losses, goes_on) > 0
    return alerts


def _new_alerts(state: dict[str, object], losses: Floats, goes_on: int) -> int:
    monitor = TrendMonitor.restore(state)
    before = monitor.episodes[-1].number if monitor.episodes else 0
    part = losses[goes_on : goes_on + NEXT]
    monitor.update_many(np.arange(goes_on + 1, goes_on + 1 + len(part)), part)
    return (monitor.episodes[-1].number if monitor.episodes else 0) - before


def stagnating_looks(log: Log) -> tuple[int, int]:
    """Return how often a clean log was called stagnating, of looks at each 5 % from 30 % on."""
    onsets = [int(part * len(log)) for part in np.arange(0.3, 1.001, 0.05)]
    looks = [TrendMonitor.restore(s).stagnating for _, s in at_onsets(log.losses, onsets)]
    return sum(looks), len(looks)


STALLS = (0.2, 0.4, 0.6, 0.75)


def stall_seen(job: tuple[Log, float]) -> float:
    """Return after what share of the run a loss that stopped falling is called stagnating; or infinity.

    The fall is taken out from the onset on, as a polynomial in log time has it; the noise stays.
    """
    log, share_of = job
    n, onset = len(log), int(share_of * len(log))
    t = np.log(np.arange(1.0, n + 1.0))
    fall = np.polyval(np.polyfit(t[1000:], log.losses[1000:], 5), t)
    losses = log.losses.copy()
    losses[onset:] += fall[onset] - fall[onset:]
    looks = list(range(onset, n, n // 100))
    for look, state in at_onsets(losses, looks):
        if TrendMonitor.restore(state).stagnating:
            return (look - onset) / n
    return float("inf")


def frozen_delay(log: Log) -> tuple[int | None, int]:
    """Freeze a log for 64 points in its middle: points until it is said, and how often it is said without."""
    onset = len(log) // 2
    ((_, state),) = at_onsets(log.losses, [onset])
    monitor = TrendMonitor.restore(state)
    delay = None
    for count in range(1, 65):
        monitor.update(onset + count, float(log.losses[onset - 1]))
        if any(episode.kind == FROZEN for episode in monitor.open_episodes):
            delay = count
            break
    whole = TrendMonitor(far=FAR, history_limit=0)
    whole.update_many(np.arange(1, len(log) + 1), log.losses)
    return delay, sum(episode.kind == FROZEN for episode in whole.episodes)
