"""What single points tell of a loss: how noisy it is, and whether it jumps or climbs steeply.

- The fast path is a CUSUM of points above the mean of the last two blocks, for jumps.
- The mid path is two CUSUMs of points above the drift path's forecast, for steep ramps.
"""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math

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
UNUSUAL = -1.0
"""Said of a point that `Points.usual` doesn't take."""


class Points:
    """The noise of the points of one loss, and the evidence of its latest one."""

    __slots__ = (
        "S", "S1", "S1_age", "S2", "S2_age", "ad", "ad_clipped_at", "ad_run", "ar", "base", "climb_from", "f",
        "floor_sd", "jump_from", "last", "mf", "msd", "mse", "n", "p", "p2", "p2_at", "p_at", "quantum",
        "sdf", "values", "wsum",
    )  # fmt: skip

    def __init__(self) -> None:
        self.n = 0
        self.values: list[float] = []
        """The points of the block that isn't full yet."""
        self.last = math.nan
        self.ad = 0.0
        """Mean absolute difference of neighbours; ``sdf`` the same with a short memory."""
        self.ad_run = 0
        self.ad_clipped_at = 0
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
        self.jump_from = 3.0 * SD_OF_DIFFERENCE
        """Below so many ``ad`` no jump begins."""
        self.calm_down()

    def calm_down(self) -> None:
        """Forget the evidence of points and the mid path's forecast."""
        self.S = 0.0
        self.S1 = self.S2 = 0.0
        self.S1_age = self.S2_age = 0
        """Since so many points the CUSUM is above 0."""
        self.mf = math.inf
        """The forecast of the mid path, a rise too small to matter included; infinite where there is none."""
        self.climb_from = math.inf
        """Below this no climb begins."""
        self.msd = 0.0
        self.mse = 0.0

    @property
    def sd(self) -> float:
        """Sigma of a point by the differences of neighbours."""
        return max(SD_OF_DIFFERENCE * self.ad, self.floor_sd)

    def usual(self, y: float) -> float:
        """Take one more point if it's like most; return the evidence of both paths, else `UNUSUAL`.

        Like most is a point of a settled loss that differs from the last one, by no more than others do.
        """
        d = y - self.last
        if d < 0.0:
            d = -d
        ad = self.ad
        if not self.quantum <= d <= CLIP * ad or self.n < SETTLED:
            return UNUSUAL
        above = y - self.base
        a = above if above >= 0.0 else -above
        ar = self.ar
        if not a <= CLIP * ar:
            return UNUSUAL
        self.n += 1
        self.values.append(y)
        self.last = y
        self.wsum += d
        sdf = self.sdf
        self.sdf = sdf + (d - sdf) / RECENT_MEMORY
        self.ad = ad = ad + (d - ad) / POINT_MEMORY
        self.ar = ar + (a - ar) / POINT_MEMORY
        # Most points neither begin nor go on with a climb; these are told from the others cheaply.
        if (
            above <= self.jump_from * ad
            and y <= self.climb_from
            and not (self.S or self.S1 or self.S2)
        ):
            return 0.0
        return self.judge(y)

    def push(self, y: float) -> float:
        """Take one more point of any kind; return the evidence of both paths."""
        found = self.usual(y)
        if found != UNUSUAL:
            return found
        self.n = n = self.n + 1
        self.values.append(y)
        if n > 1:
            self._learn_difference(abs(y - self.last), n - 1)
        self.last = y
        a = abs(y - self.base)
        if a >= 0.0:  # there is a base
            ar = self.ar
            if n > UNCLIPPED and a > CLIP * ar > 0.0:
                a = CLIP * ar
            self.ar = ar + (a - ar) / (n if n < POINT_MEMORY else POINT_MEMORY)
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


def fading(since: int, until: int) -> float:
    """Return what is left at ``until`` of a share of points known at ``since``, if it had none since."""
    a, b = min(since, TAIL_STEADY - 1), min(until, TAIL_STEADY - 1)
    steady = max(until, TAIL_STEADY - 1) - max(since, TAIL_STEADY - 1)
    return (TAIL_PRIOR + a) / (TAIL_PRIOR + b) * FADE**steady
