"""How soon the trend monitor sees what goes wrong, how often it cries wolf, and what it calls what it saw.

``python -m benchmarks.detection [--quick] [--json]``. Judged at the nominal far = 1e5, no threshold is
tuned. Real logs are found by WTWIN_WATCH_CORPUS; without it only the simulated part is measured. Ramps and
failures are added to clean logs at the onsets given here; a miss counts as the horizon, and an alert
that was on at the onset earns nothing.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.curves import (
    PYTHIA,
    Floats,
    Log,
    bound,
    corpus,
    read,
    shared,
    sigma_before,
    simulated,
)
from benchmarks.report import Measure, main
from wtwin_watch.monitor.trend import TrendMonitor

FAR = 1e5
PROCESSES = 2
LANGUAGE = ("llm-pretrain", "finetune")
SEED = 1
AFTER = 9000


@dataclass(frozen=True)
class Ramp:
    """How a ramp was seen: delay in points (None: missed), an oracle's delay, and the horizon."""

    delay: int | None
    oracle: float
    horizon: int

    @property
    def ratio(self) -> float:
        """Delay ÷ the oracle's."""
        return (self.horizon if self.delay is None else self.delay) / self.oracle


def watch(monitor: TrendMonitor, first: int, losses: Floats) -> int | None:
    """Return after how many points the monitor alerts, None if it doesn't or did before."""
    if monitor.open_episodes:
        return None
    for count, loss in enumerate(losses.tolist(), 1):
        if monitor.update(first + count, loss).alert:
            return count
    return None


def at_onsets(losses: Floats, onsets: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the monitor's state at each onset of a log with steps 1, 2, …"""
    monitor = TrendMonitor(far=FAR, history_limit=0)
    done = 0
    for onset in sorted(onsets):
        monitor.update_many(np.arange(done + 1, onset + 1), losses[done:onset])
        done = onset
        yield onset, monitor.snapshot()


def ramps(
    losses: Floats, onset: int, state: dict[str, Any], delta: float, duration: int, sigma: float
) -> Ramp:
    """Add one ramp and watch it."""
    horizon = 2 * duration + 2000
    part = losses[onset : onset + horizon]
    part = part + delta * np.minimum(1.0, np.arange(len(part)) / duration)
    delay = watch(TrendMonitor.restore(state), onset, part)
    return Ramp(delay, bound(FAR, sigma, delta, duration), horizon)


def pythia_ramps(quick: bool) -> list[Ramp]:
    """Ramps of .02 to .5 nats over 500 to 10,000 points in the long Pythia log."""
    losses = read(folder() / "corpus" / PYTHIA).losses
    shifts = (0,) if quick else (0, 700, 1500, 2300)
    onsets = [
        int(len(losses) * share) + shift
        for share in (0.1, 0.25, 0.5, 0.75, 0.9)
        for shift in shifts
    ]
    return [
        ramps(losses, onset, state, delta, duration, 0.02)
        for onset, state in at_onsets(losses, onsets)
        for delta in (0.02, 0.05, 0.1, 0.2, 0.5)
        for duration in (500, 2000, 10_000)
    ]


def short_ramps(log: Log) -> list[Ramp]:
    """Ramps of 1, 2.5 and 5 sigma over 100 and 500 points, from 15 to 80 % of a run."""
    losses = log.losses
    found = []
    for onset, state in at_onsets(
        losses, [int(share * len(log)) for share in (0.15, 0.4, 0.6, 0.8)]
    ):
        sigma = sigma_before(losses, onset)
        for sigmas in (1.0, 2.5, 5.0):
            for duration in (100, 500):
                found.append(ramps(losses, onset, state, sigmas * sigma, duration, sigma))
    return found


def early_ramps(log: Log) -> list[bool]:
    """Ramps of 3, 6 and 12 sigma over 60 points at points 100 to 400: seen within 500?"""
    losses = log.losses
    found = []
    for onset, state in at_onsets(losses, (100, 150, 230, 400)):
        for sigmas in (3.0, 6.0, 12.0):
            part = losses[onset : onset + 500]
            rise = sigmas * sigma_before(losses, onset) * np.minimum(1.0, np.arange(len(part)) / 60)
            found.append(watch(TrendMonitor.restore(state), onset, part + rise) is not None)
    return found


def episodes_in(log: Log) -> tuple[str, int, int]:
    """Return the kind of a clean log, how many episodes there were, and its points."""
    monitor = TrendMonitor(far=FAR, history_limit=0)
    monitor.update_many(log.steps, log.losses, log.lrs)
    return log.kind, monitor.episodes[-1].number if monitor.episodes else 0, len(log)


def simulated_episodes(index: int) -> tuple[str, int, int]:
    """The same for a simulated curve."""
    family, losses = simulated(SEED, index)
    monitor = TrendMonitor(far=FAR, history_limit=0)
    monitor.update_many(np.arange(1, len(losses) + 1), losses)
    return family, monitor.episodes[-1].number if monitor.episodes else 0, len(losses)


def nano_alert(job: tuple[Path, bool]) -> tuple[str, float | None]:
    """Return name and step of the first alert of a nano-GPT log, with or without its learning rate."""
    path, with_lr = job
    log = read(path, column="train_loss")
    monitor = TrendMonitor(far=FAR, history_limit=0)
    monitor.update_many(log.steps, log.losses, log.lrs if with_lr else None)
    return path.name.split(".")[0], monitor.first_alert_step()


T = np.arange(AFTER)
J = TypeVar("J")
R = TypeVar("R")
FAILURES: dict[str, tuple[str, Floats]] = {
    "spike .1, tau 20": ("spike", 0.1 * np.exp(-T / 20)),
    "spike .5, tau 20": ("spike", 0.5 * np.exp(-T / 20)),
    "spike 1, tau 200": ("transient", 1.0 * np.exp(-T / 200)),
    "ramp .2/500 and back": (
        "transient",
        0.2 * np.clip(np.minimum(T / 500, (2000 - T) / 500), 0, 1),
    ),
    "step .05": ("level_shift", np.full(AFTER, 0.05)),
    "step .1": ("level_shift", np.full(AFTER, 0.1)),
    "step .3": ("level_shift", np.full(AFTER, 0.3)),
    "ramp .1/2000": ("drift", 0.1 * np.minimum(1.0, T / 2000)),
    "ramp .2/1000": ("drift", 0.2 * np.minimum(1.0, T / 1000)),
    "divergence, tau 200": ("divergence", 0.005 * np.expm1(np.minimum(T / 200, 6.0))),
    "divergence, tau 1000": ("divergence", 0.005 * np.expm1(np.minimum(T / 1000, 6.0))),
    "NaN": ("nonfinite", np.where(T < 30, math.nan, 0.0)),
}


def failures(job: tuple[str, int]) -> list[tuple[str, int | None, int, str | None]]:
    """Inject one failure into the Pythia log: its name, delay, episodes, the last kind of the first."""
    name, count = job
    losses = read(folder() / "corpus" / PYTHIA).losses
    onsets = (np.random.default_rng(5).uniform(0.06, 0.9, count) * len(losses)).astype(int).tolist()
    found = []
    for onset, state in at_onsets(losses, onsets):
        monitor = TrendMonitor.restore(state)
        before = monitor.episodes[-1].number if monitor.episodes else 0
        part = losses[onset : onset + AFTER]
        rows = monitor.update_many(
            np.arange(onset + 1, onset + 1 + len(part)), part + FAILURES[name][1][: len(part)]
        )
        new = [episode for episode in monitor.episodes if episode.number > before]
        delay = int(np.argmax(rows["alert"])) + 1 if rows["alert"].any() else None
        found.append((name, delay, len(new), new[0].kind if new else None))
    return found


def folder() -> Path:
    """Return the folder of given logs, which is known to be there."""
    found = shared()
    if found is None:
        raise LookupError("set WTWIN_WATCH_CORPUS to the folder of given logs")
    return found


class Progress:
    """A bar on stderr where somebody looks, else nothing."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0
        self.shown = sys.stderr.isatty()

    def step(self) -> None:
        """One more is done."""
        self.done += 1
        if self.shown:
            filled = 30 * self.done // self.total
            end = "\n" if self.done == self.total else ""
            bar = "#" * filled + "." * (30 - filled)
            print(
                f"\r{self.what:<18} {bar} {self.done}/{self.total}",
                end=end,
                file=sys.stderr,
                flush=True,
            )


def spread(
    pool: ProcessPoolExecutor, what: str, work: Callable[[J], R], jobs: Sequence[J]
) -> list[R]:
    """Do the jobs in the pool, in order."""
    progress = Progress(what, len(jobs))
    results = []
    for result in pool.map(work, jobs):
        results.append(result)
        progress.step()
    return results


def per_100k(rows: Iterable[tuple[str, int, int]]) -> dict[str, float]:
    """Return episodes in 100,000 points by kind."""
    episodes, points = Counter[str](), Counter[str]()
    for kind, count, length in rows:
        episodes[kind] += count
        points[kind] += length
    return {kind: episodes[kind] / points[kind] * 1e5 for kind in points}


def measure(quick: bool) -> Iterator[Measure]:
    """Measure everything there is data for."""
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        if shared() is not None:
            yield from measure_real(pool, quick)
        curves = range(40 if quick else 300)
        rates = per_100k(spread(pool, "simulated curves", simulated_episodes, curves))
        worst = max(rates, key=rates.__getitem__)
        yield Measure(
            "false alarms, worst simulated family",
            rates[worst],
            at_most=2.0,
            unit="/100k",
            note=worst,
        )


def measure_real(pool: ProcessPoolExecutor, quick: bool) -> Iterator[Measure]:
    """Measure what the given logs are for."""
    clean = [log for log in corpus(folder()) if "pythia" not in log.name]
    rows = spread(pool, "clean logs", episodes_in, clean)
    language = per_100k(("language", count, n) for kind, count, n in rows if kind in LANGUAGE)[
        "language"
    ]
    yield Measure(
        "false alarms, language models and fine-tuning", language, at_most=1.0, unit="/100k"
    )
    rates = per_100k(rows)
    worst = max(rates, key=rates.__getitem__)
    yield Measure(
        "false alarms, worst kind of log", rates[worst], at_most=10.0, unit="/100k", note=worst
    )

    long = spread(pool, "Pythia ramps", pythia_ramps, [quick])[0]
    yield from seen("Pythia ramps", long, 0.95, 1.22)
    logs = [log for log in eight_a_family(clean) if len(log) >= 1000]
    logs = logs[::4] if quick else logs
    short = [ramp for found in spread(pool, "short ramps", short_ramps, logs) for ramp in found]
    yield from seen("short ramps", short, 0.64, 1.60)
    early = [hit for found in spread(pool, "early ramps", early_ramps, logs) for hit in found]
    yield Measure("early ramps seen within 500 points", sum(early) / len(early), at_least=0.55)
    yield from measure_nano(pool)
    yield from measure_failures(pool, 5 if quick else 20)


def eight_a_family(logs: Iterable[Log]) -> Iterator[Log]:
    """Take at most eight logs of one origin."""
    seen_of = Counter[str]()
    for log in logs:
        origin = log.name.split("_")[0]
        seen_of[origin] += 1
        if seen_of[origin] <= 8:
            yield log


def seen(name: str, found: list[Ramp], share: float, ratio: float) -> Iterator[Measure]:
    """Say how many ramps were seen, and how late."""
    hits = sum(ramp.delay is not None for ramp in found) / len(found)
    yield Measure(f"{name} detected", hits, at_least=share, note=f"{len(found)} ramps")
    late = float(np.median([ramp.ratio for ramp in found]))
    yield Measure(f"{name}, median delay ÷ oracle's", late, at_most=ratio)


def measure_nano(pool: ProcessPoolExecutor) -> Iterator[Measure]:
    """Measure the published nano-GPT failures, injected at step 2000."""
    paths = sorted((folder() / "nanogpt").glob("*.csv.gz"))
    for with_lr in (False, True):
        how = "with lr" if with_lr else "without lr"
        rows = spread(pool, "nano-GPT", nano_alert, [(path, with_lr) for path in paths])
        delays = {name: math.inf if step is None else step - 2000 for name, step in rows}
        linear = [delay for name, delay in delays.items() if "linear" in name]
        gradual = [delay for name, delay in delays.items() if name.startswith("prog")]
        abrupt = [
            d for n, d in delays.items() if n.startswith(("weightcorrupt", "dropout", "lrspike"))
        ]
        alarms = sum(d < math.inf for n, d in delays.items() if n.startswith("none"))
        yield Measure(
            f"nano-GPT linear {how}, mean delay", float(np.mean(linear)), at_most=11.0, unit="steps"
        )
        yield Measure(
            f"nano-GPT linear {how}, longest delay", max(linear), at_most=14.0, unit="steps"
        )
        hits = sum(0 < delay < math.inf for delay in gradual)
        yield Measure(f"nano-GPT progressive {how} detected", hits, at_least=7)
        yield Measure(
            f"nano-GPT abrupt {how}, longest delay", max(abrupt), at_most=5.0, unit="steps"
        )
        yield Measure(f"nano-GPT clean {how}, alerts", alarms, at_most=0)


def measure_failures(pool: ProcessPoolExecutor, count: int) -> Iterator[Measure]:
    """Measure delays, episodes and kinds of failures injected into the Pythia log."""
    rows = [
        row
        for found in spread(pool, "failures", failures, [(name, count) for name in FAILURES])
        for row in found
    ]
    jumps = [
        math.inf if delay is None else delay for name, delay, _, _ in rows if name == "step .1"
    ]
    yield Measure(
        "jump of 5 sigma, median delay", float(np.median(jumps)), at_most=5.0, unit="points"
    )
    nans = [math.inf if delay is None else delay for name, delay, _, _ in rows if name == "NaN"]
    yield Measure("NaN, longest delay", max(nans), at_most=1.0, unit="points")
    per_event = sum(episodes for _, _, episodes, _ in rows) / len(rows)
    yield Measure("episodes per failure", per_event, at_most=1.2)
    right: dict[str, list[bool]] = {}
    for name, _, _, kind in rows:
        wanted = FAILURES[name][0]
        right.setdefault(wanted, []).append(kind == wanted)
    by_kind = {kind: sum(hits) / len(hits) for kind, hits in right.items()}
    note = ", ".join(f"{kind} {share:.0%}" for kind, share in by_kind.items())
    yield Measure(
        "kind right, mean over kinds",
        float(np.mean(list(by_kind.values()))),
        at_least=0.9,
        note=note,
    )


if __name__ == "__main__":
    sys.exit(main("detection", measure))
