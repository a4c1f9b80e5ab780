"""Recursive means and sums of whole columns at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wtwin_watch.monitor.points import CLIP

Floats = NDArray[np.float64]
TRIES = 100
FADED_TO = 256.0
"""Sums are carried on by themselves until e^-256 is left of their beginning."""
TINY = 1e-9


def smooth(values: Floats, start: float, memory: int) -> Floats:
    """Return s_t = s_(t-1) + (v_t - s_(t-1)) / memory, from ``start`` on."""
    gains = np.full(len(values), 1.0 / memory)
    return _follow(gains * values, 1.0 - gains, start)


def _follow(added: Floats, factors: Floats, start: float) -> Floats:
    """Return s_t = factor_t s_(t-1) + added_t, from ``start`` on; nothing is negative."""
    out = np.empty(len(added))
    # What is left of the beginning must not become too small to divide by.
    size = max(1, int(FADED_TO / max(1.0 - factors.min(initial=1.0), TINY)))
    for begin in range(0, len(added), size):
        part = slice(begin, begin + size)
        left = np.cumprod(factors[part])
        out[part] = left * (start + np.cumsum(added[part] / left))
        start = out[min(begin + size, len(out)) - 1]
    return out


def smooth_clipped(
    values: Floats, start: float, gains: Floats
) -> tuple[Floats, NDArray[np.bool_]] | None:
    """Smooth values clipped at `CLIP` times what the result was before; return it, and which were.

    ``gains``: 1 / memory at each, below 1. None where that isn't settled in some tries.
    """
    clipped = np.zeros(len(values), dtype=np.bool_)
    for _ in range(TRIES):
        factors = np.where(clipped, 1.0 + (CLIP - 1.0) * gains, 1.0 - gains)
        out = _follow(np.where(clipped, 0.0, gains * values), factors, start)
        # Each try settles all up to the next clipped point, and mostly all of them.
        again = values > CLIP * np.concatenate(((start,), out[:-1]))
        if np.array_equal(again, clipped):
            return out, clipped
        clipped = again
    return None


def climb(increments: Floats, start: float) -> Floats:
    """Return s_t = max(0, s_(t-1) + increment), from ``start`` on."""
    total = np.cumsum(increments)
    return total - np.minimum(np.minimum.accumulate(total), -start)
