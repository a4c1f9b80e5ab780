"""Many points at once: what `TrendMonitor.update` does with points that go their usual way, in columns.

A stretch is tried on the assumption that nothing happens in it: no alert, no gap, no NaN, no rise of the
learning rate. If that turns out wrong nothing is kept, and the caller takes the points one by one. Noise,
clock and evidence come out as from the stream, up to rounding.
"""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wtwin_watch.monitor.columns import Tests
from wtwin_watch.monitor.evidence import BLOCK, RECENT_BLOCKS, Evidence
from wtwin_watch.monitor.pace import NARROW
from wtwin_watch.monitor.points import (
    CLIP,
    FADE,
    POINT_MEMORY,
    RECENT_MEMORY,
    RELEASE,
    SD_OF_DIFFERENCE,
    SD_OF_MEAN_ABS,
    SD_OF_RECENT,
    SQRT12,
    TAIL_MEMORY,
    TAIL_PRIOR,
    TAIL_STEADY,
    fading,
)
from wtwin_watch.monitor.smoothing import climb, smooth, smooth_clipped

Floats = NDArray[np.float64]
STRETCH = 32_768
"""Points tried at once."""
LEAST = 256
"""Fewer aren't worth it."""


@dataclass(frozen=True)
class Stretch:
    """What a stretch gave: evidence and forecast at each point."""

    evidence: Floats
    expected: Floats


class Attempt:
    """One stretch of full blocks, tried on a monitor's evidence."""

    def __init__(self, evidence: Evidence, losses: Floats, clock: Floats, limit: float) -> None:
        self.evidence = evidence
        self.losses = losses
        self.clock = clock
        """What x is the logarithm of, at each point."""
        self.limit = limit
        """Evidence above this is an alert."""
        self.usual_until = 0
        """Where `run` found something unusual: before this point all was usual, as far as it looked."""
        self.ends = slice(BLOCK - 1, None, BLOCK)

    def run(self) -> Stretch | None:
        """Go through the stretch and learn from it; None where it isn't usual, and nothing is changed."""
        evidence = self.evidence
        if not self._learn_noise():
            return None
        kept: dict[str, Any] = {name: getattr(evidence, name) for name in MOVED}
        evidence.levels = [level.clone() for level in evidence.levels]
        self._cascade()
        found = self._test()
        weighed = None if found is None else self._weigh(found)
        if weighed is None:
            for name, value in kept.items():
                setattr(evidence, name, value)
        return weighed

    def _learn_noise(self) -> bool:
        """Learn the noise of neighbouring points, at every point; False where its scale is released."""
        evidence = self.evidence
        d = np.abs(np.diff(self.losses, prepend=evidence.last))
        gains = np.full(len(d), 1.0 / POINT_MEMORY)
        found = smooth_clipped(d, evidence.ad, gains)
        if found is None:
            return False
        self.ad, clipped = found
        in_a_row = np.convolve(clipped, np.ones(RELEASE + 1), "valid")
        if clipped[:RELEASE].any():
            return False
        if in_a_row.max() > RELEASE:
            self.usual_until = int(np.argmax(in_a_row))
            return False
        self.run_at_end = int(np.argmin(clipped[::-1]))
        self.used = np.minimum(d, CLIP * np.concatenate(((evidence.ad,), self.ad[:-1])))
        self.sdf = smooth(self.used, evidence.sdf, RECENT_MEMORY)
        moved = np.where(d > 0.0, d, math.inf)
        self.quantum = np.minimum(np.minimum.accumulate(moved), evidence.quantum)
        floor = self.quantum / SQRT12
        self.floor = np.where(np.isfinite(floor), floor, 0.0)
        return True

    def _cascade(self) -> None:
        """Make the blocks and hand them up; note what was known of the noise at each."""
        evidence = self.evidence
        values = np.sort(self.losses.reshape(-1, BLOCK), axis=1)
        self.middle = 0.5 * (values[:, BLOCK // 2 - 1] + values[:, BLOCK // 2])
        width = 3.0 * np.maximum(SD_OF_DIFFERENCE * self.ad[self.ends], self.floor[self.ends])
        means = np.clip(values, (self.middle - width)[:, None], (self.middle + width)[:, None])
        self.means = means.sum(axis=1) / BLOCK
        self.bases = 0.5 * (self.means + np.concatenate(((evidence.before,), self.means[:-1])))
        clock = self.clock.reshape(-1, BLOCK)
        narrow = clock[:, -1] - clock[:, 0] <= NARROW * clock[:, -1]
        xs = np.where(narrow, np.log(clock.mean(axis=1)), np.log(clock).mean(axis=1))
        levels = evidence.levels
        self.tests = Tests(levels, xs, self.means, evidence.flatten, evidence.min_effect)
        evidence.fast_a = self.tests.learn(
            levels, evidence.fast_a, self.floor[self.ends] ** 2, self.ad[self.ends]
        )
        for level, half in zip(levels, self.tests.left, strict=True):
            level.half = half
        evidence.top = max(q for q, level in enumerate(levels) if level.blocks.count)
        self.factors = self.tests.factors

    def _test(self) -> Floats | None:
        """Run all tests; return the evidence of each block, None where that is an alert or can't be."""
        evidence = self.evidence
        ends = self.ends
        recent = self.used.reshape(-1, BLOCK).mean(axis=1)
        known = np.array(evidence.recent)
        self.recent = np.concatenate((known, recent))
        found = self.tests.run(self.ad[ends], self.sdf[ends], self.recent, len(known))
        if found is None:
            return None
        if found.max() > self.limit:
            self.usual_until = int(np.argmax(found > self.limit)) * BLOCK
            return None
        return found

    def _weigh(self, found: Floats) -> Stretch | None:
        """Weigh each point by the fast and the mid path, and keep all if there is no alert."""
        evidence, tests = self.evidence, self.tests
        y = self.losses
        base = held(evidence.base, self.bases)
        gains = np.full(len(y), 1.0 / POINT_MEMORY)
        away = smooth_clipped(np.abs(y - base), evidence.ar, gains)
        if away is None:
            return None
        ends = self.ends
        sd = np.maximum(SD_OF_DIFFERENCE * self.ad[ends], SD_OF_RECENT * self.sdf[ends])
        sd = np.maximum(sd, self.floor[ends])
        scale = self.factors * np.maximum(sd, SD_OF_MEAN_ABS * away[0][ends])
        newest = np.log(self.clock[ends])
        forecast, reach = tests.mid_forecast(newest)
        mf = forecast + evidence.min_effect * np.abs(forecast)
        msd = np.sqrt(tests.mid[:, 7] * BLOCK)
        climb_sd = np.maximum(sd, msd)
        mse = np.sqrt((1.0 / tests.mid[:, 5] + reach**2 / tests.mid[:, 6]) / BLOCK)
        known = evidence.scale > 0.0 and evidence.climb_sd > 0.0 and math.isfinite(evidence.mf)
        if not (known and scale.min() > 0.0):
            return None
        n0 = evidence.n
        jumps, jump_state = self._jumps((y - base) / held(evidence.scale, scale), n0)
        z = (y - held(evidence.mf, mf)) / held(evidence.climb_sd, climb_sd)
        slack = held(evidence.mse, mse)
        capped = np.minimum(z, 3.0)
        p2_before, p2, p2_at = self._rare_points(z, n0)
        rare = 1.0 - 0.5 * np.log(p2_before)
        s2 = climb(np.where(z > 1.0, np.minimum(capped, rare), capped) - 1.0 - slack, evidence.S2)
        total = np.maximum(jumps, 2.0 * s2 - 1.0)
        drift = held(evidence.E, found)
        drift[ends] = found
        total = np.maximum(np.maximum(total, drift), 0.0)
        if total.max() > self.limit:
            self.usual_until = int(np.argmax(total > self.limit))
            return None
        expected = held(evidence.expected, forecast)
        expected[ends] = forecast
        self._keep_noise(float(away[0][-1]))
        evidence.S, evidence.p, evidence.p_at = jump_state
        evidence.p2, evidence.p2_at = p2, p2_at
        evidence.S2, evidence.S2_age = float(s2[-1]), _age(s2, evidence.S2_age)
        evidence.E, evidence.best = float(found[-1]), None
        tests.keep_lines(evidence.levels)
        evidence.mid = evidence.levels[0].line
        evidence.mf, evidence.msd, evidence.mse = float(mf[-1]), float(msd[-1]), float(mse[-1])
        evidence.expected = float(forecast[-1])
        evidence.begin_block()
        return Stretch(total, expected)

    def _keep_noise(self, ar: float) -> None:
        """Let the monitor know what is known at the end; ``ar``: mean deviation from the base."""
        evidence = self.evidence
        evidence.variances = self.tests.noise[:, -1].tolist()
        evidence.f = float(self.factors[-1])
        evidence.n += len(self.losses)
        evidence.last = float(self.losses[-1])
        evidence.ad, evidence.sdf, evidence.ar = float(self.ad[-1]), float(self.sdf[-1]), ar
        evidence.quantum, evidence.floor_sd = float(self.quantum[-1]), float(self.floor[-1])
        evidence.base, evidence.before = float(self.bases[-1]), float(self.means[-1])
        evidence.ad_run = self.run_at_end
        evidence.median = float(self.middle[-1])
        evidence.recent = array("d", self.recent[-RECENT_BLOCKS:].tolist())

    def _jumps(self, z: Floats, n0: int) -> tuple[Floats, tuple[float, float, int]]:
        """Return the fast path's CUSUM at each point, and its state at the end."""
        evidence = self.evidence
        sums = np.zeros(len(z))
        s, p, at = evidence.S, evidence.p, evidence.p_at
        starts = np.flatnonzero(z > 3.0).tolist()
        points = z.tolist()
        i = 0 if s else (starts[0] if starts else len(points))
        while i < len(points):
            n = n0 + i + 1
            if points[i] > 3.0:
                p *= fading(at, n - 1)
                s += min(min(points[i], 8.0) - 3.0, -math.log(p))
                p += (1.0 - p) / (TAIL_MEMORY if n >= TAIL_STEADY else TAIL_PRIOR + n)
                at = n
            else:
                s = max(0.0, s + points[i] - 3.0)
            sums[i] = s
            i += 1
            if not s:
                i = next((start for start in starts if start >= i), len(points))
        return sums, (s, p, at)

    def _rare_points(self, z: Floats, n0: int) -> tuple[Floats, float, int]:
        """Return the share of high points known before each point; and the last share, and since when."""
        p2, at = self.evidence.p2, self.evidence.p2_at
        high = np.flatnonzero(z >= 2.5)
        shares, since = [p2], [at]
        for i in high.tolist():
            n = n0 + i + 1
            p2 = p2 * FADE ** (n - 1 - at) * FADE + 1.0 / TAIL_MEMORY
            at = n
            shares.append(p2)
            since.append(at)
        index = np.searchsorted(high, np.arange(len(z)), "left")
        age = n0 + np.arange(len(z)) - np.array(since)[index]
        return np.array(shares)[index] * FADE**age, p2, at


MOVED = ("levels", "top", "fast_a")
"""What of the evidence `Attempt` changes before it knows that nothing happens."""


def held(first: float, later: Floats) -> Floats:
    """Return what is known at each point, of what is known anew after each block."""
    return np.repeat(np.concatenate(((first,), later[:-1])), BLOCK)


def _age(sums: Floats, before: int) -> int:
    """Return since how many points a CUSUM is above 0."""
    zeros = np.flatnonzero(sums <= 0.0)
    return len(sums) - 1 - int(zeros[-1]) if len(zeros) else before + len(sums)
