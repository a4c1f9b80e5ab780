"""Evidence that a loss has risen above its own trend: per point for jumps, per block for drifts.

Evidence is a log-likelihood ratio, less what looking so often costs: a threshold of ln(far) - 1.5 gives
about one false alarm in ``far`` points. The evidence of a point is the largest of

- the drift path: `wtwin_watch.monitor.contrast` on blocks of 8 · 2^q points (4 · 2^q at first), at each
  scale that received a block, over several window lengths;
- the fast path: a CUSUM of points above the mean of the last two blocks, for jumps;
- the mid path: two CUSUMs above the drift path's forecast, for steep ramps.
"""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from wtwin_watch.monitor.blocks import RING
from wtwin_watch.monitor.contrast import Contrast, Forecast, Window, compare, windows
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.points import SD_OF_DIFFERENCE, Points
from wtwin_watch.monitor.scales import LEVELS, Level, long_run_variances

EARLY_BLOCK = 4
BLOCK = 8
SWITCH = 1024
"""After so many points blocks have `BLOCK` points instead of `EARLY_BLOCK`."""
ROUNDING = 1e-9
"""Block means that differ by less than so many ``ad`` are the same."""
FINEST, COARSER = (12, 4, 2), (12, 6)
"""Lengths of test windows in blocks: at level 0, and above."""
WINDOWS = [windows(COARSER if q else FINEST, q) for q in range(LEVELS)]
EARLY_FINEST, EARLY_COARSER = (12, 6, 4, 2, 1), (12, 8, 6)
EARLY_WINDOWS = [windows(EARLY_COARSER if q else EARLY_FINEST, q) for q in range(LEVELS)]
MID_WINDOW = 4
RECENT_BLOCKS = 16
SMALLEST = 11
"""Ten blocks of reference and one to test."""


class Evidence(Points):
    """What is known of one loss: noise, blocks, and the evidence of its latest point.

    ``flatten``: c_kappa, how soon a forecast stops to follow its slope, 1 / unit of x.
    ``min_effect``: a rise below this share of the loss is none.
    """

    __slots__ = (
        "E", "before", "best", "block", "expected", "fast_a", "flatten", "levels", "median", "mid",
        "min_effect", "recent", "top", "variances",
    )  # fmt: skip

    def __init__(self, flatten: float, min_effect: float) -> None:
        super().__init__()
        self.flatten = flatten
        self.min_effect = min_effect
        self.levels = [Level() for _ in range(LEVELS)]
        self.variances = [0.0] * LEVELS
        """Long-run variance of a point, as each level sees it."""
        self.top = 0
        """The highest level that has received a block."""
        self.block = EARLY_BLOCK
        """Points in a block of level 0."""
        self.recent = array("d")
        """Mean absolute difference within each of the last blocks."""
        self.fast_a = 0.0
        self.median = math.nan
        """Of the last block."""
        self.forget_blocks()

    def forget_blocks(self) -> None:
        """Begin a new trend: forget the blocks and all evidence, keep what is known of the noise."""
        for level in self.levels:
            level.blocks.clear()
        self.base = self.before = math.nan
        """Mean of the last two blocks, and of the last."""
        self.expected = math.nan
        """The forecast at the last block, as far as there is one."""
        self.quiet()

    def quiet(self) -> None:
        """Forget evidence and what is half done, keep trend and noise."""
        self.flush()
        self.calm_down()
        self.E = 0.0
        self.best: tuple[int, Window, Contrast, float] | None = None
        """Level, window and result of the test with the most evidence, and x where its window begins."""
        self.mid: Contrast | None = None

    def flush(self) -> None:
        """Drop the block that isn't full and the halves that wait: no block straddles a gap."""
        self.values.clear()
        self.wsum = 0.0
        for level in self.levels[: self.top + 1]:
            level.half = None

    def state(self) -> dict[str, Any]:
        """Return all of it as a JSON-able dict."""
        used = [level for level in self.levels if level.blocks.count or level.c]
        best = None
        if self.best is not None:
            q, window, test, edge = self.best
            best = [q, window.m, window.half_weight > 0.0, pack((*test, edge))]
        return {
            "numbers": pack([getattr(self, name) for name in NUMBERS]),
            "counts": [getattr(self, name) for name in COUNTS],
            "values": pack(self.values),
            "recent": pack(self.recent),
            "variances": pack(self.variances),
            "mid": None if self.mid is None else pack(self.mid),
            "best": best,
            "levels": [level.state() for level in self.levels[: len(used)]],
        }

    @classmethod
    def revive(cls, state: Mapping[str, Any]) -> Evidence:
        """Make the evidence that `state` describes."""
        evidence = cls(0.0, 0.0)
        for name, number in zip(NUMBERS, unpack(state["numbers"]), strict=True):
            setattr(evidence, name, number)
        for name, count in zip(COUNTS, state["counts"], strict=True):
            setattr(evidence, name, int(count))
        evidence.values = unpack(state["values"])
        evidence.recent = array("d", unpack(state["recent"]))
        evidence.variances = unpack(state["variances"])
        evidence.mid = None if state["mid"] is None else as_contrast(unpack(state["mid"]))
        if state["best"] is not None:
            q, m, halved, packed = state["best"]
            *test, edge = unpack(packed)
            evidence.best = (q, windows((m,), q)[halved][0], as_contrast(test), edge)
        levels = [Level.revive(level) for level in state["levels"]]
        evidence.levels[: len(levels)] = levels
        return evidence

    @property
    def sigma(self) -> float:
        """Sigma of a point for means of some tens of points: correlation counted in."""
        return math.sqrt(max(self.variances[:5]))

    @property
    def knows_a_trend(self) -> bool:
        """Whether there is any block."""
        return any(level.blocks.size for level in self.levels)

    def cut(self, x: float) -> None:
        """Forget the blocks beyond ``x`` and all evidence; what is known of the noise stays."""
        for level in self.levels:
            level.blocks.keep(x)
        self.quiet()

    def settle(self) -> None:
        """Take the level of the latest block that is left as the present one."""
        for level in self.levels:
            blocks = level.blocks
            if blocks.size:
                self.base = self.before = self.expected = blocks.pairs()[1][-1]
                return

    def finish_block(self, x: float, newest: float) -> None:
        """Take the block whose points are all there: ``x`` their mean x, ``newest`` that of the last one."""
        values = self.values
        values.sort()
        points = len(values)
        half = points >> 1
        self.median = median = 0.5 * (values[half - 1] + values[half])
        width = 3.0 * self.sd
        low, high = median - width, median + width
        if values[0] < low or values[-1] > high:
            values = [low if v < low else high if v > high else v for v in values]
        y = sum(values) / points
        recent = self.recent
        # The first point has no difference.
        recent.append(self.wsum / (points - (self.n == points)))
        if len(recent) > RECENT_BLOCKS:
            del recent[0]
        self.values.clear()
        self.wsum = 0.0
        self.base = y if math.isnan(self.before) else 0.5 * (y + self.before)
        self.before = y
        top = self._cascade(x, y)
        self._weigh_noise(top)
        self._test(top, newest)
        if self.block == EARLY_BLOCK and self.n >= SWITCH:
            self._coarsen()

    def _cascade(self, x: float, y: float) -> int:
        """Hand the block up as far as halves meet; return the highest level that received one."""
        noise = 0.0
        least = ROUNDING * self.ad
        for q, level in enumerate(self.levels):
            level.blocks.push(x, y)
            if q:
                level.learn(q, noise, 0.0, least)
            else:
                self.fast_a = fast = level.learn(0, 0.0, self.fast_a, least)
                noise = level.a if level.a > fast else fast
            half = level.half
            if half is None or q == LEVELS - 1:
                level.half = (x, y)
                break
            x = 0.5 * (x + half[0])
            y = 0.5 * (y + half[1])
            level.half = None
        self.top = max(self.top, q)
        return q

    def _weigh_noise(self, top: int) -> None:
        """Estimate the long-run variance of a point, as far up as tests look."""
        levels = self.levels
        noise = max(levels[0].a, self.fast_a)
        self.variances = v = long_run_variances(
            levels, top + 5, noise, self.block, self.floor_sd * self.floor_sd
        )
        if v[0] > 0.0:
            self.f = math.sqrt(math.sqrt(max(v[:4]) / v[0]))
            self.jump_from = 3.0 * self.f * SD_OF_DIFFERENCE

    def _test(self, top: int, newest: float) -> None:
        """Test every level that received a block, and the next one if a half block waits for it."""
        self.E = 0.0
        self.best = None
        self.mid = None
        # From coarse to fine: what long windows show makes most tests of short ones needless.
        half = self.levels[top].half
        if half is not None and top + 1 < LEVELS:
            self._test_level(top + 1, half)
        for q in range(top, -1, -1):
            self._test_level(q, None)
        mid = self.mid
        if mid is None:
            self.mf = self.climb_from = math.inf
            self.expected = self.base
            return
        _, xa, ya, slope, edge, middle, n, sxx, _ = mid
        reach = edge - xa
        follow = 1.0 - self.flatten * (newest - middle)
        if follow > 0.0:
            reach += follow * (newest - edge)
        self.expected = f = ya + slope * reach
        self.mf = f = f + self.min_effect * abs(f)
        self.climb_from = f + 0.5 * self.msd
        self.mse = math.sqrt((1.0 / n + reach * reach / sxx) / self.block)
        if not self.p2_at:
            self.p2_at = self.n

    def _test_level(self, q: int, half: tuple[float, float] | None) -> None:
        level = self.levels[q]
        blocks = level.blocks
        if blocks.size < SMALLEST:
            return
        variances = self.variances
        v = variances[q]
        if not v > 0.0:
            return
        early = self.block == EARLY_BLOCK
        look = 4 if early else 3
        worst = max(variances[q : q + look + 1])
        c = level.c
        variance = worst * (1.0 + 4.0 / (64 if c > 64 else c if c > 1 else 1))
        if worst > v:
            variance *= math.sqrt(worst / v)
        if blocks.count < 10 * RING and self.levels[min(q + look - 1, LEVELS - 1)].c == 0:
            # No coarser level confirms this one yet.
            if c < 16:
                return
            variance *= self._provisional(q, v, look - 1)
        points = self.block << q
        vb = variance / points
        ad = self.ad
        floor = SD_OF_DIFFERENCE / 1.1 * (self.sdf if q and self.sdf > ad else ad)
        floor *= floor / points
        tests = (EARLY_WINDOWS if early else WINDOWS)[q][half is not None]
        noises: Sequence[float] = (
            (vb if vb > floor else floor,) * 4 if q else self._recent_variances(tests, vb, floor)
        )
        self.E, found, mid = compare(
            blocks,
            tests,
            half,
            noises,
            self.flatten,
            self.min_effect,
            self.E,
            0 if q else MID_WINDOW,
            early,
        )
        if found is not None:
            window, test = found
            self.best = (q, window, test, blocks.edge(window.m))
        if mid is not None:
            self.mid = mid
            at = next(i for i, window in enumerate(tests) if window.m == MID_WINDOW)
            self.msd = math.sqrt(noises[at] * self.block)

    def _recent_variances(self, tests: list[Window], vb: float, floor: float) -> list[float]:
        """Variance of a block of level 0 for each window, raised where its points are noisier than usual.

        Last that of other blocks.
        """
        ad = self.ad
        usual = floor if floor > vb else vb
        noises = []
        recent = self.recent
        for window in tests:
            latest = recent[-window.m :]
            so = sum(latest) / len(latest)
            if so <= ad or not ad > 0.0:
                noises.append(usual)
                continue
            ratio = so / ad
            raised = floor * ratio * ratio
            noise = vb * (ratio / 1.1) ** 2 if ratio > 1.1 else vb
            noises.append(raised if raised > noise else noise)
        noises.append(usual)
        return noises

    def _provisional(self, q: int, v: float, coarser: int) -> float:
        """By how much to raise a variance that no coarser level confirms yet: 4, or less by first signs."""
        worst = v
        for level in islice(self.levels, q + 1, q + 1 + coarser):
            count = level.r2_count
            if count < 2:
                return 4.0
            u = self.variances[0] * level.r2**2 * (1.0 + 2.0 / (count if count < 32 else 32))
            worst = max(worst, u)
        return min(4.0, 1.5 * worst / v)

    def _coarsen(self) -> None:
        """From now on a block has twice the points: level 0 goes, level 1 takes its place."""
        levels = self.levels
        ratio, ratio2 = levels[1].r, levels[1].r2
        del levels[0]
        levels.append(Level())
        for level in levels:
            level.r = level.r / ratio if ratio > 0.0 else 0.0
            level.r2 = level.r2 / ratio2 if ratio2 > 0.0 else 0.0
            level.floor = 0.8 * level.r**2 if level.r_count >= 3 else 0.0
            level.u /= 2.0
        self.top -= 1
        self.block = BLOCK
        self.fast_a = levels[0].a
        pairs = self.recent[len(self.recent) % 2 :]
        self.recent = array(
            "d", [0.5 * (a + b) for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        )


COUNTS = (
    "S1_age", "S2_age", "ad_clipped_at", "ad_run", "block", "n", "p2_at", "p_at", "top",
)  # fmt: skip
NUMBERS = (
    "E", "S", "S1", "S2", "ad", "ar", "base", "before", "climb_from", "expected", "f", "fast_a", "flatten",
    "floor_sd", "jump_from", "last", "median", "mf", "min_effect", "msd", "mse", "p", "p2", "quantum",
    "sdf", "wsum",
)  # fmt: skip


def as_forecast(found: Contrast, flatten: float) -> Forecast:
    """Return the forecast a test compared with."""
    _, x, y, slope, edge, middle, _, _, _ = found
    return Forecast(x, y, slope, edge, middle, flatten)


def as_contrast(numbers: Sequence[float]) -> Contrast:
    """Return the test whose numbers these are."""
    z, x, y, slope, edge, middle, n, sxx, excess = numbers
    return z, x, y, slope, edge, middle, int(n), sxx, excess
