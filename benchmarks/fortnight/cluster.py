"""Three hundred runs of a fortnight: when they begin, how fast they log, what happens to them.

Losses are real curves where they are given, else simulated ones. Every run logs in its own rhythm and
pauses for evaluations; one in seven is preempted and begun again from a checkpoint. There are three
sweeps, in which some runs diverge on purpose; two incidents, a loss that jumps and one that becomes NaN;
and a night in which the storage hangs and with it every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.curves import Floats, Log, corpus, shared, simulated

Hang = tuple[float, float]
"""From when to when, in seconds from the beginning."""
DAY_S = 86_400.0
FORTNIGHT_S = 14 * DAY_S
SWEEPS = 3
A_SWEEP = 15
LEAST_POINTS = 200
JUMP = "algoperf_v05_caspr_adaptive_study_3_librispeech_conform"
BROKE = "algoperf_v05_nadamp_study_3_librispeech_deepspeech"
"""Real logs with an incident: a sustained jump of the loss, and one that becomes NaN."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A run as it will go. ``times`` of its rows in seconds from the beginning of the fortnight."""

    name: str
    times: Floats
    log: Log
    """Its steps, losses and learning rates, a row each."""
    sweep: str = ""
    rewinds: tuple[tuple[int, int], ...] = ()
    """(row, row that its step goes back to): it was preempted before that row."""
    incident: int | None = None
    """The row with which something goes wrong with it."""
    on_purpose: bool = False
    """It is one of a sweep that diverges because the sweep looks for where it does."""


@dataclass(frozen=True, slots=True)
class Fortnight:
    """All that happens, and when the storage hangs."""

    runs: tuple[Planned, ...]
    hang: Hang
    span_s: float
    real: bool


def plan(seed: int, runs: int, span_s: float) -> Fortnight:
    """Draw a fortnight, or a shorter ``span_s``, with so many ``runs``."""
    rng = np.random.default_rng(seed)
    folder = shared()
    given = [] if folder is None else list(corpus(folder, ("clean", "spike", "nan", "diverged")))
    clean = [log for log in given if log.label == "clean" and len(log) >= LEAST_POINTS]
    real = bool(clean)
    if not real:
        clean = [_log(simulated(seed, index)[1][:4_000]) for index in range(40)]
    hang_at = float(rng.uniform(0.4, 0.6)) * span_s
    hang = (hang_at, hang_at + 2 * 3_600.0)
    planned = [
        _ordinary(rng, f"run-{n:03}", clean, span_s, hang)
        for n in range(runs - SWEEPS * A_SWEEP - 2)
    ]
    for sweep in range(SWEEPS):
        planned += _sweep(rng, f"sweep-{sweep}", clean, span_s, hang)
    planned += _incidents(rng, given, clean, span_s, hang)
    return Fortnight(tuple(planned), hang, span_s, real)


def _ordinary(
    rng: np.random.Generator,
    name: str,
    clean: Sequence[Log],
    span_s: float,
    hang: Hang,
) -> Planned:
    log = clean[int(rng.integers(len(clean)))]
    rewinds: tuple[tuple[int, int], ...] = ()
    if rng.random() < 1 / 7:
        at = int(rng.uniform(0.3, 0.9) * len(log))
        back = int(at * rng.uniform(0.8, 0.95))
        log = _rows(log, np.concatenate([np.arange(at), np.arange(back, len(log))]))
        rewinds = ((at, back),)
    times = _times(rng, len(log), span_s, hang, [at for at, _ in rewinds])
    kept = np.flatnonzero(times < span_s)
    return Planned(name, times[kept], _rows(log, kept), rewinds=rewinds)


def _sweep(
    rng: np.random.Generator,
    name: str,
    clean: Sequence[Log],
    span_s: float,
    hang: Hang,
) -> list[Planned]:
    log = clean[int(rng.integers(len(clean)))]
    losses = log.losses
    begun = float(rng.uniform(0.05, 0.7)) * span_s
    found = []
    for n in range(A_SWEEP):
        own = losses + 0.2 * float(np.std(np.diff(losses))) * rng.standard_normal(len(losses))
        incident = None
        if n % 5 == 4:  # the highest learning rates
            incident = int(rng.uniform(0.3, 0.7) * len(own))
            growth = np.maximum(0.0, np.arange(len(own)) - incident) / (0.1 * len(own))
            own = own + np.abs(own[0] - own[-1]) * growth**2
        times = _times(rng, len(own), span_s, hang, (), begun + n * 600.0)
        kept = np.flatnonzero(times < span_s)
        row = _rows(replace(log, losses=own), kept)
        on_purpose = incident is not None
        found.append(Planned(f"{name}/{n:02}", times[kept], row, name, (), incident, on_purpose))
    return found


def _incidents(
    rng: np.random.Generator,
    given: Sequence[Log],
    clean: Sequence[Log],
    span_s: float,
    hang: Hang,
) -> list[Planned]:
    """Return the two runs that go wrong: real logs of that where they are given."""
    jump = next((log for log in given if log.name.startswith(JUMP)), None)
    if jump is None:
        at, losses = int(0.6 * len(clean[0])), clean[0].losses.copy()
        losses[at:] += 8.0 * float(np.std(np.diff(losses[at - 200 : at])))
        jump = replace(clean[0], losses=losses)
    else:
        at = _largest_rise(jump.losses)
    broke = next((log for log in given if log.name.startswith(BROKE)), None)
    if broke is None:
        gone, losses = int(0.7 * len(clean[1])), clean[1].losses.copy()
        losses[gone:] = np.nan
        broke = replace(clean[1], losses=losses)
    else:
        # The loss has a hump before it is gone: that is where its incident begins.
        finite = int(np.flatnonzero(~np.isfinite(broke.losses))[0])
        gone = _largest_rise(broke.losses[30:finite]) + 30
    found = []
    for name, log, incident in (("jumps", jump, at), ("breaks", broke, gone)):
        times = _times(rng, len(log), span_s, hang, (), 0.2 * span_s, 15.0)
        found.append(Planned(name, times, log, incident=incident))
    return found


def _log(losses: Floats) -> Log:
    return Log("simulated", "simulated", "clean", np.arange(len(losses)) + 1.0, losses, None)


def _rows(log: Log, rows: NDArray[np.intp]) -> Log:
    """Return these rows of a log."""
    lrs = None if log.lrs is None else log.lrs[rows]
    return replace(log, steps=log.steps[rows], losses=log.losses[rows], lrs=lrs)


def _largest_rise(losses: Floats) -> int:
    """Where the mean of ten rows exceeds that of the ten before by most."""
    sums = np.convolve(losses, np.full(10, 0.1), "valid")
    return int(np.argmax(sums[10:] - sums[:-10])) + 10


def _times(
    rng: np.random.Generator,
    rows: int,
    span_s: float,
    hang: Hang,
    stops: Sequence[int],
    begun: float | None = None,
    cadence_s: float | None = None,
) -> Floats:
    """When each row is logged: a rhythm with jitter, evaluations, stops, and the night of the hang."""
    step_s = cadence_s or float(np.clip(rng.lognormal(np.log(20.0), 1.0), 2.0, 300.0))
    step_s = min(step_s, 0.6 * span_s / rows)
    gaps = step_s * rng.lognormal(0.0, 0.1, rows)
    gaps[int(rng.integers(20, 200)) :: int(rng.integers(50, 500))] += step_s * rng.uniform(2, 20)
    for stop in stops:
        gaps[stop] += float(rng.uniform(600.0, 3_600.0))
    start = float(rng.uniform(0.0, 0.8)) * span_s if begun is None else begun
    times = start + np.cumsum(gaps)
    times[times > hang[0]] += hang[1] - hang[0]
    return np.asarray(times, dtype=np.float64)
