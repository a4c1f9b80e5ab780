"""The beginning, the course and the end of a rise, as a trend monitor sees them."""

from __future__ import annotations

import math
from dataclasses import replace

from wtwin_watch.monitor.contrast import Forecast, as_forecast
from wtwin_watch.monitor.episode import (
    ACCEPTED,
    DRIFT,
    RECOVERED,
    SHORT,
    SPIKE,
    TRANSIENT,
    Change,
    Episode,
    Rise,
)
from wtwin_watch.monitor.evidence import Evidence
from wtwin_watch.monitor.ledger import Ledger
from wtwin_watch.monitor.pace import Pace
from wtwin_watch.monitor.points import FAST_AFTER
from wtwin_watch.monitor.wtwin import WTwinState

FINITE_AGAIN = 64
"""A run of so many finite points ends an alert about one that wasn't."""
REOPEN_WITHIN = 500
"""Points after its end within which a rise that comes back is the same episode."""
LEAST_EXCESS = 0.01
"""Sigma by which W stays above 0 while an alert lasts."""
JUMP_AGE = 4
"""Points from the onset of a jump to its alert, about."""


class Rising:
    """What a monitor holds of one run, and what it does with a rise.

    While one is open nothing is learned from the loss, and D - T is its smoothed excess in sigma.
    """

    _T: float
    """Threshold of D."""

    def __init__(self) -> None:
        self._pace: Pace
        self._evidence: Evidence
        self._calm_stride = math.nan
        """The next point can go the short way if it is so many steps on; NaN where it can't."""
        self._glides = False
        """Whether one with a learning rate can."""
        self._others = 0
        """Points that no evidence counts: those of alerts, and of runs before this one."""
        self._ledger = Ledger()
        self._rise: Rise | None = None
        self._closed: tuple[int, int, int] | None = None
        """The last rise that ended by itself: its number, when in points, and how many it had lasted."""
        self._nonfinite: Episode | None = None
        self._finite_run = 0
        self._frozen: Episode | None = None

    @property
    def _stored(self) -> int:
        """How many points there were."""
        return self._evidence.count + self._others

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
        self._glides = False
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
        self._closed = None  # a further rise is one of its own
        return True

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

    def drain(self) -> list[Change]:
        """Return what began, changed its kind or ended since this was last asked; at most the last 64."""
        return self._ledger.drain()

    @property
    def ready(self) -> bool:
        """Whether there are points enough to judge by."""
        return self._evidence.count > FAST_AFTER
