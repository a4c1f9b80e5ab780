"""Evidence that a loss has risen above its own trend: per point for jumps, per block for drifts.

Evidence is a log-likelihood ratio, less what looking so often costs: a threshold of ln(far) - 1.5 gives
about one false alarm in ``far`` points. The evidence of a point is the largest of

- the drift path: `wtwin_watch.monitor.contrast` on blocks of 8 · 2^q points (4 · 2^q at first), at each
  scale that received a block, over several window lengths;
- the fast path: a CUSUM of points above the mean of the last two blocks, for jumps;
- the mid path: two CUSUMs above the drift path's forecast, for steep ramps.
"""

from __future__ import annotations

import math
from array import array
from itertools import accumulate, islice

from wtwin_watch.monitor.blocks import RING
from wtwin_watch.monitor.contrast import Contrast, Forecast, Window, test_windows, windows
from wtwin_watch.monitor.scales import LEVELS, Level, long_run_variances

EARLY_BLOCK = 4
BLOCK = 8
SWITCH = 1024
"""After so many points blocks have `BLOCK` points instead of `EARLY_BLOCK`."""
FAST_AFTER = 64
"""So many points are waited for before a jump is looked for."""
POINT_MEMORY = 128
RECENT_MEMORY = 16
UNCLIPPED = 16
CLIP = 4.0
RELEASE = 3
SD_OF_DIFFERENCE = 0.8862
"""sigma of a Gaussian ÷ the mean absolute difference of two: sqrt(pi) / 2."""
SD_OF_RECENT = SD_OF_DIFFERENCE / 0.9
SD_OF_MEAN_ABS = 1.2533
SQRT12 = math.sqrt(12.0)
FINEST = (1, 2, 4, 6, 12)
WINDOWS = [windows(FINEST, 0)] + [windows((6, 8, 12), q) for q in range(1, LEVELS)]
MID_WINDOW = 4
MID_INDEX = FINEST.index(MID_WINDOW)


class Evidence:
    """What is known of one loss: noise, blocks, and the evidence of its latest point.

    ``flatten``: c_kappa, how soon a forecast stops to follow its slope, 1 / unit of x.
    ``min_effect``: a rise below this share of the loss is none.
    """

    __slots__ = (
        "E", "S", "S1", "S1_age", "S2", "S2_age", "ad", "ad_run", "ar", "base", "before", "best", "block",
        "expected", "f", "fast_a", "flatten", "floor_sd", "last", "levels", "median", "mf", "mid", "min_effect", "msd", "mse", "n",
        "p", "p2", "quantum", "recent", "sdf", "top", "values", "wsum",
    )  # fmt: skip

    def __init__(self, flatten: float, min_effect: float) -> None:
        self.flatten = flatten
        self.min_effect = min_effect
        self.levels = [Level() for _ in range(LEVELS)]
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
        self.p2 = 0.02
        self.ar = 0.0
        """Mean absolute deviation from ``base``."""
        self.f = 1.0
        """Fourth root of how much larger long-run variance is than that of blocks."""
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
        self.mf = math.nan
        self.msd = 0.0
        self.mse = 0.0

    def flush(self) -> None:
        """Drop the block that isn't full and the halves that wait: no block straddles a gap."""
        self.values.clear()
        self.wsum = 0.0
        for level in self.levels[: self.top + 1]:
            level.half = None

    @property
    def sigma(self) -> float:
        """Sigma of a point for means of some tens of points: correlation counted in."""
        return math.sqrt(max(level.v for level in self.levels[:5]))

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
        n = self.n
        self.n = n + 1
        self.values.append(y)
        d = y - self.last
        self.last = y
        if d < 0.0:
            d = -d
        ad = self.ad
        if n > POINT_MEMORY and d <= CLIP * ad and d >= self.quantum:
            self.wsum += d
            sdf = self.sdf
            self.sdf = sdf + (d - sdf) / RECENT_MEMORY
            self.ad = ad + (d - ad) / POINT_MEMORY
            self.ad_run = 0
        elif n:
            self._learn_difference(d, n)
        base = self.base
        if base != base:  # noqa: PLR0124 - not known yet
            return 0.0
        n += 1
        a = y - base
        if a < 0.0:
            a = -a
        ar = self.ar
        if n > UNCLIPPED and a > CLIP * ar > 0.0:
            a = CLIP * ar
        self.ar = ar = ar + (a - ar) / (n if n < POINT_MEMORY else POINT_MEMORY)
        if n <= FAST_AFTER:
            return 0.0
        return self.judge(y)

    def _learn_difference(self, d: float, n: int) -> None:
        """Learn the noise of neighbouring points from the ``n``-th difference."""
        ad, sdf = self.ad, self.sdf
        used = d
        if d > CLIP * ad and n >= UNCLIPPED:
            used = CLIP * ad
            self.wsum += used
            sdf += (used - sdf) / RECENT_MEMORY
            self.ad_run = run = self.ad_run + 1
            if run > RELEASE:
                used = d
        else:
            self.ad_run = 0
            self.wsum += d
            sdf += (d - sdf) / (n if n < RECENT_MEMORY else RECENT_MEMORY)
        self.ad = ad + (used - ad) / (n if n < POINT_MEMORY else POINT_MEMORY)
        self.sdf = sdf
        if 0.0 < d < self.quantum:
            self.quantum = d
            self.floor_sd = d / SQRT12

    def judge(self, y: float) -> float:
        """Return the evidence of the fast and the mid path at ``y``; learn but how heavy the tails are."""
        sd = SD_OF_DIFFERENCE * self.ad
        recent = SD_OF_RECENT * self.sdf
        if recent > sd:
            sd = recent
        if self.floor_sd > sd:
            sd = self.floor_sd
        scale = SD_OF_MEAN_ABS * self.ar
        if sd > scale:
            scale = sd
        if not scale > 0.0:
            return 0.0
        z = (y - self.base) / (self.f * scale)
        p = self.p
        evidence = self.S
        if z > 3.0:
            inc = (z if z < 8.0 else 8.0) - 3.0
            # A tail that reaches 3 sigma often is worth little when it does.
            rare = -math.log(p)
            self.S = evidence = evidence + (inc if inc < rare else rare)
            self.p = p + (1.0 - p) / (2048 if self.n >= 1548 else 500 + self.n)
        else:
            if evidence:
                evidence += z - 3.0
                if evidence < 0.0:
                    evidence = 0.0
                self.S = evidence
            self.p = p - p / (2048 if self.n >= 1548 else 500 + self.n)
        mf = self.mf
        if mf != mf:  # noqa: PLR0124 - there is no forecast
            return evidence
        # S1 is for slow climbs of 1 sigma, S2 for steep ones of 2: 2 k S is the log-likelihood ratio of 2 k.
        if self.msd > sd:
            sd = self.msd
        z = (y - mf) / sd
        mse = self.mse
        p2 = self.p2
        self.p2 = p2 + ((1.0 if z >= 2.5 else 0.0) - p2) / 2048
        capped = z if z < 3.0 else 3.0
        s = self.S1 + capped - 0.5 - mse
        if s > 0.0:
            self.S1 = s
            self.S1_age += 1
            if s - 1.0 > evidence:
                evidence = s - 1.0
        else:
            self.S1 = 0.0
            self.S1_age = 0
        if z > 1.0:
            rare = 1.0 - 0.5 * math.log(p2)
            if rare < capped:
                capped = rare
        s = self.S2 + capped - 1.0 - mse
        if s > 0.0:
            self.S2 = s
            self.S2_age += 1
            if 2.0 * s - 1.0 > evidence:
                evidence = 2.0 * s - 1.0
        else:
            self.S2 = 0.0
            self.S2_age = 0
        return evidence

    def climb(self, evidence: float) -> tuple[int, float]:
        """Return since how many points the mid path's CUSUM of this evidence climbs, and its mean z."""
        if 2.0 * self.S2 - 1.0 >= evidence:
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
        top = self._cascade(x, y)
        # The level above may be tested too, and a test looks four levels up.
        self._weigh_noise(top + 5)
        self._test(top, newest)
        if self.n >= SWITCH and self.block == EARLY_BLOCK:
            self._coarsen()

    def _cascade(self, x: float, y: float) -> int:
        """Hand the block up as far as halves meet; return the highest level that received one."""
        levels = self.levels
        noise = 0.0
        for q, level in enumerate(levels):
            level.blocks.push(x, y)
            if q:
                level.learn(q, noise, 0.0)
            else:
                self.fast_a = level.learn(0, 0.0, self.fast_a)
                noise = max(level.a, self.fast_a)
            half = level.half
            if half is None or q == LEVELS - 1:
                level.half = (x, y)
                break
            x = 0.5 * (x + half[0])
            y = 0.5 * (y + half[1])
            level.half = None
        if q > self.top:
            self.top = q
        return q

    def _weigh_noise(self, top: int) -> None:
        levels = self.levels
        noise = max(levels[0].a, self.fast_a)
        long_run_variances(levels, top, noise, self.block, self.floor_sd**2)
        v = levels[0].v
        if v > 0.0:
            ratio = max(v, levels[1].v, levels[2].v, levels[3].v) / v
            self.f = math.sqrt(math.sqrt(ratio))

    def _test(self, top: int, newest: float) -> None:
        """Test every level that received a block, and the next one if a half block waits for it."""
        levels = self.levels
        self.E = 0.0
        self.best = None
        self.mid = None
        for q in range(top + 1):
            self._test_level(q, None)
        half = levels[top].half
        if half is not None and top + 1 < LEVELS:
            self._test_level(top + 1, half)
        mid = self.mid
        if mid is None:
            self.mf = math.nan
            self.expected = self.base
            return
        _, _, _, _, _, _, n, sxx, _ = mid
        forecast = as_forecast(mid, self.flatten)
        self.expected = f = forecast.at(newest)
        self.mf = f + self.min_effect * abs(f)
        self.mse = math.sqrt((1.0 / n + forecast.reach(newest) ** 2 / sxx) / self.block)

    def _test_level(self, q: int, half: tuple[float, float] | None) -> None:
        level = self.levels[q]
        blocks = level.blocks
        if blocks.size < SMALLEST:
            return
        variance = self._variance(q)
        if not variance > 0.0:
            return
        vb = variance / (self.block << q)
        if q:
            ad = self.ad
            floor = SD_OF_DIFFERENCE / 1.1 * (ad if ad > self.sdf else self.sdf)
            floor *= floor / (self.block << q)
            if floor > vb:
                vb = floor
        noises = (vb, vb, vb) if q else self._recent_variances(vb)
        tests = WINDOWS[q][half is not None]
        wanted = 0 if q else MID_WINDOW
        self.E, found, mid = test_windows(
            blocks, tests, half, noises, self.flatten, self.min_effect, self.E, wanted
        )
        if found is not None:
            self.best = (q, *found)
        if mid is not None:
            self.mid = mid
            self.msd = math.sqrt(noises[MID_INDEX] * self.block)

    def _recent_variances(self, vb: float) -> list[float]:
        """Variance of a block of level 0, raised for windows whose points are noisier than usual."""
        ad = self.ad
        recent = self.recent
        noises = []
        sums = list(accumulate(recent[: -FINEST[-1] - 1 : -1]))
        for m in FINEST:
            so = sums[m - 1] / m if m <= len(sums) else ad
            noise = vb
            if so > 1.1 * ad:
                noise *= (so / (1.1 * ad)) ** 2 if ad > 0.0 else 1.0
            elif so < ad:
                so = ad
            floor = SD_OF_DIFFERENCE / 1.1 * so
            floor *= floor / self.block
            noises.append(floor if floor > noise else noise)
        return noises

    def _variance(self, q: int) -> float:
        """Long-run variance of a point for tests at level ``q``, with allowance for not knowing it well.

        0 where the level is too young to be tested.
        """
        levels = self.levels
        level = levels[q]
        early = self.block == EARLY_BLOCK
        look = 4 if early else 3
        v = level.v
        if not v > 0.0:
            return 0.0
        worst = v
        for other in islice(levels, q + 1, q + 1 + look):
            if other.v > worst:
                worst = other.v
        c = level.c
        variance = (
            worst * math.sqrt(worst / v) * (1.0 + 4.0 / (64 if c > 64 else c if c > 1 else 1))
        )
        witness = levels[min(q + look - 1, LEVELS - 1)]
        if witness.c == 0 and level.blocks.count < 10 * RING:
            if c < 16:
                return 0.0
            variance *= self._provisional(q, look - 1)
        return variance

    def _provisional(self, q: int, coarser: int) -> float:
        """By how much to raise a variance that no coarser level confirms yet: 4, or less by first signs."""
        levels = self.levels
        v = worst = levels[q].v
        for level in islice(levels, q + 1, q + 1 + coarser):
            count = level.r2_count
            if count < 2:
                return 4.0
            u = levels[0].v * level.r2**2 * (1.0 + 2.0 / (count if count < 32 else 32))
            if u > worst:
                worst = u
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
        self.top -= 1
        self.block = BLOCK
        self.fast_a = levels[0].a
        pairs = self.recent[len(self.recent) % 2 :]
        self.recent = array(
            "d", [0.5 * (a + b) for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        )


SMALLEST = 11
"""Ten blocks of reference and one to test."""


def as_forecast(found: Contrast, flatten: float) -> Forecast:
    """Return the forecast a test compared with."""
    _, x, y, slope, edge, middle, _, _, _ = found
    return Forecast(x, y, slope, edge, middle, flatten)
