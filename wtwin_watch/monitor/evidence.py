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
from itertools import accumulate, islice
from typing import Any

from wtwin_watch.monitor.blocks import RING
from wtwin_watch.monitor.contrast import Contrast, Forecast, Window, compare, windows
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.scales import LEVELS, Level, long_run_variances

EARLY_BLOCK = 4
BLOCK = 8
SWITCH = 1024
"""After so many points blocks have `BLOCK` points instead of `EARLY_BLOCK`."""
FAST_AFTER = 64
"""So many points are waited for before a jump is looked for."""
POINT_MEMORY = 128
RECENT_MEMORY = 16
SETTLED = POINT_MEMORY + 1
UNCLIPPED = 16
TAIL_PRIOR = 500
TAIL_MEMORY = 2048
TAIL_STEADY = TAIL_MEMORY - TAIL_PRIOR
FADE = 1.0 - 1.0 / TAIL_MEMORY
CLIP = 4.0
RELEASE = 3
SD_OF_DIFFERENCE = 0.8862
"""sigma of a Gaussian ÷ the mean absolute difference of two: sqrt(pi) / 2."""
SD_OF_RECENT = SD_OF_DIFFERENCE / 0.9
SD_OF_MEAN_ABS = 1.2533
SQRT12 = math.sqrt(12.0)
ROUNDING = 1e-9
"""Block means that differ by less than so many ``ad`` are the same."""
FINEST = (12, 6, 4, 2, 1)
WINDOWS = [windows(FINEST, 0)] + [windows((12, 8, 6), q) for q in range(1, LEVELS)]
MID_WINDOW = 4
MID_INDEX = FINEST.index(MID_WINDOW)


class Evidence:
    """What is known of one loss: noise, blocks, and the evidence of its latest point.

    ``flatten``: c_kappa, how soon a forecast stops to follow its slope, 1 / unit of x.
    ``min_effect``: a rise below this share of the loss is none.
    """

    __slots__ = (
        "E", "S", "S1", "S1_age", "S2", "S2_age", "ad", "ad_clipped_at", "ad_run", "ar", "base", "before",
        "best", "block", "climb_from", "expected", "f", "fast_a", "flatten", "floor_sd", "jump_from", "last",
        "levels", "median", "mf", "mid", "min_effect", "msd", "mse", "n", "p", "p2", "p2_at", "p_at",
        "quantum", "recent", "sdf", "top", "values", "variances", "wsum",
    )  # fmt: skip

    def __init__(self, flatten: float, min_effect: float) -> None:
        self.flatten = flatten
        self.min_effect = min_effect
        self.levels = [Level() for _ in range(LEVELS)]
        self.variances = [0.0] * LEVELS
        """Long-run variance of a point, as each level sees it."""
        self.top = 0
        """The highest level that has received a block."""
        self.n = 0
        self.block = EARLY_BLOCK
        """Points in a block of level 0."""
        self.values: list[float] = []
        """The points of the block that isn't full yet."""
        self.last = math.nan
        self.ad = 0.0
        """Mean absolute difference of neighbours; ``sdf`` the same with a short memory."""
        self.ad_run = 0
        self.sdf = 0.0
        self.wsum = 0.0
        self.recent = array("d")
        """Mean absolute difference within each of the last blocks."""
        self.quantum = math.inf
        """The smallest difference seen, the step of a rounded log; sigma isn't below quantum / sqrt 12."""
        self.floor_sd = 0.0
        self.fast_a = 0.0
        self.p = 0.002
        """Share of points above 3 sigma, ``p2`` of those above 2.5 sigma of the mid path."""
        self.p_at = FAST_AFTER
        self.p2 = 0.02
        self.p2_at = 0
        self.ad_clipped_at = 0
        self.ar = 0.0
        """Mean absolute deviation from ``base``."""
        self.f = 1.0
        """Fourth root of how much larger long-run variance is than that of blocks."""
        self.jump_from = 3.0 * SD_OF_DIFFERENCE
        """Below so many ``ad`` no jump begins."""
        self.median = math.nan
        """Of the last block."""
        self.forget_blocks()

    def forget_blocks(self) -> None:
        """Begin a new trend: forget the blocks and all evidence, keep what is known of the noise."""
        for level in self.levels:
            level.blocks.clear()
        self.base = math.nan
        """Mean of the last two blocks, ``before`` that of the last."""
        self.before = math.nan
        self.expected = math.nan
        """The forecast at the last block, as far as there is one."""
        self.quiet()

    def quiet(self) -> None:
        """Forget evidence and what is half done, keep trend and noise."""
        self.flush()
        self.E = 0.0
        self.best: tuple[int, Window, Contrast] | None = None
        self.S = 0.0
        self.S1 = self.S2 = 0.0
        self.S1_age = self.S2_age = 0
        """Since so many points the CUSUM is above 0."""
        self.mid: Contrast | None = None
        self.mf = math.inf
        """The forecast of the mid path, a rise too small to matter included; infinite where there is none."""
        self.climb_from = math.inf
        """Below this no climb begins."""
        self.msd = 0.0
        self.mse = 0.0

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
            q, window, test = self.best
            best = [q, WINDOWS_BY_LENGTH[q].index(window), pack(test)]
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
            q, index, test = state["best"]
            evidence.best = (q, WINDOWS_BY_LENGTH[q][index], as_contrast(unpack(test)))
        levels = [Level.revive(level) for level in state["levels"]]
        evidence.levels[: len(levels)] = levels
        return evidence

    @property
    def sigma(self) -> float:
        """Sigma of a point for means of some tens of points: correlation counted in."""
        return math.sqrt(max(self.variances[:5]))

    @property
    def sd(self) -> float:
        """Sigma of a point by the differences of neighbours."""
        return max(SD_OF_DIFFERENCE * self.ad, self.floor_sd)

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

    def push(self, y: float) -> float:
        """Take one more point; return the evidence of the fast and the mid path.

        When `values` holds `block` points then, call `finish_block`.
        """
        self.n = n = self.n + 1
        self.values.append(y)
        d = y - self.last
        self.last = y
        if d < 0.0:
            d = -d
        ad = self.ad
        if n > SETTLED and self.quantum <= d <= CLIP * ad:
            sdf = self.sdf
            self.wsum += d
            self.sdf = sdf + (d - sdf) / RECENT_MEMORY
            self.ad = ad = ad + (d - ad) / POINT_MEMORY
        elif n > 1:
            self._learn_difference(d, n - 1)
            ad = self.ad
        d = y - self.base
        a = d if d >= 0.0 else -d
        ar = self.ar
        if a <= CLIP * ar and n > SETTLED:
            self.ar = ar + (a - ar) / POINT_MEMORY
        elif a >= 0.0:  # there is a base
            if n > UNCLIPPED and a > CLIP * ar > 0.0:
                a = CLIP * ar
            self.ar = ar + (a - ar) / (n if n < POINT_MEMORY else POINT_MEMORY)
        # Most points neither begin nor go on with a climb; these are told from the others cheaply.
        if d <= self.jump_from * ad and y <= self.climb_from and not (self.S or self.S1 or self.S2):
            return 0.0
        return self.judge(y) if n > FAST_AFTER else 0.0

    def _learn_difference(self, d: float, count: int) -> None:
        """Learn the noise of neighbouring points from the ``count``-th difference."""
        ad, sdf = self.ad, self.sdf
        used = d
        if d > CLIP * ad and count >= UNCLIPPED:
            used = CLIP * ad
            self.wsum += used
            sdf += (used - sdf) / RECENT_MEMORY
            self.ad_run = run = self.ad_run + 1 if self.ad_clipped_at == count else 1
            self.ad_clipped_at = count + 1
            if run > RELEASE:
                used = d
        else:
            self.wsum += d
            sdf += (d - sdf) / (count if count < RECENT_MEMORY else RECENT_MEMORY)
        self.ad = ad + (used - ad) / (count if count < POINT_MEMORY else POINT_MEMORY)
        self.sdf = sdf
        if 0.0 < d < self.quantum:
            self.quantum = d
            self.floor_sd = d / SQRT12

    def judge(self, y: float) -> float:
        """Return the evidence of the fast and the mid path at ``y``."""
        sd = SD_OF_DIFFERENCE * self.ad
        recent = SD_OF_RECENT * self.sdf
        sd = max(sd, recent)
        sd = max(sd, self.floor_sd)
        scale = SD_OF_MEAN_ABS * self.ar
        scale = max(scale, sd)
        if not scale > 0.0:
            return 0.0
        z = (y - self.base) / (self.f * scale)
        evidence = self.S
        if z > 3.0:
            n = self.n
            p = self.p * fading(self.p_at, n - 1)
            inc = (z if z < 8.0 else 8.0) - 3.0
            # A tail that reaches 3 sigma often is worth little when it does.
            rare = -math.log(p)
            self.S = evidence = evidence + (inc if inc < rare else rare)
            self.p = p + (1.0 - p) / (TAIL_MEMORY if n >= TAIL_STEADY else TAIL_PRIOR + n)
            self.p_at = n
        elif evidence:
            evidence += z - 3.0
            evidence = max(evidence, 0.0)
            self.S = evidence
        # S1 is for slow climbs of 1 sigma, S2 for steep ones of 2: 2 k S is the log-likelihood ratio of 2 k.
        sd = max(sd, self.msd)
        z = (y - self.mf) / sd
        mse = self.mse
        capped = z if z < 3.0 else 3.0
        s = self.S1 + capped - 0.5 - mse
        if s > 0.0:
            self.S1 = s
            self.S1_age += 1
            evidence = max(evidence, s - 1.0)
        else:
            self.S1 = 0.0
            self.S1_age = 0
        if z > 1.0:
            n = self.n
            p2 = self.p2 * FADE ** (n - 1 - self.p2_at)
            if z >= 2.5:
                self.p2 = p2 * FADE + 1.0 / TAIL_MEMORY
                self.p2_at = n
            rare = 1.0 - 0.5 * math.log(p2)
            capped = min(capped, rare)
        s = self.S2 + capped - 1.0 - mse
        if s > 0.0:
            self.S2 = s
            self.S2_age += 1
            evidence = max(evidence, 2.0 * s - 1.0)
        else:
            self.S2 = 0.0
            self.S2_age = 0
        return evidence

    def climb(self, evidence: float) -> tuple[int, float]:
        """Return since how many points the mid path's CUSUM of this evidence climbs, and its mean z."""
        if evidence <= 2.0 * self.S2 - 1.0:
            return self.S2_age, self.S2 / self.S2_age + 1.0 + self.mse
        age = max(1, self.S1_age)
        return age, self.S1 / age + 0.5 + self.mse

    def finish_block(self, x: float, newest: float) -> None:
        """Take the block whose points are all there: ``x`` their mean x, ``newest`` that of the last one."""
        values = sorted(self.values)
        half = len(values) // 2
        self.median = median = 0.5 * (values[half - 1] + values[half])
        width = 3.0 * self.sd
        low, high = median - width, median + width
        if values[0] < low or values[-1] > high:
            values = [low if v < low else high if v > high else v for v in values]
        y = sum(values) / len(values)
        # The first point has no difference.
        self.recent.append(self.wsum / (len(values) - (self.n == len(values))))
        if len(self.recent) > 16:
            del self.recent[0]
        self.values.clear()
        self.wsum = 0.0
        self.base = y if self.before != self.before else 0.5 * (y + self.before)
        self.before = y
        top = self.cascade(x, y)
        # The level above may be tested too, and a test looks four levels up.
        self.weigh_noise(top + 5, self.floor_sd**2)
        self._test(top, newest)
        if self.n >= SWITCH and self.block == EARLY_BLOCK:
            self._coarsen()

    def cascade(self, x: float, y: float) -> int:
        """Hand the block up as far as halves meet; return the highest level that received one."""
        levels = self.levels
        noise = 0.0
        least = ROUNDING * self.ad
        for q, level in enumerate(levels):
            level.blocks.push(x, y)
            if q:
                level.learn(q, noise, 0.0, least)
            else:
                self.fast_a = level.learn(0, 0.0, self.fast_a, least)
                noise = max(level.a, self.fast_a)
            half = level.half
            if half is None or q == LEVELS - 1:
                level.half = (x, y)
                break
            x = 0.5 * (x + half[0])
            y = 0.5 * (y + half[1])
            level.half = None
        self.top = max(self.top, q)
        return q

    def weigh_noise(self, top: int, floor: float) -> None:
        """Estimate the long-run variance of a point, by the levels up to ``top``; at least ``floor``."""
        levels = self.levels
        noise = max(levels[0].a, self.fast_a)
        self.variances = v = long_run_variances(levels, top, noise, self.block, floor)
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
        _, _, _, _, _, _, n, sxx, _ = mid
        forecast = as_forecast(mid, self.flatten)
        self.expected = f = forecast.at(newest)
        self.mf = f + self.min_effect * abs(f)
        self.climb_from = self.mf + 0.5 * self.msd
        self.mse = math.sqrt((1.0 / n + forecast.reach(newest) ** 2 / sxx) / self.block)
        if not self.p2_at:
            self.p2_at = self.n

    def _test_level(self, q: int, half: tuple[float, float] | None) -> None:
        level = self.levels[q]
        if level.blocks.size < SMALLEST:
            return
        v = self.variances[q]
        if not v > 0.0:
            return
        look = 4 if self.block == EARLY_BLOCK else 3
        worst = max(self.variances[q : q + look + 1])
        c = level.c
        variance = (
            worst * math.sqrt(worst / v) * (1.0 + 4.0 / (64 if c > 64 else c if c > 1 else 1))
        )
        if level.blocks.count < 10 * RING and self.levels[min(q + look - 1, LEVELS - 1)].c == 0:
            # No coarser level confirms this one yet.
            if c < 16:
                return
            variance *= self._provisional(q, v, look - 1)
        points = self.block << q
        vb = variance / points
        floor = SD_OF_DIFFERENCE / 1.1 * (self.sdf if q and self.sdf > self.ad else self.ad)
        floor *= floor / points
        noises: Sequence[float]
        if q:
            vb = max(vb, floor)
            noises = (vb, vb, vb)
        else:
            noises = self._recent_variances(vb, floor)
        self.E, found, mid = compare(
            level.blocks, WINDOWS[q][half is not None], half, noises, self.flatten, self.min_effect, self.E,
            0 if q else MID_WINDOW,
        )  # fmt: skip
        if found is not None:
            self.best = (q, *found)
        if mid is not None:
            self.mid = mid
            self.msd = math.sqrt(noises[MID_INDEX] * self.block)

    def _recent_variances(self, vb: float, floor: float) -> list[float]:
        """Variance of a block of level 0, raised for windows whose points are noisier than usual."""
        ad = self.ad
        usual = floor if floor > vb else vb
        noises = []
        sums = list(accumulate(self.recent[: -FINEST[0] - 1 : -1]))
        known = len(sums)
        for m in FINEST:
            so = sums[m - 1] / m if m <= known else sums[-1] / known
            if so <= ad or not ad > 0.0:
                noises.append(usual)
                continue
            ratio = so / ad
            raised = floor * ratio * ratio
            noise = vb * (ratio / 1.1) ** 2 if ratio > 1.1 else vb
            noises.append(raised if raised > noise else noise)
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


def fading(since: int, until: int) -> float:
    """Return what is left at ``until`` of a share of points known at ``since``, if it had none since."""
    a, b = min(since, TAIL_STEADY - 1), min(until, TAIL_STEADY - 1)
    steady = max(until, TAIL_STEADY - 1) - max(since, TAIL_STEADY - 1)
    return (TAIL_PRIOR + a) / (TAIL_PRIOR + b) * FADE**steady


COUNTS = (
    "S1_age", "S2_age", "ad_clipped_at", "ad_run", "block", "n", "p2_at", "p_at", "top",
)  # fmt: skip
NUMBERS = (
    "E", "S", "S1", "S2", "ad", "ar", "base", "before", "climb_from", "expected", "f", "fast_a", "flatten",
    "floor_sd", "jump_from", "last", "median", "mf", "min_effect", "msd", "mse", "p", "p2", "quantum",
    "sdf", "wsum",
)  # fmt: skip
WINDOWS_BY_LENGTH = [plain + halved for plain, halved in WINDOWS]
SMALLEST = 11
"""Ten blocks of reference and one to test."""


def as_forecast(found: Contrast, flatten: float) -> Forecast:
    """Return the forecast a test compared with."""
    _, x, y, slope, edge, middle, _, _, _ = found
    return Forecast(x, y, slope, edge, middle, flatten)


def as_contrast(numbers: Sequence[float]) -> Contrast:
    """Return the test whose numbers these are."""
    z, x, y, slope, edge, middle, n, sxx, excess = numbers
    return z, x, y, slope, edge, middle, int(n), sxx, excess
