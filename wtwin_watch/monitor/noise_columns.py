"""What `wtwin_watch.monitor.scales.Level` learns of noise, for many blocks at once."""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math

import numpy as np

from wtwin_watch.monitor.points import CLIP, SD_OF_MEAN_ABS
from wtwin_watch.monitor.scales import (
    EARLY_SPAN,
    RELEASE,
    STEADY_SPAN,
    THIRD_DIFFERENCE,
    Level,
)
from wtwin_watch.monitor.smoothing import Floats, smooth_clipped

MANY = 192
"""So many blocks are worth learning from at once."""


def learn_column(
    level: Level,
    q: int,
    x: Floats,
    y: Floats,
    new: int,
    noise: Floats | None,
    fast: float,
    least: Floats,
) -> tuple[Floats, Floats]:
    """Do what `Level.learn` does for each of the last ``new`` blocks of ``x`` and ``y``.

    ``noise``: level 0's noise at each of them, None for level 0 itself, which has a ``fast`` scale beside
    it. ``least``: a difference below this is rounding. Returns what was known after each, as rows for
    `Tests.learn`, the first row before them all, and the fast scale after each.
    """
    first = max(len(x) - new - 3, 0)
    x, y = x[first:], y[first:]
    span = x[3:] - x[:-3]
    d = np.abs(y[3:] - 3.0 * y[2:-1] + 3.0 * y[1:-2] - y[:-3]) / THIRD_DIFFERENCE
    missing = new - len(d)
    d = np.where(d < least[missing:], 0.0, d)
    other = None if noise is None else noise[missing:]
    found = None
    if not missing and new >= MANY and not level.run and level.c > 8 and span.max() < STEADY_SPAN:
        found = _learn_at_once(level, q, d, other, fast)
    if found is None:
        found = _learn_in_turn(level, q, span, d, other, fast, missing)
    (a, c, r, r_count, r2, r2_count), fasts = found
    u = np.where(c >= 3, (SD_OF_MEAN_ABS * a) ** 2 * 2.0**q, 0.0)
    weight = np.where(c >= 3, np.minimum(c, 64.0) / (4.0 + np.minimum(c, 64.0)), 0.0)
    floor = np.where(r_count >= 3, 0.8 * r * r, 0.0)
    level.a, level.c = float(a[-1]), int(c[-1])
    level.r, level.r_count = float(r[-1]), int(r_count[-1])
    level.r2, level.r2_count = float(r2[-1]), int(r2_count[-1])
    level.u, level.weight, level.floor = float(u[-1]), float(weight[-1]), float(floor[-1])
    return np.column_stack((a, c, u, weight, floor, r2, r2_count)), fasts


Known = tuple[Floats, ...]
"""A level's a, c, r, r_count, r2 and r2_count: before the new blocks, and after each of them."""


def _learn_at_once(
    level: Level, q: int, d: Floats, noise: Floats | None, fast: float
) -> tuple[Known, Floats] | None:
    """Learn from ``d`` in columns; None where a scale is released or has only just begun."""
    later = np.arange(1.0, len(d) + 1.0)
    c = level.c + later
    found = smooth_clipped(d, level.a, 1.0 / np.minimum(c, 64.0))
    if found is None:
        return None
    a, clipped = found
    if np.convolve(clipped, np.ones(RELEASE + 1), "valid").max() > RELEASE:
        return None
    r, r_count = np.full(len(d), level.r), np.full(len(d), float(level.r_count))
    r2, r2_count = np.full(len(d), level.r2), np.full(len(d), float(level.r2_count))
    fasts = np.full(len(d), fast)
    if noise is None:
        swift = smooth_clipped(d, fast, 1.0 / np.minimum(c, 16.0))
        if swift is None:
            return None
        fasts = swift[0]
    else:
        if min(level.r_count, level.r2_count) <= 8 or noise.min() <= 0.0:
            return None
        relative = d * math.sqrt(2.0**q) / noise
        r_count, r2_count = r_count + later, r2_count + later
        long = smooth_clipped(relative, level.r, 1.0 / np.minimum(r_count, 256.0))
        short = smooth_clipped(relative, level.r2, 1.0 / np.minimum(r2_count, 32.0))
        if long is None or short is None:
            return None
        r, r2 = long[0], short[0]
    level.run = int(np.argmin(clipped[::-1]))
    before = level.a, level.c, level.r, level.r_count, level.r2, level.r2_count
    after = a, c, r, r_count, r2, r2_count
    known = tuple(np.append(b, column) for b, column in zip(before, after, strict=True))
    return known, np.append(fast, fasts)


def _learn_in_turn(
    level: Level, q: int, span: Floats, d: Floats, noise: Floats | None, fast: float, missing: int
) -> tuple[Known, Floats]:
    """Learn from ``d`` one by one, after ``missing`` blocks that had none."""
    rows = [(level.a, level.c, level.r, level.r_count, level.r2, level.r2_count)] * (missing + 1)
    fasts = [fast] * (missing + 1)
    noises = [0.0] * len(d) if noise is None else noise.tolist()
    scale = math.sqrt(2.0**q)
    a, c, run = level.a, level.c, level.run
    r, r_count, r2, r2_count = level.r, level.r_count, level.r2, level.r2_count
    for wide, size, other in zip(span.tolist(), d.tolist(), noises, strict=True):
        if wide < STEADY_SPAN:
            c += 1
            used = size
            limit = CLIP * a
            if c > 8 and size > limit:
                run += 1
                if run <= RELEASE:
                    used = limit
            else:
                run = 0
            a += (used - a) / (c if c < 64 else 64)
            if q == 0:
                used = size
                if c > 8 and run <= RELEASE and size > CLIP * fast:
                    used = CLIP * fast
                fast += (used - fast) / (c if c < 16 else 16)
        if q and wide < EARLY_SPAN and other > 0.0:
            relative = size * scale / other
            if wide < STEADY_SPAN:
                r_count += 1
                clipped = min(relative, CLIP * r) if r_count > 8 else relative
                r += (clipped - r) / min(r_count, 256)
            r2_count += 1
            clipped = min(relative, CLIP * r2) if r2_count > 8 else relative
            r2 += (clipped - r2) / min(r2_count, 32)
        rows.append((a, c, r, r_count, r2, r2_count))
        fasts.append(fast)
    level.run = run
    return tuple(np.array(rows, dtype=np.float64).T), np.array(fasts)
