"""Loss curves for the tests of the trend monitor, and a way through it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wtwin_watch.monitor.trend import TrendMonitor

Floats = NDArray[np.float64]


def curve(points: int, seed: int = 1, sigma: float = 0.02) -> Floats:
    """A falling loss of steps 1, 2, … with white noise: 2 at the first step, 0.5 at the 100th."""
    noise = np.random.default_rng(seed).normal(0.0, sigma, points)
    return np.asarray(2.0 * np.arange(1.0, points + 1.0) ** -0.3 + noise)


def watched(
    losses: Iterable[float], monitor: TrendMonitor | None = None, first: int = 1
) -> TrendMonitor:
    """Return a monitor that has seen these losses at steps ``first``, ``first`` + 1, …."""
    monitor = monitor or TrendMonitor()
    for step, loss in enumerate(losses, first):
        monitor.update(step, float(loss))
    return monitor


def kinds(monitor: TrendMonitor) -> list[tuple[str, str | None]]:
    """Return kind and outcome of the monitor's episodes."""
    return [(episode.kind, episode.outcome) for episode in monitor.episodes]
