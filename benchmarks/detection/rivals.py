"""Other ways to see that a loss rises, each in the best form we know, with one threshold left open.

A rival turns losses into evidence, known at its point, and evidence into alarms at a threshold. All of
them look for rises alone, use nothing that comes later, and stand still for nothing: what is alarm is
decided by the threshold. Losses must be finite; points count 0, 1, …
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from benchmarks.curves import Floats
from wtwin_watch.monitor import WTwinMonitor

Bools = NDArray[np.bool_]
CLIP = 5.0
"""A point counts at most so many sigma in a sum, lest one outlier be an alarm."""
LEAST = 50
"""Points a long window must hold before it is judged by."""


@dataclass(frozen=True)
class Rival:
    """One method.

    ``evidence`` of losses and a point: the evidence of this point and all after it. ``alarms`` of
    evidence and a threshold: at which of these points it is in alarm. ``thresholds``: those to choose
    from, each stricter than the one before.
    """

    name: str
    evidence: Callable[[Floats, int], Floats]
    alarms: Callable[[Floats, float], Bools]
    thresholds: Floats


# -- from evidence to alarms -----------------------------------------------------------------------


def above(evidence: Floats, threshold: float) -> Bools:
    """In alarm wherever the evidence exceeds the threshold."""
    return evidence > threshold


def cusum(increments: Floats, threshold: float) -> Bools:
    """Page (1954): S = max(0, S + increment), alarm when S > threshold, and begin anew at 0."""
    alarms = np.zeros(len(increments), dtype=np.bool_)
    total = 0.0
    for i, increment in enumerate(increments.tolist()):
        total += increment
        if total < 0.0:
            total = 0.0
        elif total > threshold:
            alarms[i] = True
            total = 0.0
    return alarms


def page_hinkley(values: Floats, threshold: float, alpha: float) -> Bools:
    """River's Page-Hinkley test, upward; it begins anew after an alarm."""
    from river.drift import PageHinkley

    test = PageHinkley(mode="up", delta=0.1, threshold=threshold, alpha=alpha)
    alarms = np.zeros(len(values), dtype=np.bool_)
    for i, value in enumerate(values.tolist()):
        test.update(value)
        alarms[i] = test.drift_detected
    return alarms


def adwin(values: Floats, threshold: float) -> Bools:
    """River's ADWIN at every point, delta = exp(-threshold); a cut is an alarm if the mean went up.

    River empties the window after a cut. As in the paper (Bifet and Gavalda 2007) its newer part is
    kept here: it is fed to the emptied one.
    """
    from river.drift import ADWIN

    def begun() -> ADWIN:
        return ADWIN(delta=math.exp(-threshold), clock=1)

    window = begun()
    alarms = np.zeros(len(values), dtype=np.bool_)
    for i, value in enumerate(values.tolist()):
        before = window.estimation
        window.update(value)
        if window.drift_detected:
            alarms[i] = window.estimation > before
            width = int(window.width)
            window = begun()
            for kept in values[i + 1 - width : i + 1].tolist():
                window.update(kept)
    return alarms


# -- evidence --------------------------------------------------------------------------------------


def published(losses: Floats, start: int) -> Floats:
    """W-Twin's D, the smallest of the latest five: above alpha, it is five times in a row so.

    The published settings: forecast fitted once, sigma from the 50 losses before.
    """
    window, in_a_row = 50, 5
    monitor = WTwinMonitor(history_limit=0)
    begun = 0
    for begun, loss in enumerate(losses.tolist(), 1):
        monitor.update(begun, loss)
        if monitor.baseline.is_fitted:
            break
    first = max(window, start - in_a_row + 1)
    d = np.full(max(0, len(losses) - first), -np.inf)
    if monitor.baseline.is_fitted and len(d):
        spans = sliding_window_view(losses[first - window : -1], window)
        middle = np.median(spans, axis=1)
        sigma = 1.4826 * np.median(np.abs(spans - middle[:, None]), axis=1)
        sigma[sigma <= 1e-10] = 1e-8
        expected = monitor.baseline.predict(np.arange(first + 1.0, len(losses) + 1.0))
        d = np.clip((losses[first:] - expected) / sigma, -1e4, 1e4)
        d[: max(0, begun - 1 - first)] = -np.inf
    return _from(start, _least_of(d, in_a_row), first)


def rolling_z(losses: Floats, start: int, window: int, in_a_row: int, least: int) -> Floats:
    """How many sd a loss lies above the mean of the ``window`` before it; the least of the latest few.

    A window that isn't full is used from ``least`` points on.
    """
    first = max(least, start - in_a_row + 1)
    at = np.arange(first, len(losses))
    mean, sd = _moments(losses, np.maximum(0, at - window), at)
    z = (losses[first:] - mean) / sd
    return _from(start, _least_of(z, in_a_row), first)


def detrended(losses: Floats, start: int, memory: int, slack: float) -> Floats:
    """CUSUM increments of what a loss lies above an EWMA of those before, in units of its usual size."""
    first = max(LEAST, start)
    residuals, sigma = _from_ewma(losses[max(0, first - 10 * memory) :], memory)
    z = np.clip(residuals / sigma, -CLIP, CLIP) - slack
    return _from(start, z[len(z) - (len(losses) - first) :], first)


def against_past(losses: Floats, start: int, slack: float) -> Floats:
    """CUSUM increments against mean and sd of the observations from 600 to 100 back."""
    first = max(100 + LEAST, start)
    at = np.arange(first, len(losses))
    mean, sd = _moments(losses, np.maximum(0, at - 600), at - 100)
    return _from(start, np.clip((losses[first:] - mean) / sd, -CLIP, CLIP) - slack, first)


EXPONENTS = (0.05, 0.1, 0.2, 0.3, 0.45, 0.65, 0.9, 1.3)


def power_law(losses: Floats, start: int, lag: float, slack: float) -> Floats:
    """CUSUM increments of what a loss lies above a power law that is fitted anew at every point.

    c + a t^-b, a ≥ 0, by least squares over a grid of b (variable projection), on the points of the
    last three quarters of the run but the latest: its share ``lag`` of the run, 50 at least.
    """
    first = max(200, start)
    n = len(losses)
    at = np.arange(first, n)
    end = at - np.maximum(50, (lag * at).astype(np.int64))
    begin = end // 4
    count = (end - begin).astype(np.float64)
    level = losses[:first].mean()
    y = losses - level
    t = np.arange(1.0, n + 1.0)

    def over(values: Floats) -> Floats:
        sums = np.concatenate(([0.0], np.cumsum(values)))
        return np.asarray(sums[end] - sums[begin])

    y1, y2 = over(y), over(y * y)
    best = np.full(len(at), np.inf)
    forecast = np.zeros(len(at))
    for b in EXPONENTS:
        x = t**-b
        x1 = over(x)
        sxx = np.maximum(over(x * x) - x1 * x1 / count, 1e-300)
        a = np.maximum(0.0, (over(x * y) - x1 * y1 / count) / sxx)
        rest = y2 - y1 * y1 / count - a * a * sxx
        better = rest < best
        best[better] = rest[better]
        line = (y1 - a * x1) / count + a * x[first:]
        forecast[better] = line[better]
    sigma = np.sqrt(np.maximum(best / count, 1e-24))
    return _from(start, np.clip((y[first:] - forecast) / sigma, -CLIP, CLIP) - slack, first)


def in_sigma(losses: Floats, start: int, unit: float) -> Floats:
    """The losses themselves, ``unit`` of them a sigma of the first 200 points' noise."""
    differences = np.diff(losses[:200])
    middle = np.median(differences)
    sigma = 1.4826 * float(np.median(np.abs(differences - middle))) / math.sqrt(2.0)
    return np.asarray(losses[start:] / (max(sigma, 1e-12) / unit))


def residuals_in_sigma(losses: Floats, start: int, memory: int) -> Floats:
    """What a loss lies above an EWMA of those before, in sigma."""
    return np.maximum(detrended(losses, start, memory, 0.0), -CLIP)


def _from_ewma(losses: Floats, memory: int) -> tuple[Floats, Floats]:
    """Residuals from the EWMA before each point, and their sigma as known before each."""
    gains = 1.0 / np.minimum(np.arange(1.0, len(losses) + 1.0), memory)
    mean = _ewma(losses, gains)
    residuals = np.diff(losses, prepend=losses[0])
    residuals[1:] = losses[1:] - mean[:-1]
    size = _ewma(np.abs(residuals[1:]), gains[: len(losses) - 1])
    sigma = np.concatenate((np.full(2, np.inf), 1.2533 * size[:-1]))[: len(losses)]
    return residuals, np.maximum(sigma, 1e-12)


def _ewma(values: Floats, gains: Floats) -> Floats:
    pairs = zip(values.tolist(), gains.tolist(), strict=True)
    steps = accumulate(pairs, lambda s, pair: s + pair[1] * (pair[0] - s), initial=0.0)
    return np.fromiter(steps, np.float64, len(values) + 1)[1:]


def _moments(
    values: Floats, begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Mean and sd of the values from each ``begin`` to before its ``end``."""
    shift = values.mean()
    y = values - shift
    sums = np.concatenate(([0.0], np.cumsum(y)))
    squares = np.concatenate(([0.0], np.cumsum(y * y)))
    count = end - begin
    mean = (sums[end] - sums[begin]) / count
    variance = (squares[end] - squares[begin]) / count - mean * mean
    return mean + shift, np.sqrt(np.maximum(variance * count / (count - 1.0), 1e-24))


def _least_of(values: Floats, count: int) -> Floats:
    """The least of each value and the ``count`` - 1 before; there were none before the first."""
    padded = np.concatenate((np.full(count - 1, -np.inf), values))
    return np.asarray(sliding_window_view(padded, count).min(axis=1)) if len(values) else values


def _from(start: int, evidence: Floats, first: int) -> Floats:
    """Evidence that begins at point ``first``, cut or filled with none, so that it begins at ``start``."""
    if first >= start:
        return np.concatenate((np.full(first - start, -np.inf), evidence))
    return evidence[start - first :]


# -- all of them -----------------------------------------------------------------------------------

SIGMAS = np.geomspace(0.5, 200.0, 300)
SUMS = np.geomspace(1.0, 1e5, 300)
DELTAS = np.geomspace(1.0, 1000.0, 100)


def _rolling(window: int, in_a_row: int, least: int) -> Callable[[Floats, int], Floats]:
    return partial(rolling_z, window=window, in_a_row=in_a_row, least=least)


_HINKLEY = partial(page_hinkley, alpha=0.9999)
RIVALS = (
    Rival("W-Twin as published", published, above, np.sinh(np.linspace(-9.9, 9.9, 400))),
    Rival("z of 30 (W&B automation)", _rolling(30, 1, 30), above, SIGMAS),
    Rival("z of 100, 5 in a row", _rolling(100, 5, LEAST), above, SIGMAS),
    Rival("z of 1000, 5 in a row", _rolling(1000, 5, LEAST), above, SIGMAS),
    Rival("EWMA 500 + CUSUM .5", partial(detrended, memory=500, slack=0.5), cusum, SUMS),
    Rival("EWMA 2000 + CUSUM .25", partial(detrended, memory=2000, slack=0.25), cusum, SUMS),
    Rival("CUSUM against 600 to 100 back", partial(against_past, slack=0.5), cusum, SUMS),
    Rival("power-law refit + CUSUM .25", partial(power_law, lag=0.1, slack=0.25), cusum, SUMS),
    Rival("power-law refit + CUSUM .5", partial(power_law, lag=0.1, slack=0.5), cusum, SUMS),
    Rival("Page-Hinkley", partial(in_sigma, unit=1.0), _HINKLEY, np.geomspace(3.0, 1e6, 150)),
    Rival(
        "EWMA 500 + Page-Hinkley",
        partial(residuals_in_sigma, memory=500),
        _HINKLEY,
        np.geomspace(3.0, 1e4, 150),
    ),
    Rival("ADWIN", partial(in_sigma, unit=1 / 6), adwin, DELTAS),
)
