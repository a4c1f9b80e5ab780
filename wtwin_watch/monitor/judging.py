"""What a trend monitor makes of a point that may be anything: a clock that turns, NaN, a frozen value."""

from __future__ import annotations

import math

from wtwin_watch.monitor.contrast import Forecast
from wtwin_watch.monitor.episode import (
    DIVERGENCE,
    FROZEN,
    NONFINITE,
    RECOVERED,
    ROLLED_BACK,
    Episode,
)
from wtwin_watch.monitor.evidence import EARLY_BLOCK, Evidence
from wtwin_watch.monitor.pace import Course, Pace
from wtwin_watch.monitor.points import FAST_AFTER
from wtwin_watch.monitor.rising import FINITE_AGAIN, Rising
from wtwin_watch.monitor.wtwin import WTwinState

STEP_FLATTEN, LR_FLATTEN = 8.0, 3.0
STEP_EFFECT, LR_EFFECT = 5e-4, 2.5e-4
LARGEST, LOWEST = 1e100, -1e100
"""A loss beyond this is taken for this: its square still is a number."""
LARGEST_STEP = 1e15
EARLY = 256
"""The early-divergence rule looks at so many first points."""
EARLY_SHARE = 0.02
"""A rise below this share of the loss isn't an early divergence."""
SAME_AGAIN = 16
"""So many identical values in a row may be a frozen loss."""
SAME_PRIOR = 500
"""Points without a repetition that are taken for seen."""
new_state = tuple.__new__
"""Makes a state in half the time of its class's own way."""


class Judging(Rising):
    """Judges points one by one.

    ``limit``: evidence above this is an alert. ``min_effect``: as `TrendMonitor` has it.
    """

    def __init__(self, limit: float, min_effect: float | None) -> None:
        super().__init__()
        self._h = limit
        self._T = math.sqrt(2.0 * limit)
        self.min_effect = min_effect
        self._begin_run()

    def _begin_run(self) -> None:
        """Learn from nothing: this is the first run's loss, or another one's."""
        self._pace = Pace()
        self._evidence = Evidence(
            STEP_FLATTEN,
            STEP_EFFECT if self.min_effect is None else self.min_effect,
            self._h,
        )
        self._held = False
        self._value = math.nan
        self._same = 0
        self._repeats = 0
        self._step = math.nan
        """The latest step."""
        self._calm_stride = math.nan
        self._glides = False
        self._tail = self._weighed(0.0)
        """What states say by the evidence of the last block."""
        self._in_hold: list[float] = []
        """Points while the learning rate rises, until there are four."""
        self._differed = False
        self._first_median = math.nan
        self._lowest_median = math.nan
        self._too_high = 0

    def _judge(self, step: float, loss: float, lr: float | None) -> WTwinState:
        if not -LARGEST_STEP <= step <= LARGEST_STEP:
            return self._state(step, loss, math.nan, 0.0)
        y = loss
        if not -LARGEST <= loss <= LARGEST:
            if not math.isfinite(loss):
                return self._not_finite(step, loss)
            y = LARGEST if loss > 0.0 else -LARGEST
        if self._nonfinite is not None:
            self._count_finite(step)
        pace = self._pace
        if not pace.begun:
            self._choose_clock(lr)
        pace.points = self._stored
        course = pace.advance(step, lr)
        if course is not Course.ON:
            if course is Course.SKIP:
                return self._state(step, loss, math.nan, 0.0)
            self._turn(course, step, lr)
        if y == self._value:
            self._repeat(step, y)
        else:
            self._differ(step)
            self._value = y
        if self._rise is not None:
            return self._follow(self._rise, step, loss, y)
        if self._frozen is not None:
            self._pace.waiting.clear()
            return self._state(step, loss, self._evidence.expected, 0.0)
        return self._weigh(step, loss, y)

    def _weigh(self, step: float, loss: float, y: float) -> WTwinState:
        """Learn from a point that no alert stands in the way of, and say what evidence there is."""
        evidence = self._evidence
        if self._pace.holding:
            fast = self._hold(step, y)
        else:
            fast = evidence.push(y)
            if len(evidence.values) >= evidence.block:
                self._finish_block(step, y)
        found = evidence.E
        found = max(found, fast)
        if found > self._h and self._rise is None:
            self._alarm(step, y, found)
        t = self._T
        if self._rise is not None or self._nonfinite is not None:
            return self._state(step, loss, evidence.expected, math.sqrt(2.0 * found))
        if evidence.count <= FAST_AFTER:
            return WTwinState(step, loss, evidence.expected, 0.0, 0.0, t, 0.0, False)
        d = math.sqrt(2.0 * found)
        return new_state(WTwinState, (step, loss, evidence.expected, d, 1.0, t, d - t, False))

    def _weighed(self, found: float) -> tuple[float, float, float, float, float, bool]:
        """Return what a state says beyond its point, l_pred to alert, by evidence that is none."""
        d, t = math.sqrt(2.0 * found), self._T
        return self._evidence.expected, d, 1.0, t, d - t, False

    def _finish_block(self, step: float, y: float) -> None:
        evidence = self._evidence
        x, newest = self._pace.block_x(step, len(evidence.values))
        evidence.finish_block(x, newest)
        self._tail = self._weighed(evidence.E)
        if evidence.count <= EARLY:
            self._watch_beginning(step, y, evidence.median)

    def _watch_beginning(self, step: float, y: float, middle: float) -> None:
        """Two medians of four far above the lowest one: a run that diverges before it has a trend."""
        if self._first_median != self._first_median:
            self._first_median = self._lowest_median = middle
            return
        evidence = self._evidence
        low = self._lowest_median
        # A smoothed log wanders by many times the noise of its neighbours, but not far.
        noise = max(6.0 * evidence.sd, EARLY_SHARE * abs(low))
        limit = low + max(0.5 * (self._first_median - low), 0.0) + noise
        self._too_high = self._too_high + 1 if middle > limit else 0
        self._lowest_median = min(low, middle)
        if self._too_high > 1 and self._rise is None and evidence.sd > 0.0:
            age = 2 * EARLY_BLOCK
            x, onset = self._pace.back(age)
            forecast = Forecast(x, low, 0.0, x, x, 0.0)
            self._open(step, y, DIVERGENCE, forecast, middle - low, age, (x, onset), 1.0)

    # -- values that are wrong by themselves -------------------------------------------------------

    def _not_finite(self, step: float, loss: float) -> WTwinState:
        self._finite_run = 0
        if self._nonfinite is None:
            healthy = self._pace.last
            self._nonfinite = self._begin_plain(NONFINITE, step, step, healthy, loss, math.inf)
        return self._state(step, loss, self._evidence.expected, math.inf)

    def _count_finite(self, step: float) -> None:
        self._finite_run += 1
        if self._finite_run >= FINITE_AGAIN and self._nonfinite is not None:
            self._ledger.end(self._nonfinite, step, RECOVERED)
            self._nonfinite = None

    def _repeat(self, step: float, y: float) -> None:
        """The same value once more: fifteen times may mean that the loss is frozen."""
        self._same += 1
        self._repeats += 1
        if self._same < SAME_AGAIN - 1 or not self._differed or self._frozen is not None:
            return
        # A rounded log repeats itself often, most where its level lies in the middle of a step.
        evidence = self._evidence
        often = (self._repeats + 1) / (self._stored + SAME_PRIOR)
        sd = evidence.sd
        if sd > 0.0 and evidence.quantum < math.inf:
            often = max(often, math.erf(evidence.quantum / (2.0 * math.sqrt(2.0) * sd)))
        surprise = -self._same * math.log(often)
        by_design = y == 0.0 and abs(evidence.base) <= 10.0 * evidence.sd
        if surprise > self._h + 5.0 and not by_design:
            onset = self._pace.back(self._same)[1]
            score = math.sqrt(2.0 * surprise) - self._T
            self._frozen = self._begin_plain(
                FROZEN, step, onset, onset - self._pace.last_diff, y, score
            )

    def _begin_plain(
        self, kind: str, step: float, onset: float, healthy: float, y: float, score: float
    ) -> Episode:
        evidence = self._evidence
        return self._ledger.begin(
            kind, step, onset=onset, healthy=healthy, observed=y, expected=evidence.expected,
            excess=y - evidence.expected, sigma=evidence.sigma, score=score,
        )  # fmt: skip

    def _differ(self, step: float) -> None:
        self._differed = self._differed or not math.isnan(self._value)
        self._same = 0
        if self._frozen is not None:
            self._ledger.end(self._frozen, step, RECOVERED)
            self._frozen = None
            self._evidence.flush()

    # -- the course of the run ---------------------------------------------------------------------

    def _choose_clock(self, lr: float | None) -> None:
        evidence = self._evidence
        if lr is None or not 0.0 <= lr < math.inf:
            return
        evidence.flatten = LR_FLATTEN
        if self.min_effect is None:
            evidence.min_effect = LR_EFFECT

    def _turn(self, course: Course, step: float, lr: float | None) -> None:
        """A gap, or a step back."""
        pace, evidence = self._pace, self._evidence
        if self._rise is not None:
            self._rise.values.clear()
        if course is Course.GAP:
            evidence.flush()
            del pace.waiting[:-1]
            return
        # The run goes on from an earlier step: what came after it never was.
        pace.go_back(step)
        if self._rise is not None and step <= self._rise.episode.onset_step:
            self._close(step, self._value, ROLLED_BACK)
            pace.go_back(step)
        if self._rise is None:
            evidence.cut(pace.x())
            evidence.settle()
            if not evidence.knows_a_trend:
                self._begin_run()
                self._choose_clock(lr)
                self._pace.advance(step, lr)

    def _hold(self, step: float, y: float) -> float:
        """The learning rate rises: judge against the level before, and learn nothing."""
        pace, evidence = self._pace, self._evidence
        if not self._held:
            self._held = True
            self._in_hold.clear()
            evidence.quiet()
        pace.waiting.clear()
        self._in_hold.append(y)
        if len(self._in_hold) >= EARLY_BLOCK:
            middle = 0.5 * sum(sorted(self._in_hold)[1:3])
            self._in_hold.clear()
            if evidence.count <= EARLY:
                self._watch_beginning(step, y, middle)
        known = evidence.count > FAST_AFTER and not math.isnan(evidence.base)
        fast = evidence.judge(y) if known and self._rise is None else 0.0
        if pace.risen:
            pace.resume()
            evidence.forget_blocks()
            self._held = False
        return fast
