"""Made-up losses for the tests of the trend detector: a power law with noise, and failures added to it."""

from __future__ import annotations

import numpy as np

from wtwin_watch.model import Point

SIGMA = 0.02


def healthy(points: int, seed: int = 0) -> list[float]:
    """A loss that falls as 2 + 3 t^-0.5 with white noise of 0.02."""
    steps = np.arange(1, points + 1)
    noise = np.random.default_rng(seed).normal(0.0, SIGMA, points)
    return [float(loss) for loss in 2.0 + 3.0 * steps**-0.5 + noise]


def with_rise(losses: list[float], at: int, rise: list[float]) -> list[float]:
    """``losses`` with ``rise`` added from index ``at`` on; its last value stays."""
    last = rise[-1]
    return [
        loss + (0.0 if i < at else rise[i - at] if i - at < len(rise) else last)
        for i, loss in enumerate(losses)
    ]


def series(losses: list[float], metric: str = "loss", first: int = 1) -> list[Point]:
    """One point a step."""
    return [Point(metric, float(step), loss) for step, loss in enumerate(losses, first)]


def rows(**columns: list[float | None]) -> list[Point]:
    """Rows of several metrics, in the order of the columns; None is an empty cell."""
    return [
        Point(metric, float(step), value)
        for step, values in enumerate(zip(*columns.values(), strict=True), 1)
        for metric, value in zip(columns, values, strict=True)
        if value is not None
    ]
