"""What single points tell of a loss: how noisy it is, and whether it jumps or climbs steeply.

- The fast path is a CUSUM of points above the mean of the last two blocks, for jumps.
- The mid path is a CUSUM of points above the drift path's forecast, for steep ramps.
"""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
from itertools import repeat
from operator import mul, sub

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
SURELY = CLIP * (1.0 - 1.0 / POINT_MEMORY) ** 8
"""Below so many scales nothing in a block is clipped, even if the scale shrinks meanwhile."""
RELEASE = 3
SD_OF_DIFFERENCE = 0.8862
"""sigma of a Gaussian ÷ the mean absolute difference of two: sqrt(pi) / 2."""
SD_OF_RECENT = SD_OF_DIFFERENCE / 0.9
SD_OF_MEAN_ABS = 1.2533
SQRT12 = math.sqrt(12.0)
RECENT_WEIGHTS, WEIGHTS = (
    [(1.0 - 1.0 / memory) ** age / memory for age in range(7, -1, -1)]
    for memory in (RECENT_MEMORY, POINT_MEMORY)
)
RECENT_FADED, FADED = ((1.0 - 1.0 / memory) ** 8 for memory in (RECENT_MEMORY, POINT_MEMORY))
"""What `Points.learn` does to a full block of usual points, in one go."""


class Points:
    """The noise of the points of one loss, and the evidence of its latest one.

    Noise is learned when a block is full. Until then points are judged by what was known before it; only
    one that would be an alert is judged again by what the points since have taught.
    """

    __slots__ = (
        "S", "S2", "S2_age", "ad", "ad_run", "ar", "base", "climb_sd", "f", "floor_sd",
        "last", "learned", "limit", "mf", "msd", "mse", "n", "p", "p2", "p2_at", "p_at", "quantum",
        "quiet_to", "scale", "sdf", "start", "values", "wsum",
    )  # fmt: skip

    def __init__(self, limit: float) -> None:
        self.limit = limit
        """Evidence above this is an alert."""
        self.n = 0
        """Points before the block that isn't full yet."""
        self.values: list[float] = []
        """The points of the block that isn't full yet."""
        self.learned = 0
        """How many of them noise was learned from."""
        self.last = math.nan
        """The latest point that noise was learned from."""
        self.ad = 0.0
        """Mean absolute difference of neighbours; ``sdf`` the same with a short memory."""
        self.ad_run = 0
        """How many differences in a row were clipped."""
        self.sdf = 0.0
        self.wsum = 0.0
        """Sum of the absolute differences in the block that isn't full yet."""
        self.quantum = math.inf
        """The smallest difference seen, the step of a rounded log; sigma isn't below quantum / sqrt 12."""
        self.floor_sd = 0.0
        self.base = math.nan
        """Mean of the last two blocks."""
        self.ar = 0.0
        """Mean absolute deviation from ``base``."""
        self.p = 0.002
        """Share of points above 3 sigma, ``p2`` of those above 2.5 sigma of the mid path."""
        self.p_at = FAST_AFTER
        self.p2 = 0.02
        self.p2_at = 0
        self.f = 1.0
        """Fourth root of how much larger long-run variance is than that of blocks."""
        self.scale = 0.0
        """Sigma of a point for the fast path, ``climb_sd`` for the mid path."""
        self.calm_down()

    def calm_down(self) -> None:
        """Forget the evidence of points and the mid path's forecast."""
        self.S = 0.0
        self.S2 = 0.0
        self.S2_age = 0
        """Since so many points it is above 0."""
        self.mf = math.inf
        """The forecast of the mid path, a rise too small to matter included; infinite where there is none."""
        self.msd = 0.0
        self.mse = 0.0
        self.climb_sd = 0.0
        self.quiet_to = -math.inf
        """A point up to here neither begins nor goes on with a climb: it is no evidence."""
        self._mark()

    def _mark(self) -> None:
        """Note where the CUSUMs stand as a block begins."""
        self.start = (
            self.S, self.S2, self.S2_age, self.p, self.p_at, self.p2, self.p2_at,
        )  # fmt: skip

    @property
    def count(self) -> int:
        """How many points there were."""
        return self.n + len(self.values)

    @property
    def sd(self) -> float:
        """Sigma of a point by the differences of neighbours."""
        return max(SD_OF_DIFFERENCE * self.ad, self.floor_sd)

    def push(self, y: float) -> float:
        """Take one more point; return the evidence of both paths."""
        self.values.append(y)
        return 0.0 if y <= self.quiet_to or self.count <= FAST_AFTER else self.judge(y)

    def learn(self) -> None:
        """Learn the noise of neighbouring points from those of this block, as far as it isn't yet."""
        values = self.values
        if self.learned:
            values = values[self.learned :]
        if not values:
            return
        self.learned = len(self.values)
        base = self.base
        ds = list(map(abs, map(sub, values, (self.last, *values))))
        ad, ar = self.ad, self.ar
        self.last = values[-1]
        n = self.n + self.learned
        if len(ds) == 8 and n > SETTLED + 8 and min(ds) >= self.quantum:
            far = SURELY * ar
            usual = base - far <= min(values) and max(values) <= base + far
            if usual and max(ds) <= SURELY * ad:
                self.ad_run = 0
                self.wsum += sum(ds)
                self.sdf = self.sdf * RECENT_FADED + sum(map(mul, ds, RECENT_WEIGHTS))
                self.ad = ad * FADED + sum(map(mul, ds, WEIGHTS))
                away = map(abs, map(sub, values, repeat(base)))
                self.ar = ar * FADED + sum(map(mul, away, WEIGHTS))
                return
        for count, (y, d) in enumerate(zip(values, ds, strict=True), n - len(ds)):
            if count:
                self._learn_difference(d, count)
            self._learn_deviation(abs(y - base), count + 1)

    def _learn_difference(self, d: float, count: int) -> None:
        """Learn from the ``count``-th difference of neighbours."""
        ad, sdf = self.ad, self.sdf
        used = d
        if d > CLIP * ad and count >= UNCLIPPED:
            used = CLIP * ad
            self.wsum += used
            sdf += (used - sdf) / RECENT_MEMORY
            self.ad_run += 1
            if self.ad_run > RELEASE:
                used = d
        else:
            self.ad_run = 0
            self.wsum += d
            sdf += (d - sdf) / (count if count < RECENT_MEMORY else RECENT_MEMORY)
        self.ad = ad + (used - ad) / (count if count < POINT_MEMORY else POINT_MEMORY)
        self.sdf = sdf
        if 0.0 < d < self.quantum:
            self.quantum = d
            self.floor_sd = d / SQRT12

    def _learn_deviation(self, a: float, n: int) -> None:
        """Learn from the deviation of the ``n``-th point from the base, if there is one."""
        if not a >= 0.0:
            return
        ar = self.ar
        if n > UNCLIPPED and a > CLIP * ar > 0.0:
            a = CLIP * ar
        self.ar = ar + (a - ar) / (n if n < POINT_MEMORY else POINT_MEMORY)

    def set_scales(self) -> None:
        """Judge the points to come by the noise known now."""
        sd = max(SD_OF_DIFFERENCE * self.ad, SD_OF_RECENT * self.sdf, self.floor_sd)
        self.climb_sd = self.msd if self.msd > sd else sd
        spread = SD_OF_MEAN_ABS * self.ar
        self.scale = self.f * (spread if spread > sd else sd)

    def begin_block(self) -> None:
        """Let the next block begin: count the points of the last one, and judge by what it taught."""
        self.n += len(self.values)
        self.values.clear()
        self.learned = 0
        self.wsum = 0.0
        self.set_scales()
        self._set_quiet()
        self._mark()

    def _set_quiet(self) -> None:
        if self.S or self.S2 or not self.scale > 0.0:
            self.quiet_to = -math.inf
        else:
            jump = self.base + 3.0 * self.scale
            climb = self.mf + self.climb_sd
            self.quiet_to = jump if jump < climb else climb

    def judge(self, y: float) -> float:
        """Return the evidence of both paths at ``y``, the latest point."""
        if not self.scale > 0.0:
            return 0.0
        found = self._climb(y, self.n + len(self.values))
        if found > self.limit:
            found = self._judge_anew(found)
        if self.S or self.S2:
            self.quiet_to = -math.inf
        else:
            self._set_quiet()
        return found

    def _judge_anew(self, found: float) -> float:
        """Judge this block's points by what they have taught of the noise, if there is more of it."""
        self.learn()
        scale, climb_sd = self.scale, self.climb_sd
        self.set_scales()
        if self.scale <= scale and self.climb_sd <= climb_sd:
            self.scale, self.climb_sd = scale, climb_sd
            return found
        (
            self.S, self.S2, self.S2_age, self.p, self.p_at, self.p2, self.p2_at,
        ) = self.start  # fmt: skip
        for n, y in enumerate(self.values, self.n + 1):
            found = self._climb(y, n)
        return found

    def _climb(self, y: float, n: int) -> float:
        """Let the ``n``-th point move the CUSUMs; return their evidence."""
        z = (y - self.base) / self.scale
        evidence = self.S
        if z > 3.0:
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
        if not self.climb_sd > 0.0:
            return evidence
        # 2 S2 is the log-likelihood ratio of a shift of 2 sigma.
        z = (y - self.mf) / self.climb_sd
        capped = z if z < 3.0 else 3.0
        if z > 1.0:
            p2 = self.p2 * FADE ** (n - 1 - self.p2_at)
            if z >= 2.5:
                self.p2 = p2 * FADE + 1.0 / TAIL_MEMORY
                self.p2_at = n
            rare = 1.0 - 0.5 * math.log(p2)
            capped = min(capped, rare)
        elif not self.S2:
            return evidence
        s = self.S2 + capped - 1.0 - self.mse
        if s > 0.0:
            self.S2 = s
            self.S2_age += 1
            evidence = max(evidence, 2.0 * s - 1.0)
        else:
            self.S2 = 0.0
            self.S2_age = 0
        return evidence

    def climb(self) -> tuple[int, float]:
        """Return since how many points the mid path's CUSUM climbs, and their mean z."""
        age = max(1, self.S2_age)
        return age, self.S2 / age + 1.0 + self.mse


def fading(since: int, until: int) -> float:
    """Return what is left at ``until`` of a share of points known at ``since``, if it had none since."""
    a, b = min(since, TAIL_STEADY - 1), min(until, TAIL_STEADY - 1)
    steady = max(until, TAIL_STEADY - 1) - max(since, TAIL_STEADY - 1)
    return (TAIL_PRIOR + a) / (TAIL_PRIOR + b) * FADE**steady
