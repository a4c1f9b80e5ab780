"""The published method as it watches the loss of a run: what begins and what ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from wtwin_watch.model import Detection, Family, Severity
from wtwin_watch.monitor.options import ClassicOptions
from wtwin_watch.monitor.words import finite, step_text
from wtwin_watch.monitor.wtwin import WTwinMonitor, WTwinState

SIGNAL = "loss"


class ClassicLoss:
    """Follows a `WTwinMonitor`: a drift begins with its alert and ends with it."""

    def __init__(self, options: ClassicOptions, history_limit: int | None = 0) -> None:
        self.monitor = options.monitor(history_limit)
        self._drifting = False
        self._onset: float | None = None
        self._healthy: float | None = None

    def update(self, step: float, value: float, lr: float | None) -> list[tuple[str, Detection]]:
        """Judge a point; return what began or ended, by signal. ``lr`` has no part in this method."""
        state = self.monitor.update(step, value)
        if not math.isfinite(value):  # a NaN neither begins nor ends a drift
            return []
        if state.W > 0:
            if self._onset is None:
                self._onset = state.step
        elif not state.alert and not self._drifting:
            self._onset = None
            if self.monitor.ready:
                self._healthy = state.step
        if state.alert == self._drifting:
            return []
        self._drifting = state.alert
        found = self._detection(step, state)
        if not state.alert:
            self._onset, self._healthy = None, state.step
        return [(SIGNAL, found)]

    def accept(self, step: float, value: float) -> list[tuple[str, Detection]]:
        """Fit the forecast anew from here on, if there is a drift; return its end."""
        if not self._drifting:
            return []
        ended = Detection(
            family=Family.LOSS,
            kind="drift",
            active=False,
            severity=Severity.WARNING,
            summary=f"Loss {value:.4g} is taken as normal, and its forecast is fitted anew from here on.",
            detector="classic",
            step=step,
            onset_step=self._onset,
            last_healthy_step=self._healthy,
            observed=finite(value),
            expected=finite(self.monitor.forecast(step)),
            sigma=finite(self.monitor.sigma),
        )
        self.monitor.reset()
        self._drifting, self._onset, self._healthy = False, None, step
        return [(SIGNAL, ended)]

    def flush(self) -> list[tuple[str, Detection]]:
        """Nothing is held back here."""
        return []

    def rewind(self, step: float) -> None:
        """Take back observations from ``step`` on that still wait for the fit."""
        self.monitor.rewind(step)

    def expected(self, step: float) -> float:
        """Return the loss expected at ``step``; NaN while there is no forecast."""
        return self.monitor.forecast(step)

    @property
    def judged(self) -> list[WTwinState]:
        """The states kept of points that were judged."""
        return self.monitor.history

    def _detection(self, step: float, state: WTwinState) -> Detection:
        since = step_text(self._onset)
        if state.alert:
            summary = (
                f"Loss {state.l_obs:.4g} is {state.D:.3g} sigma above its forecast of"
                f" {state.l_pred:.4g}, and has been too high since step {since} (W = {state.W:.3g})."
            )
        else:
            summary = (
                f"Loss {state.l_obs:.4g} is within {state.T:.3g} sigma of its forecast of"
                f" {state.l_pred:.4g} again ({state.D:+.3g} sigma); it had been too high since step {since}."
            )
        return Detection(
            family=Family.LOSS,
            kind="drift",
            active=state.alert,
            severity=Severity.WARNING,
            summary=summary,
            detector="classic",
            step=step,
            onset_step=self._onset,
            last_healthy_step=self._healthy,
            observed=finite(state.l_obs),
            expected=finite(state.l_pred),
            sigma=finite(self.monitor.sigma),
            score=finite(state.W),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "monitor": self.monitor.snapshot(),
            "drifting": self._drifting,
            "onset": self._onset,
            "healthy": self._healthy,
        }

    @classmethod
    def restore(cls, options: ClassicOptions, snapshot: Mapping[str, Any]) -> ClassicLoss:
        """Make the one that goes on where `snapshot` was taken."""
        loss = cls(options)
        loss.monitor = WTwinMonitor.restore(snapshot["monitor"], asdict(options))
        loss._drifting = bool(snapshot["drifting"])
        loss._onset = snapshot["onset"]
        loss._healthy = snapshot["healthy"]
        return loss
