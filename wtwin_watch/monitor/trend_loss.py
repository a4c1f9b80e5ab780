"""The trend detector as it watches the loss of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from wtwin_watch.model import Detection, Family, Severity
from wtwin_watch.monitor.options import TrendOptions
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.rises import Rises
from wtwin_watch.monitor.trend import TrendMonitor
from wtwin_watch.monitor.words import finite
from wtwin_watch.monitor.wtwin import WTwinState

STAGNATION = "stagnation"
FIRST_CHECK = 1000
CHECK_EVERY = 1.02
"""Whether the loss still falls is asked each time the run has grown by 2 %."""
MOST_STRENGTH = 40.0
"""More evidence than this is as good as certainty: chance brings it once in 10^17 points."""
FALLEN = 0.5
"""A forecast so many sigma below that of the stagnation shows that the loss falls again."""


class TrendLoss:
    """Follows a `TrendMonitor`. The first finite point waits for the second, which knows the learning rate.

    The monitor takes its clock from its first point, and a row may name the loss before the learning rate.
    """

    def __init__(self, options: TrendOptions, history_limit: int | None = 0) -> None:
        self.monitor = options.monitor(history_limit)
        self._rises = Rises("Loss")
        self._first: tuple[float, float] | None = None
        self._waited = False
        self._expected = math.nan
        self._points = 0
        self._next_check = FIRST_CHECK
        self._stalled_at = math.nan
        """The forecast when the loss was found to have stopped falling, NaN while it falls."""

    def update(self, step: float, value: float, lr: float | None) -> list[tuple[str, Detection]]:
        """Judge a point; return what began, changed or ended with it, by signal."""
        if self._waited:
            return self._judge(step, value, lr)
        if math.isfinite(value) and self._first is None:
            self._first = (step, value)
            return []
        return self._release(lr) + self._judge(step, value, lr)

    def _judge(self, step: float, value: float, lr: float | None) -> list[tuple[str, Detection]]:
        self._expected = self.monitor.update(step, value, lr).l_pred
        found = self._rises.follow(self.monitor, step, value)
        if found:
            strength = self.strength
            found = [(s, replace(d, strength=strength) if d.active else d) for s, d in found]
        self._points += 1
        if self._points >= self._next_check:
            self._next_check = int(self._points * CHECK_EVERY) + 1
            found += self._ask_for_progress(step, value)
        return found

    def _ask_for_progress(self, step: float, value: float) -> list[tuple[str, Detection]]:
        began = math.isnan(self._stalled_at)
        if began:
            if not self.monitor.stagnating:
                return []
            self._stalled_at = self._expected
            summary = (
                f"Loss {value:.4g} has stopped falling: it is flat over the latest fifth of the run, though"
                " it fell in the fifth before."
            )
        else:
            if not self._expected < self._stalled_at - FALLEN * self.monitor.sigma:
                return []
            self._stalled_at = math.nan
            summary = f"Loss {value:.4g} is falling again."
        found = Detection(
            family=Family.PROGRESS,
            kind=STAGNATION,
            active=began,
            severity=Severity.INFO,
            summary=summary,
            detector="trend",
            step=step,
            observed=finite(value),
            expected=finite(self._expected),
            sigma=finite(self.monitor.sigma),
        )
        return [(STAGNATION, found)]

    def accept(self, step: float, value: float) -> list[tuple[str, Detection]]:
        """Take the level of a rise as the new normal at the latest point; return what ends with that."""
        return self._rises.follow(self.monitor, step, value) if self.monitor.accept() else []

    def _release(self, lr: float | None) -> list[tuple[str, Detection]]:
        if self._first is None:
            return []
        first, self._first, self._waited = self._first, None, True
        return self._judge(*first, lr)

    def flush(self) -> list[tuple[str, Detection]]:
        """Judge a point that still waits: the log has ended."""
        return self._release(None)

    def rewind(self, step: float) -> None:
        """Let go of a waiting point from ``step`` on; the monitor itself sees by the steps that they fall."""
        if self._first is not None and self._first[0] >= step:
            self._first = None

    def expected(self, step: float) -> float:
        """Return the loss expected now; NaN while there is no forecast."""
        return self._expected

    @property
    def strength(self) -> float | None:
        """Evidence that the rise which is on is none of chance's, in nats; None while there is none."""
        evidence = self.monitor.rise_evidence
        return None if evidence is None else min(evidence, MOST_STRENGTH)

    @property
    def judged(self) -> list[WTwinState]:
        """The states kept of points that were judged."""
        return [state for state in self.monitor.history if state.Q > 0.0 or state.alert]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "monitor": self.monitor.snapshot(),
            "rises": self._rises.snapshot(),
            "first": pack(self._first or ()),
            "waited": self._waited,
            "expected": pack((self._expected, self._stalled_at)),
            "points": self._points,
            "next_check": self._next_check,
        }

    @classmethod
    def restore(cls, options: TrendOptions, snapshot: Mapping[str, Any]) -> TrendLoss:
        """Make the one that goes on where `snapshot` was taken."""
        loss = cls(options)
        loss.monitor = TrendMonitor.restore(snapshot["monitor"], asdict(options))
        loss._rises.recall(snapshot["rises"])
        first = unpack(snapshot["first"])
        loss._first = (first[0], first[1]) if first else None
        loss._waited = bool(snapshot["waited"])
        loss._expected, loss._stalled_at = unpack(snapshot["expected"])
        loss._points = int(snapshot["points"])
        loss._next_check = int(snapshot["next_check"])
        return loss
