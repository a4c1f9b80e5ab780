"""How sure a measured number is: exact Poisson intervals of counts, bootstrap intervals over runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
Interval = tuple[float, float]
DRAWS = 1000
SEED = 20
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Its 97.5 % points for 2, 3, … values; of more than ten the last is taken, which is wide enough."""


def poisson_interval(count: int, level: float = 0.95) -> Interval:
    """Return the exact interval (Garwood 1936) of the mean of a Poisson count.

    Each end is the mean at which a count so extreme, or more so, has the chance (1 - level) / 2.
    """
    tail = (1.0 - level) / 2.0
    low = 0.0 if count == 0 else _mean_where(lambda mean: _at_most(count - 1, mean) < 1.0 - tail)
    return low, _mean_where(lambda mean: _at_most(count, mean) < tail)


def rate_interval(count: int, points: int, per: float = 1e5) -> Interval:
    """Return the exact interval of a rate in ``per`` points; of no points everything is possible."""
    if points == 0:
        return 0.0, math.inf
    low, high = poisson_interval(count)
    return low / points * per, high / points * per


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the 95 % interval of a mean by Student's t; one value leaves everything possible."""
    if len(values) < 2:
        return -math.inf, math.inf
    t = STUDENT[min(len(values), len(STUDENT) + 1) - 2]
    half = t * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    middle = float(np.mean(values))
    return middle - half, middle + half


def share_interval(count: int, of: int) -> Interval:
    """Return the 95 % interval of a share by Wilson (1927), which stays within 0 and 1."""
    z = 1.959964
    share, spare = count / of, z * z / of
    middle = (share + spare / 2.0) / (1.0 + spare)
    half = z / (1.0 + spare) * math.sqrt(share * (1.0 - share) / of + spare / (4.0 * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap(
    runs: Sequence[Sequence[T]], of: Callable[[list[T]], float], draws: int = DRAWS
) -> Interval:
    """Return the 95 % interval of ``of`` by drawing whole runs, with replacement.

    What lies in one run stands or falls together, so drawing single values would make it look surer.
    """
    rng = np.random.default_rng(SEED)
    found = []
    for _ in range(draws):
        drawn = rng.integers(0, len(runs), len(runs))
        found.append(of([value for run in drawn for value in runs[run]]))
    low, high = np.quantile(found, (0.025, 0.975), method="nearest")
    return float(low), float(high)


def _at_most(count: int, mean: float) -> float:
    """Return the chance of at most ``count`` where ``mean`` are expected."""
    terms = (i * math.log(mean) - mean - math.lgamma(i + 1.0) for i in range(count + 1))
    return math.fsum(math.exp(term) for term in terms)


def _mean_where(small: Callable[[float], bool]) -> float:
    """Return the mean from which on ``small`` is true."""
    low, high = 1e-12, 1.0
    while not small(high):
        high *= 2.0
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (low, middle) if small(middle) else (middle, high)
    return high
