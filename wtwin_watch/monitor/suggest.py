"""What kind of failure the first alert looks like, and what a person might look at first.

Experimental and advisory: the rules were drawn from synthetic failures. Nothing is ever changed in a
training run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from wtwin_watch.monitor.wtwin import WTwinMonitor, WTwinState

FailureType = Literal["abrupt_spike", "gradual_drift", "uncertain"]
Advice = Literal["consider_rollback", "consider_lr_reduction", "manual_review"]

LEVEL_WINDOW = 30
"""Observations before the rise whose median is the level it rose from."""
SLOPE_WINDOW = 80
"""Observations before the rise in which a drift shows as a slope."""
ENOUGH_BEFORE = 5
ABRUPT_FROM = 5.0
"""A rise of so many sigma within one alert's observations is abrupt; drifts of the benchmark reach 3."""
SURE_FACTOR = 10.0
SLOPE_ERRORS = 4.0
"""A slope counts from so many standard errors on."""
SURE_SLOPE = 0.12
CONFIDENCE = (0.5, 0.95)

WARNING = (
    "EXPERIMENTAL and advisory: rules drawn from synthetic failures only, not validated on real"
    " labelled failures."
)
REASONING: dict[FailureType, str] = {
    "abrupt_spike": (
        "D(t) shows a sharp, sudden jump typical of abrupt failures (hardware fault, bad batch, weight"
        " corruption). Rolling back to the last good checkpoint may recover training."
    ),
    "gradual_drift": (
        "D(t) shows a sustained positive slope — training is gradually deviating from the expected"
        " trajectory. This may indicate label noise, data pipeline drift, or an LR schedule issue."
        " Reducing LR by 50% is a conservative first step."
    ),
    "uncertain": (
        "The deviation pattern is ambiguous — neither a clear spike nor a sustained drift. Inspect data"
        " quality, hardware telemetry, gradient norms, and LR schedule before taking action."
    ),
}
ADVICE: dict[FailureType, Advice] = {
    "abrupt_spike": "consider_rollback",
    "gradual_drift": "consider_lr_reduction",
    "uncertain": "manual_review",
}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What a failure looks like. ``action`` is ``manual_review`` after any alert: a person decides.

    ``d_slope`` is the slope of D before the rise, in sigma an observation; ``d_spike`` the largest
    absolute D of the ten observations from the alert on. ``w_at_alert`` is infinite for a non-finite loss.
    """

    alert: bool
    failure_type: FailureType | None
    confidence: float
    suggestion: Advice | None
    action: str
    reasoning: str
    w_at_alert: float | None = None
    first_alert_step: float | None = None
    d_slope: float | None = None
    d_spike: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as a dict that is valid JSON: numbers are rounded, and None where not finite."""
        return {
            "alert": self.alert,
            "failure_type": self.failure_type,
            "confidence": _rounded(self.confidence, 3),
            "suggestion": self.suggestion,
            "action": self.action,
            "reasoning": self.reasoning,
            "w_at_alert": _rounded(self.w_at_alert, 3),
            "first_alert_step": self.first_alert_step,
            "d_slope": _rounded(self.d_slope, 4),
            "d_spike": _rounded(self.d_spike, 3),
            "_warning": WARNING,
        }

    def __str__(self) -> str:
        if not self.alert:
            return f"No alert. {self.reasoning}"
        return "\n".join(
            [
                f"W-Twin alert at step {self.first_alert_step:.15g}",
                f"  Failure type : {self.failure_type} (confidence {self.confidence:.0%})",
                f"  Suggestion   : {self.suggestion}",
                f"  Action       : {self.action}",
                f"  Reasoning    : {self.reasoning}",
                f"  [{WARNING}]",
            ]
        )


def suggest(monitor: WTwinMonitor) -> Suggestion:
    """Say what the first alert of ``monitor`` looks like, from the states in its history.

    A rise of more than 5 sigma between the 30 observations before and those that made the alert is an
    abrupt spike. Otherwise a slope of D in the 80 observations before, of at least four standard errors
    of such a slope in unit noise, is a gradual drift; anything else is uncertain.
    """
    step = monitor.first_alert_step()
    if step is None:
        calm = "No alert detected. Training appears to be on track."
        reasoning = (
            calm if monitor.status == "judging" else f"Too early to judge: {monitor.status}."
        )
        return Suggestion(False, None, 1.0, None, "none", reasoning)
    history, index = monitor.history, monitor.first_alert_index
    if index is None:
        return _uncertain(
            "The history kept doesn't reach back to the alert. Inspect manually.", step
        )
    state = history[index]
    if not math.isfinite(state.l_obs):
        return Suggestion(
            True, "abrupt_spike", CONFIDENCE[1], ADVICE["abrupt_spike"], "manual_review",
            f"The loss is no longer a number ({state.l_obs}). Rolling back to the last good checkpoint"
            " may recover training.",
            state.W, step,
        )  # fmt: skip
    onset = _onset(history, index)
    before = _deviations(history[max(0, onset - SLOPE_WINDOW) : onset])
    rise = _deviations(history[onset : index + 1])
    spike = max(map(abs, _deviations(history[index : index + 10])))
    if len(before) < ENOUGH_BEFORE:
        return _uncertain(
            "Insufficient history for classification. Inspect manually.", step, state.W, spike
        )
    kind, confidence, slope = _classify(before, rise)
    return Suggestion(
        True, kind, confidence, ADVICE[kind], "manual_review", REASONING[kind],
        state.W, step, slope, spike,
    )  # fmt: skip


def _classify(before: Sequence[float], rise: Sequence[float]) -> tuple[FailureType, float, float]:
    slope = _slope(before)
    level = median(before[-LEVEL_WINDOW:])
    spread = 1.4826 * median(abs(d - level) for d in before[-LEVEL_WINDOW:])
    jump = (median(rise) - level) / max(1.0, spread)
    if jump > ABRUPT_FROM:
        return "abrupt_spike", _confident(math.log(jump, ABRUPT_FROM * SURE_FACTOR)), slope
    if slope > SLOPE_ERRORS * math.sqrt(12 / len(before) ** 3):
        return "gradual_drift", _confident(slope / SURE_SLOPE), slope
    return "uncertain", CONFIDENCE[0], slope


def _onset(history: Sequence[WTwinState], index: int) -> int:
    """Find where the run of W > 0 began that made the alert; non-finite losses don't break it."""
    onset = index
    for i in range(index, -1, -1):
        if math.isfinite(history[i].W):
            if history[i].W <= 0:
                break
            onset = i
    return onset


def _deviations(states: Sequence[WTwinState]) -> list[float]:
    return [state.D for state in states if math.isfinite(state.D)]


def _slope(values: Sequence[float]) -> float:
    """Least squares over the index: steps may repeat."""
    n = len(values)
    middle = (n - 1) / 2
    moment = math.fsum((i - middle) * value for i, value in enumerate(values))
    return moment / (n * (n * n - 1) / 12)


def _confident(raw: float) -> float:
    low, high = CONFIDENCE
    return min(max(raw, low), high)


def _uncertain(
    reasoning: str, step: float, w: float | None = None, spike: float | None = None
) -> Suggestion:
    return Suggestion(
        True, "uncertain", CONFIDENCE[0], "manual_review", "manual_review", reasoning,
        w, step, None, spike,
    )  # fmt: skip


def _rounded(value: float | None, digits: int) -> float | None:
    return round(value, digits) if value is not None and math.isfinite(value) else None
