"""Evidence that a loss has risen above its own trend: per point for jumps, per block for drifts.

Evidence is a log-likelihood ratio, less what looking so often costs: a threshold of ln(far) - 1.5 gives
about one false alarm in ``far`` points. The evidence of a point is the largest of

- the drift path: `wtwin_watch.monitor.contrast` on blocks of 8 · 2^q points (4 · 2^q at first), at each
  scale that received a block, over several window lengths;
- the fast path: a CUSUM of points above the mean of the last two blocks, for jumps;
- the mid path: a CUSUM above the drift path's forecast, for steep ramps.
"""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from wtwin_watch.monitor.blocks import RING, YOUNG
from wtwin_watch.monitor.contrast import (
    LONGEST,
    REFERENCE,
    Line,
    as_line,
    compare,
    compare_young,
    fit_before,
    windows,
)
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
PROVISIONAL = 10 * REFERENCE
"""A level with fewer blocks is believed only where a coarser one confirms its noise."""
SMALLEST = 11
"""Ten blocks of reference and one to test."""
LINE_LASTS = 4
"""So many blocks of a grown scale one line serves."""
SWIFT = 3
"""Below this level a test is made only while the latest block lies above the line."""
RECENT_BLOCKS = 16


class Evidence(Points):
    """What is known of one loss: noise, blocks, and the evidence of its latest point.

    ``flatten``: c_kappa, how soon a forecast stops to follow its slope, 1 / unit of x.
    ``min_effect``: a rise below this share of the loss is none.
    """

    __slots__ = (
        "E", "before", "best", "block", "expected", "fast_a", "flatten", "levels", "median", "mid",
        "min_effect", "recent", "top", "variances",
    )  # fmt: skip

    def __init__(self, flatten: float, min_effect: float, limit: float = math.inf) -> None:
        super().__init__(limit)
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
        self.quiet()
        for level in self.levels:
            level.blocks.clear()
            level.line = None
        self.base = self.before = math.nan
        """Mean of the last two blocks, and of the last."""
        self.expected = math.nan
        """The forecast at the last block, as far as there is one."""

    def quiet(self) -> None:
        """Forget evidence and what is half done, keep trend and noise."""
        self.flush()
        self.calm_down()
        self.E = 0.0
        self.best: tuple[int, int, Line, float, float] | None = None
        """The test with the most evidence: level, blocks in its window, line, excess, and where it begins."""
        self.mid: Line | None = None

    def flush(self) -> None:
        """Drop the block that isn't full and the halves that wait: no block straddles a gap."""
        self.learn()
        self.n += len(self.values)
        self.values.clear()
        self.learned = 0
        self.wsum = 0.0
        for level in self.levels[: self.top + 1]:
            level.half = None

    def state(self) -> dict[str, Any]:
        """Return all of it as a JSON-able dict."""
        used = [level for level in self.levels if level.blocks.count or level.c]
        best = None
        if self.best is not None:
            q, m, line, excess, edge = self.best
            best = pack((q, m, excess, edge, *line))
        return {
            "numbers": pack([getattr(self, name) for name in NUMBERS]),
            "counts": [getattr(self, name) for name in COUNTS],
            "start": pack(self.start),
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
        s, s2, age, p, p_at, p2, p2_at = unpack(state["start"])
        evidence.start = (s, s2, int(age), p, int(p_at), p2, int(p2_at))
        evidence.values = unpack(state["values"])
        evidence.recent = array("d", unpack(state["recent"]))
        evidence.variances = unpack(state["variances"])
        evidence.mid = None if state["mid"] is None else as_line(unpack(state["mid"]))
        if state["best"] is not None:
            q, m, excess, edge, *line = unpack(state["best"])
            evidence.best = (int(q), int(m), as_line(line), excess, edge)
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
            if level.line is not None and level.line[EDGE] > x:
                level.line = None
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
        self.learn()
        values = self.values
        points = len(values)
        ordered = sorted(values)
        half = points >> 1
        self.median = median = 0.5 * (ordered[half - 1] + ordered[half])
        width = 3.0 * self.sd
        low, high = median - width, median + width
        if ordered[0] < low or ordered[-1] > high:
            ordered = [low if v < low else high if v > high else v for v in ordered]
        y = sum(ordered) / points
        recent = self.recent
        # The first point has no difference.
        recent.append(self.wsum / (points if self.n else points - 1))
        if len(recent) > RECENT_BLOCKS:
            del recent[0]
        self.base = y if math.isnan(self.before) else 0.5 * (y + self.before)
        self.before = y
        top = self._cascade(x, y)
        self._weigh_noise(top)
        self._test(top)
        self._forecast(newest)
        self.begin_block()
        if self.block == EARLY_BLOCK and self.n >= SWITCH:
            self._coarsen()

    def _cascade(self, x: float, y: float) -> int:
        """Hand the block up as far as halves meet; return the highest level that received one."""
        noise = 0.0
        least = ROUNDING * self.ad
        for q, level in enumerate(self.levels):
            level.blocks.push(x, y)
            level.latest = (x, y)
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

    def _test(self, top: int) -> None:
        """Test every level that received a block, and the next one if a half block waits for it."""
        self.E = 0.0
        self.best = None
        self.mid = None
        early = self.block == EARLY_BLOCK
        if not early:
            for q in range(top + 1):
                if self.levels[q].blocks.count % LINE_LASTS == 0:
                    self._lay_line(q)
        # From coarse to fine: what long windows show makes most tests of short ones needless.
        half = self.levels[top].half
        if half is not None and top + 1 < LEVELS:
            self._test_level(top + 1, half, early)
        for q in range(top, -1, -1):
            self._test_level(q, None, early)

    def _lay_line(self, q: int) -> None:
        """Lay a grown level's line through its past anew."""
        level = self.levels[q]
        blocks = level.blocks
        if blocks.count <= YOUNG:
            return
        vb, floor = self._variances(q)
        size = blocks.size
        level.line = (
            fit_before(blocks, size - RING, size - LONGEST, max(vb, floor)) if vb > 0.0 else None
        )

    def _forecast(self, newest: float) -> None:
        """Let the mid path go by the line of level 0, at the newest x."""
        level = self.levels[0]
        line = self.mid
        if self.block != EARLY_BLOCK:
            self.mid = line = level.line
        if line is None:
            self.mf = math.inf
            self.expected = self.base
            return
        slope, xa, ya, edge, middle, n, sxx, variance = line
        reach = edge - xa
        follow = 1.0 - self.flatten * (newest - middle)
        if follow > 0.0:
            reach += follow * (newest - edge)
        self.expected = f = ya + slope * reach
        self.mf = f + self.min_effect * abs(f)
        self.msd = math.sqrt(variance * self.block)
        self.mse = math.sqrt((1.0 / n + reach * reach / sxx) / self.block)
        if not self.p2_at:
            self.p2_at = self.n + len(self.values)

    def _test_level(self, q: int, half: tuple[float, float] | None, early: bool) -> None:
        level = self.levels[q]
        blocks = level.blocks
        line = None
        least = -math.inf
        if not early and blocks.count > YOUNG:
            line = level.line
            if line is None:
                return
            # A rise that goes on has its latest block above the line. Coarse levels are tested rarely anyway.
            slope, xa, ya, edge, middle, _, _, _ = line
            x, y = half or level.latest
            flatten = self.flatten
            follow = 1.0 - flatten * (x - middle)
            reach = edge - xa
            if follow > 0.0:
                reach += follow * (x - edge)
                if follow >= flatten * (x - edge):
                    least = ya + slope * reach
            if q < SWIFT and y <= ya + slope * reach:
                return
        elif blocks.size < SMALLEST:
            return
        vb, floor = self._variances(q)
        if not vb > 0.0:
            return
        tests = (EARLY_WINDOWS if early else WINDOWS)[q][half is not None]
        noise = floor if floor > vb else vb
        recent = None if q or not self.ad > 0.0 else partial(self._recent_variance, vb, floor)
        if line is not None:
            self.E, found = compare(
                blocks,
                tests,
                half,
                noise,
                recent,
                self.flatten,
                self.min_effect,
                self.E,
                line,
                least,
            )
        else:
            self.E, found, mid = compare_young(
                blocks, tests, half, noise, recent, self.flatten, self.min_effect, self.E
            )
            if early and q == 0 and mid is not None:
                self.mid = mid
        if found is not None:
            self.best = (q, *found, blocks.edge(found[0]))

    def _variances(self, q: int) -> tuple[float, float]:
        """Return the long-run variance of a block of level ``q``, and what differences of points tell of it.

        The first is 0 while the level is too young to know.
        """
        variances = self.variances
        v = variances[q]
        ad = self.ad
        points = self.block << q
        floor = SD_OF_DIFFERENCE / 1.1 * (self.sdf if q and self.sdf > ad else ad)
        floor *= floor / points
        if not v > 0.0:
            return 0.0, floor
        levels = self.levels
        look = 4 if self.block == EARLY_BLOCK else 3
        worst = max(variances[q : q + look + 1])
        c = levels[q].c
        variance = worst * (1.0 + 4.0 / (64 if c > 64 else c if c > 1 else 1))
        if worst > v:
            variance *= math.sqrt(worst / v)
        if levels[q].blocks.count < PROVISIONAL and levels[min(q + look - 1, LEVELS - 1)].c == 0:
            # No coarser level confirms this one yet.
            if c < 16:
                return 0.0, floor
            variance *= self._provisional(q, v, look - 1)
        return variance / points, floor

    def _recent_variance(self, vb: float, floor: float, m: int) -> float:
        """Variance of a block of level 0, raised where its latest ``m`` are noisier than usual."""
        latest = self.recent[-m:]
        ratio = sum(latest) / (len(latest) * self.ad)
        if ratio <= 1.0:
            return floor if floor > vb else vb
        raised = floor * ratio * ratio
        noise = vb * (ratio / 1.1) ** 2 if ratio > 1.1 else vb
        return raised if raised > noise else noise

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
        self._weigh_noise(self.top)
        for q in range(self.top + 1):
            self._lay_line(q)


EDGE = 3
"""Where a line has its edge."""
COUNTS = (
    "S2_age", "ad_run", "block", "learned", "n", "p2_at", "p_at", "top",
)  # fmt: skip
NUMBERS = (
    "E", "S", "S2", "ad", "ar", "base", "before", "climb_sd", "expected", "f", "fast_a", "flatten",
    "floor_sd", "last", "limit", "median", "mf", "min_effect", "msd", "mse", "p", "p2", "quantum",
    "quiet_to", "scale", "sdf", "wsum",
)  # fmt: skip
