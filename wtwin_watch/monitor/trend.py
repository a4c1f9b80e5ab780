"""The trend monitor: says when a loss has left its own trend, at a false-alarm rate of your choice."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wtwin_watch.errors import SnapshotError
from wtwin_watch.monitor.backfill import LEAST, STRETCH, Attempt, Floats
from wtwin_watch.monitor.contrast import Forecast, as_forecast
from wtwin_watch.monitor.episode import (
    ACCEPTED,
    DIVERGENCE,
    DRIFT,
    FROZEN,
    NONFINITE,
    RECOVERED,
    ROLLED_BACK,
    SHORT,
    SPIKE,
    TRANSIENT,
    Change,
    Episode,
    Rise,
    plain,
    value,
)
from wtwin_watch.monitor.evidence import BLOCK, EARLY_BLOCK, Evidence
from wtwin_watch.monitor.far import parse_far, threshold
from wtwin_watch.monitor.ledger import Ledger
from wtwin_watch.monitor.pace import Course, Pace
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.points import FAST_AFTER
from wtwin_watch.monitor.stagnation import stagnates
from wtwin_watch.monitor.wtwin import WTwinState

SNAPSHOT_VERSION = 2
STEP_FLATTEN, LR_FLATTEN = 8.0, 3.0
STEP_EFFECT, LR_EFFECT = 5e-4, 2.5e-4
LARGEST, LOWEST = 1e100, -1e100
"""A loss beyond this is taken for this: its square still is a number."""
LARGEST_STEP = 1e15
FINITE_AGAIN = 64
"""A run of so many finite points ends an alert about one that wasn't."""
EARLY = 256
"""The early-divergence rule looks at so many first points."""
EARLY_SHARE = 0.02
"""A rise below this share of the loss isn't an early divergence."""
SAME_AGAIN = 16
"""So many identical values in a row may be a frozen loss."""
LONG_ROW = 8
"""Rows of so many repetitions are looked at one by one."""
SAME_PRIOR = 500
"""Points without a repetition that are taken for seen."""
REOPEN_WITHIN = 500
"""Points after its end within which a rise that comes back is the same episode."""
LEAST_EXCESS = 0.01
"""Sigma by which W stays above 0 while an alert lasts."""
JUMP_AGE = 4
"""Points from the onset of a jump to its alert, about."""


STATE_DTYPE = np.dtype(
    [(name, np.bool_ if name == "alert" else np.float64) for name in WTwinState._fields]
)
_new_state = tuple.__new__
"""Makes a state in half the time of its class's own way."""


class TrendMonitor:
    """Watches one loss for leaving its own trend: drifts, jumps, divergence, NaN and frozen values.

    The loss's course in log time is compared, on many scales at once, with a line through what came
    just before; the line may flatten at any time, never rise. Evidence E is a log-likelihood ratio less
    the price of looking often, in units of a noise that counts correlation in::

        D = sqrt(2 E)     T = sqrt(2 (ln far - 1.5))     W = Q (D - T)     alert: W > 0

    D reads as a deviation in sigma. ``Q`` is 0 for the first 64 points, 1 after. During an alert the
    forecast stays as it was before the rise, D - T is the smoothed excess in sigma, and nothing is learned.

    ``far``: mean points between false alarms, or a rate as `parse_far` reads it (``1% per run of 20000
    points``). ``min_effect``: rises below this share of the loss are ignored, by default 0.0005, and
    0.00025 in runs with a learning rate. ``history_limit``: keep so many last states; None keeps all, 0 none.

    A point costs some microseconds, and all memory but ``history`` is bounded. Raises `ValueError` for
    settings that can't be.
    """

    def __init__(
        self,
        far: float | str = 1e5,
        min_effect: float | None = None,
        history_limit: int | None = None,
    ) -> None:
        if min_effect is not None and not 0.0 <= min_effect < 1.0:
            raise ValueError(f"min_effect is {min_effect!r}, must be in [0, 1)")
        if history_limit is not None and history_limit < 0:
            raise ValueError(f"history_limit is {history_limit!r}, must be at least 0")
        self.far = parse_far(far)
        self.min_effect = min_effect
        self.history_limit = history_limit
        self._h = threshold(self.far)
        self._T = math.sqrt(2.0 * self._h)
        self.reset()

    def reset(self) -> None:
        """Begin anew: forget everything but the settings."""
        self._history: deque[WTwinState] | list[WTwinState] = (
            [] if self.history_limit is None else deque(maxlen=self.history_limit)
        )
        self._keeps = self.history_limit != 0
        self._others = 0
        """Points that no evidence counts: those of alerts, and of runs before this one."""
        self._first_alert: tuple[int, float] | None = None
        self._ledger = Ledger()
        self._rise: Rise | None = None
        self._nonfinite: Episode | None = None
        self._finite_run = 0
        self._frozen: Episode | None = None
        self._closed: tuple[int, int, int] | None = None
        """The last rise that ended by itself: its number, when in points, and how many it had lasted."""
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
        """The next point can go the short way if it is so many steps on; NaN where it can't."""
        self._glides = False
        """Whether one with a learning rate can."""
        self._tail = self._weighed(0.0)
        """What states say by the evidence of the last block."""
        self._in_hold: list[float] = []
        """Points while the learning rate rises, until there are four."""
        self._differed = False
        self._first_median = math.nan
        self._lowest_median = math.nan
        self._too_high = 0

    # -- a point -----------------------------------------------------------------------------------

    def update(self, step: float, loss: float, lr: float | None = None) -> WTwinState:
        """Judge one point, and learn from it.

        A step that falls means that the run went back to it; one that repeats is another look at the
        same place. ``lr``: the learning rate, if the run logs one from its first point on. A point whose
        step is no finite number is passed over.
        """
        # What goes its ordinary way is done here, at once; all else in `_rarely`.
        if not (
            loss.__class__ is float
            and loss != self._value
            and LOWEST <= loss <= LARGEST
            and (
                step - self._step == self._calm_stride
                if lr is None
                else self._glides and self._pace.glide(step, lr)
            )
        ):
            return self._keep(self._rarely(step, loss, lr))
        self._step = step
        self._value = loss
        evidence = self._evidence
        values = evidence.values
        values.append(loss)
        found = 0.0 if loss <= evidence.quiet_to else evidence.judge(loss)
        if len(values) >= evidence.block:
            self._finish_block(step, loss)
            if self._h < evidence.E:
                return self._keep(self._strike(step, loss, max(found, evidence.E)))
        if found <= evidence.E:
            tail = self._tail
        elif found > self._h:
            return self._keep(self._strike(step, loss, found))
        else:
            tail = self._weighed(found)
        state = _new_state(WTwinState, (step, loss) + tail)  # noqa: RUF005 - in half the time
        if self._keeps:
            self._history.append(state)
        return state

    def _weighed(self, found: float) -> tuple[float, float, float, float, float, bool]:
        """Return what a state says beyond its point, l_pred to alert, by evidence that is none."""
        d, t = math.sqrt(2.0 * found), self._T
        return self._evidence.expected, d, 1.0, t, d - t, False

    def _strike(self, step: float, loss: float, found: float) -> WTwinState:
        """Begin an alert at a point that went its ordinary way so far."""
        self._sync()
        self._alarm(step, loss, found)
        return self._state(step, loss, self._evidence.expected, math.sqrt(2.0 * found))

    def _keep(self, state: WTwinState) -> WTwinState:
        if state.alert and self._first_alert is None:
            self._first_alert = (self._stored - 1, state.step)
        if self._keeps:
            self._history.append(state)
        return state

    def _sync(self) -> None:
        """Let clock and count know of the points that went their ordinary way."""
        pace, evidence = self._pace, self._evidence
        if self._calm_stride == self._calm_stride:
            missing = len(evidence.values) - len(pace.waiting)
            pace.catch_up(self._step, missing)

    def _rarely(self, step: float, loss: float, lr: float | None) -> WTwinState:
        """Judge a point that may be anything."""
        self._sync()
        before = self._evidence.count
        if type(loss) is not float:
            loss = float(loss)
        if type(step) is not float and type(step) is not int:
            step = float(step)
        state = self._judge(step, loss, lr)
        evidence, pace = self._evidence, self._pace
        self._others += before + 1 - evidence.count
        self._step = pace.last
        self._tail = self._weighed(evidence.E)
        calm = (
            self._same == 0
            and self._differed
            and self.ready
            and not (pace.holding or self._rise or self._nonfinite or self._frozen)
        )
        self._calm_stride = pace.calm_stride if calm else math.nan
        self._glides = calm and pace.can_glide
        return state

    @property
    def _stored(self) -> int:
        """How many points there were."""
        return self._evidence.count + self._others

    def update_many(
        self, steps: ArrayLike, losses: ArrayLike, lrs: ArrayLike | None = None
    ) -> NDArray[np.void]:
        """Judge many points, as `update` does one after the other, in a fraction of the time.

        Returns an array with the fields of `WTwinState`. D and W agree with those of `update` to 1e-9,
        alerts, their kinds and onsets exactly but for ties. Raises `ValueError` for unequal lengths.
        """
        at = np.asarray(steps, dtype=np.float64)
        y = np.asarray(losses, dtype=np.float64)
        rates = None if lrs is None else np.asarray(lrs, dtype=np.float64)
        if at.ndim != 1 or at.shape != y.shape or (rates is not None and rates.shape != y.shape):
            raise ValueError("steps, losses and learning rates must be columns of the same length")
        out = np.empty(len(y), dtype=STATE_DTYPE)
        i, plain_until = 0, 0
        while i < len(y):
            took = 0
            if i >= plain_until and rates is None:
                took, wait = self._stretch(at[i:], y[i:], out[i:])
                plain_until = i + wait
            if not took:
                rate = None if rates is None else float(rates[i])
                out[i] = self.update(float(at[i]), float(y[i]), rate)
                took = 1
            i += took
        return out

    def _stretch(self, steps: Floats, losses: Floats, out: NDArray[np.void]) -> tuple[int, int]:
        """Take some next points at once, as far as they go their usual way.

        Returns how many were taken; and if none were, how many are to be taken one by one before it is
        worth trying again.
        """
        evidence, pace = self._evidence, self._pace
        if evidence.block != BLOCK or self._calm_stride != self._calm_stride:
            return 0, 4 * BLOCK
        if evidence.values:
            return 0, BLOCK - len(evidence.values)
        self._sync()
        room = min(len(losses), STRETCH) // BLOCK * BLOCK
        if room < LEAST:
            return 0, len(losses)
        steps, losses = steps[:room], losses[:room]
        differences = np.diff(losses, prepend=evidence.last)
        same = differences == 0.0
        usual = (
            (np.diff(steps, prepend=pace.last) == pace.calm_stride)
            & (np.abs(losses) <= LARGEST)
            & (np.abs(steps) <= LARGEST_STEP)
        )
        usual[LONG_ROW - 1 :] &= np.convolve(same, np.ones(LONG_ROW), "valid") < LONG_ROW
        # The last one must not repeat the one before: the count of repetitions begins anew after it.
        usable = np.flatnonzero(~same[BLOCK - 1 :: BLOCK])
        if not usual.all():
            usable = usable[usable < int(np.argmin(usual)) // BLOCK]
        if not len(usable):
            return 0, BLOCK
        room = (int(usable[-1]) + 1) * BLOCK
        while room >= LEAST:
            steps, losses = steps[:room], losses[:room]
            attempt = Attempt(evidence, losses, steps - pace.origin + pace.offset, self._h)
            stretch = attempt.run()
            if stretch is not None:
                break
            usable = usable[usable < min(attempt.usual_until, room - LEAST // 2) // BLOCK]
            room = (int(usable[-1]) + 1) * BLOCK if len(usable) else 0
        else:
            return 0, LEAST // 2
        self._repeats += int(same[:room].sum())
        self._tail = self._weighed(evidence.E)
        self._value = float(losses[-1])
        self._step = float(steps[-1])
        pace.last = float(steps[-1])
        d = np.sqrt(2.0 * stretch.evidence)
        rows = out[:room]
        rows["step"], rows["l_obs"], rows["l_pred"], rows["D"] = steps, losses, stretch.expected, d
        rows["Q"], rows["T"], rows["W"], rows["alert"] = 1.0, self._T, d - self._T, False
        if self._keeps:
            self._history.extend(map(WTwinState._make, rows.tolist()))
        return room, 0

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
        return _new_state(WTwinState, (step, loss, evidence.expected, d, 1.0, t, d - t, False))

    def _state(self, step: float, loss: float, expected: float, d: float) -> WTwinState:
        """Say what is known, the alerts that are open included."""
        t = self._T
        if self._rise is not None:
            d = max(d, t + max(self._rise.excess_sigma, LEAST_EXCESS))
        if self._frozen is not None:
            d = max(d, t + self._frozen.score)
        if self._nonfinite is not None:
            share = self._finite_run / FINITE_AGAIN
            d = max(d, t * (2.0 - share)) if math.isfinite(loss) else math.inf
        alert = d > t
        q = 1.0 if alert or self._evidence.count > FAST_AFTER else 0.0
        return WTwinState(step, loss, expected, d, q, t, d - t if q else 0.0, alert)

    def _finish_block(self, step: float, y: float) -> None:
        evidence = self._evidence
        x, newest = self._pace.block_x(step, len(evidence.values))
        evidence.finish_block(x, newest)
        self._tail = self._weighed(evidence.E)
        if evidence.count <= EARLY:
            self._watch_beginning(step, y, evidence.median)

    # -- the beginning and the end of a rise -------------------------------------------------------

    def _alarm(self, step: float, y: float, found: float) -> None:
        """Find out which test saw the rise, and what by it is its beginning."""
        evidence, pace = self._evidence, self._pace
        jump = False
        if evidence.best is not None and found <= evidence.E:
            q, m, line, excess, x = evidence.best
            forecast = as_forecast(line, evidence.flatten)
            age = m * evidence.block << q
            onset = pace.step_at(x)
        elif found <= evidence.S or evidence.mid is None:
            jump, age, excess = True, JUMP_AGE, y - evidence.base
            x, onset = pace.back(age)
            forecast = Forecast(x, evidence.base, 0.0, x, x, 0.0)
        else:
            age, mean = evidence.climb()
            excess = mean * evidence.climb_sd
            x, onset = pace.back(age)
            forecast = as_forecast(evidence.mid, evidence.flatten)
        kind = SPIKE if jump else DRIFT
        self._open(
            step, y, kind, forecast, excess, age, (x, onset), math.sqrt(2.0 * found) - self._T
        )

    def _open(
        self, step: float, y: float, kind: str, forecast: Forecast, excess: float, age: int,
        onset: tuple[float, float], score: float,
    ) -> None:  # fmt: skip
        evidence, pace = self._evidence, self._pace
        x = pace.x()
        sigma = max(evidence.sigma, evidence.sd)
        episode = self._reopened()
        if episode is not None:
            episode = self._ledger.reopen(
                replace(
                    episode, kind=kind, observed=y, expected=forecast.at(x), excess=excess, sigma=sigma,
                    score=score, ended_step=None, outcome=None, reopened=episode.reopened + 1,
                )
            )  # fmt: skip
        else:
            episode = self._ledger.begin(
                kind, step, onset=onset[1], healthy=onset[1] - pace.last_diff, observed=y,
                expected=forecast.at(x), excess=excess, sigma=sigma, score=score,
            )  # fmt: skip
        self._rise = Rise(episode, forecast, age, kind == SPIKE, x)
        self._calm_stride = math.nan
        evidence.cut(onset[0])
        pace.waiting.clear()

    def _reopened(self) -> Episode | None:
        """Return the episode that a rise now is part of, if its last part has ended just before."""
        if self._closed is None:
            return None
        number, at, lasted = self._closed
        if self._stored - at > max(REOPEN_WITHIN, lasted):
            return None
        return next((episode for episode in self._ledger.ended if episode.number == number), None)

    def _follow(self, rise: Rise, step: float, loss: float, y: float) -> WTwinState:
        """One more point of an alert."""
        if rise.step(y):
            outcome = rise.look(self._pace.block_x(step, len(self._pace.waiting))[0], self._stored)
            if outcome is None:
                kind = rise.kind()
                if kind != rise.episode.kind:
                    rise.episode = rise.now(kind, y, rise.excess_sigma)
                    self._ledger.change(rise.episode)
            else:
                self._close(step, y, outcome)
        return self._state(step, loss, rise.line, 0.0)

    def _close(self, step: float, y: float, outcome: str) -> None:
        rise = self._rise
        if rise is None:
            return
        self._rise = None
        kind = rise.episode.kind
        if outcome == RECOVERED:
            kind = SPIKE if rise.age <= SHORT else TRANSIENT
            self._closed = (rise.episode.number, self._stored, rise.lasted)
        self._ledger.end(rise.now(kind, y, 0.0), step, outcome)
        evidence = self._evidence
        self._pace.waiting.clear()
        evidence.quiet()
        if outcome == ACCEPTED:
            evidence.forget_blocks()
        elif outcome == RECOVERED:
            evidence.base = evidence.before = evidence.expected = rise.line

    def accept(self) -> bool:
        """Take the present level as the new normal; False where no rise is open.

        Learns the trend anew from here on; what is known of the noise stays.
        """
        rise = self._rise
        if rise is None:
            return False
        self._close(self._pace.last, rise.episode.observed, ACCEPTED)
        return True

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

    # -- what is known -----------------------------------------------------------------------------

    @property
    def episode(self) -> Episode | None:
        """The rise that is open, as it stands now."""
        rise = self._rise
        return (
            None
            if rise is None
            else rise.now(rise.episode.kind, rise.episode.observed, rise.excess_sigma)
        )

    @property
    def open_episodes(self) -> list[Episode]:
        """All alerts that are open: a rise, a loss that isn't finite, a frozen one."""
        return [e for e in (self.episode, self._nonfinite, self._frozen) if e is not None]

    @property
    def episodes(self) -> list[Episode]:
        """The latest alerts that have ended, and those that are open, by number."""
        return sorted(
            [*self._ledger.ended, *self.open_episodes], key=lambda episode: episode.number
        )

    @property
    def stagnating(self) -> bool:
        """Whether the loss has stopped falling, though it fell before. Information, not an alert.

        Looked up in the blocks when asked for; costs about as much as ten points.
        """
        evidence = self._evidence
        return stagnates(evidence.levels, evidence.count, evidence.block)

    def drain(self) -> list[Change]:
        """Return what began, changed its kind or ended since this was last asked; at most the last 64."""
        return self._ledger.drain()

    @property
    def ready(self) -> bool:
        """Whether there are points enough to judge by."""
        return self._evidence.count > FAST_AFTER

    @property
    def points_needed(self) -> int:
        """How many more points it takes until there are enough; 0 when there are."""
        return max(0, FAST_AFTER + 1 - self._evidence.count)

    @property
    def status(self) -> str:
        """What the monitor can say now: a sentence for a person."""
        if not self.ready:
            return f"still learning, needs {self.points_needed} more points"
        return "judging"

    @property
    def sigma(self) -> float:
        """Sigma of a point, correlation counted in, in the loss's unit; 0 before it is known."""
        return max(self._evidence.sigma, self._evidence.sd)

    @property
    def history(self) -> list[WTwinState]:
        """The states of all points, oldest first.

        The list itself where all are kept, a copy where ``history_limit`` caps it.
        """
        return self._history if isinstance(self._history, list) else list(self._history)

    @property
    def first_alert_index(self) -> int | None:
        """Where in `history` the first alert stands; None if there was none or it's no longer kept."""
        if self._first_alert is None:
            return None
        index = self._first_alert[0] - (self._stored - len(self._history))
        return index if index >= 0 else None

    def first_alert_step(self) -> float | None:
        """Return the step of the first alert, or None if there was none."""
        return None if self._first_alert is None else self._first_alert[1]

    # -- stored and brought back -------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return all of the state as a JSON-able dict, `history` left out.

        Some 25 KB in a long run. The monitor goes on exactly as the one that `restore` makes.
        """
        rise = self._rise
        return {
            "version": SNAPSHOT_VERSION,
            "settings": {name: getattr(self, name) for name in SETTINGS},
            "evidence": self._evidence.state(),
            "pace": self._pace.state(),
            "ledger": self._ledger.state(),
            "rise": None if rise is None else rise.state(),
            "open": [None if e is None else e.state() for e in map(self.__getattribute__, OPEN)],
            "first_alert": None if self._first_alert is None else list(self._first_alert),
            "closed": None if self._closed is None else list(self._closed),
            "in_hold": pack(self._in_hold),
            "plain": {name: plain(getattr(self, name)) for name in PLAIN},
        }

    @classmethod
    def restore(
        cls, snapshot: Mapping[str, Any], settings: Mapping[str, Any] | None = None
    ) -> TrendMonitor:
        """Make the monitor that goes on exactly where `snapshot` was taken, with an empty `history`.

        ``settings`` replace stored constructor arguments of the same name; what was learned stays.
        Raises `SnapshotError` for a form this version doesn't read.
        """
        if snapshot.get("version") != SNAPSHOT_VERSION:
            raise SnapshotError(
                f"a trend snapshot of version {snapshot.get('version')!r} can't be read;"
                f" this program reads version {SNAPSHOT_VERSION}"
            )
        try:
            monitor = cls(**{**snapshot["settings"], **(settings or {})})
            monitor._recall(snapshot)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SnapshotError(f"a trend snapshot is damaged: {error!r}") from error
        return monitor

    def _recall(self, snapshot: Mapping[str, Any]) -> None:
        self._evidence = Evidence.revive(snapshot["evidence"])
        self._pace = Pace.revive(snapshot["pace"])
        if self.min_effect is not None:
            self._evidence.min_effect = self.min_effect
        self._ledger = Ledger.revive(snapshot["ledger"])
        self._rise = None if snapshot["rise"] is None else Rise.revive(snapshot["rise"])
        for name, state in zip(OPEN, snapshot["open"], strict=True):
            setattr(self, name, None if state is None else Episode.revive(state))
        if snapshot["first_alert"] is not None:
            index, step = snapshot["first_alert"]
            self._first_alert = (int(index), step)
        if snapshot["closed"] is not None:
            number, at, lasted = snapshot["closed"]
            self._closed = (int(number), int(at), int(lasted))
        self._in_hold = unpack(snapshot["in_hold"])
        self._evidence.limit = self._h
        for name in PLAIN:
            setattr(self, name, value(snapshot["plain"][name]))
        self._tail = self._weighed(self._evidence.E)


SETTINGS = ("far", "min_effect", "history_limit")
OPEN = ("_nonfinite", "_frozen")
PLAIN = (
    "_others", "_finite_run", "_held", "_value", "_same", "_repeats", "_calm_stride", "_differed", "_step",
    "_glides", "_first_median", "_lowest_median", "_too_high",
)  # fmt: skip
