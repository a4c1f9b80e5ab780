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

from wtwin_watch.model import Detection
from wtwin_watch.monitor.confidence import confidence
from wtwin_watch.monitor.episode import Episode
from wtwin_watch.monitor.trend import TrendMonitor
from wtwin_watch.monitor.words import amount, step_text
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
SLOPE_ERRORS = 4.0
"""A slope counts from so many standard errors on."""
NEXT = 10
"""So many observations from the alert on show how far it goes."""

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
TYPES: dict[str, FailureType] = {
    "drift": "gradual_drift",
    "divergence": "gradual_drift",
    "spike": "abrupt_spike",
    "level_shift": "abrupt_spike",
    "nonfinite": "abrupt_spike",
}
"""What the kinds of the trend detector's alerts are; any other is uncertain."""
LOOKS: dict[str, str] = {
    "drift": (
        "The loss rises slowly against its own trend. This may be label noise, a drift in the data or a"
        " learning rate that is too high; reducing it by 50% is a conservative first step."
    ),
    "divergence": (
        "The loss rises ever faster. The learning rate is the first suspect; reducing it by 50%, from a"
        " checkpoint of the last healthy step, is a conservative first step."
    ),
    "spike": (
        "The loss jumped and came back by itself, or hasn't lasted yet: a bad batch, or a step too large. If"
        " it comes again, rolling back and skipping those batches may help."
    ),
    "level_shift": (
        "The loss jumped and stays up: a hardware fault, corrupted weights, or a change of the data. Rolling"
        " back to the last good checkpoint may recover training."
    ),
    "transient": "The loss rose for long, and came back by itself. Inspect what ran beside it.",
    "frozen": "The loss repeats one value exactly: the model no longer learns, or the log is stuck.",
    "nonfinite": (
        "The loss is no longer a number. Rolling back to the last good checkpoint may recover training."
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

    ``kind`` is what the detector calls it. ``confidence`` is the share of such suggestions that were right
    where the failure was known; None where that wasn't measured. ``excess`` is in the loss's unit, smoothed
    by the trend detector, ``excess_sigma`` in its noise. ``d_slope`` is the slope of D before the rise, in
    sigma an observation; ``d_spike`` the largest absolute D of the ten observations from the alert on.
    ``w_at_alert`` is infinite for a non-finite loss.
    """

    alert: bool
    failure_type: FailureType | None
    confidence: float | None
    suggestion: Advice | None
    action: str
    reasoning: str
    w_at_alert: float | None = None
    first_alert_step: float | None = None
    d_slope: float | None = None
    d_spike: float | None = None
    kind: str | None = None
    onset_step: float | None = None
    last_healthy_step: float | None = None
    excess: float | None = None
    excess_sigma: float | None = None

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
            "kind": self.kind,
            "onset_step": self.onset_step,
            "last_healthy_step": self.last_healthy_step,
            "excess": _rounded(self.excess, 6),
            "excess_sigma": _rounded(self.excess_sigma, 3),
            "_warning": WARNING,
        }

    def __str__(self) -> str:
        if not self.alert:
            return f"No alert. {self.reasoning}"
        sure = "not measured" if self.confidence is None else f"{self.confidence:.0%}"
        return "\n".join(
            [
                f"W-Twin alert at step {step_text(self.first_alert_step)}",
                f"  Failure type : {self.failure_type} (confidence {sure}){self._kind}",
                f"  Suggestion   : {self.suggestion}",
                f"  Action       : {self.action}",
                f"  Reasoning    : {self.reasoning}",
                f"  [{WARNING}]",
            ]
        )

    @property
    def _kind(self) -> str:
        if self.kind is None:
            return ""
        parts = [f": {self.kind}"]
        if self.excess is not None and math.isfinite(self.excess):
            above = self.excess_sigma or math.nan
            parts.append(f"{amount(self.excess, self.excess / above)} above the forecast")
        if self.onset_step is not None:
            parts.append(f"since step {step_text(self.onset_step)}")
        if self.last_healthy_step is not None:
            parts.append(f"last healthy step {step_text(self.last_healthy_step)}")
        return ", ".join(parts)


def suggest(monitor: WTwinMonitor | TrendMonitor) -> Suggestion:
    """Say what the first alert of ``monitor`` looks like.

    The trend detector decides by the kind it gave the alert in the end: a drift or a divergence is gradual,
    a spike, a level shift and a loss that is no number are abrupt, anything else is uncertain.

    The published method is asked by the states in its history. A rise of more than 5 sigma between the 30
    observations before and those that made the alert is an abrupt spike. Otherwise a slope of D in the 80
    observations before, of at least four standard errors of such a slope in unit noise, is a gradual
    drift; anything else is uncertain.
    """
    step = monitor.first_alert_step()
    if step is None:
        calm = "No alert detected. Training appears to be on track."
        reasoning = (
            calm if monitor.status == "judging" else f"Too early to judge: {monitor.status}."
        )
        return Suggestion(False, None, 1.0, None, "none", reasoning)
    if isinstance(monitor, TrendMonitor):
        return _by_kind(monitor, step)
    history, index = monitor.history, monitor.first_alert_index
    if index is None:
        return _uncertain(
            "The history kept doesn't reach back to the alert. Inspect manually.", step
        )
    state = history[index]
    if not math.isfinite(state.l_obs):
        return Suggestion(
            True, "abrupt_spike", confidence("classic", "nonfinite", None), ADVICE["abrupt_spike"],
            "manual_review",
            f"The loss is no longer a number ({state.l_obs}). Rolling back to the last good checkpoint"
            " may recover training.",
            state.W, step, kind="nonfinite", onset_step=step, last_healthy_step=_before(history, index),
        )  # fmt: skip
    onset = _onset(history, index)
    before = _deviations(history[max(0, onset - SLOPE_WINDOW) : onset])
    rise = _deviations(history[onset : index + 1])
    spike = max(map(abs, _deviations(history[index : index + NEXT])))
    if len(before) < ENOUGH_BEFORE:
        return _uncertain(
            "Insufficient history for classification. Inspect manually.", step, state.W, spike
        )
    kind, slope = _classify(before, rise)
    share = None if kind == "uncertain" else confidence("classic", kind, spike)
    return Suggestion(
        True, kind, share, ADVICE[kind], "manual_review", REASONING[kind],
        state.W, step, slope, spike, "drift", history[onset].step, _before(history, onset),
        state.l_obs - state.l_pred, state.D,
    )  # fmt: skip


def from_detection(found: Detection) -> Suggestion:
    """Say what can be said of an alert that isn't the loss monitor's: what it is, and that a person looks."""
    sigma = found.sigma or math.nan
    excess = None
    if found.observed is not None and found.expected is not None:
        excess = found.observed - found.expected
    return Suggestion(
        True, "uncertain", None, "manual_review", "manual_review", found.summary, found.score,
        found.step, None, None, found.kind, found.onset_step, found.last_healthy_step, excess,
        None if excess is None else excess / sigma,
    )  # fmt: skip


def _by_kind(monitor: TrendMonitor, step: float) -> Suggestion:
    """Go by what the trend detector made of its first alert."""
    first = next((episode for episode in monitor.episodes if episode.number == 1), None)
    if first is None:
        return _uncertain("So many alerts came after it that the first is forgotten.", step)
    failure = TYPES.get(first.kind, "uncertain")
    history, index = monitor.history, monitor.first_alert_index
    w, spike = first.score, None
    if index is not None:
        w = history[index].W
        spike = max(map(abs, _deviations(history[index : index + NEXT])), default=None)
    numbers = first.kind not in ("nonfinite", "frozen")
    sigma = _in_sigma(first) if numbers else None
    share = None if failure == "uncertain" else confidence("trend", first.kind, sigma)
    return Suggestion(
        True, failure, share, ADVICE[failure], "manual_review", LOOKS[first.kind],
        w, step, None, spike, first.kind, _near(first.onset_step, step),
        _near(first.last_healthy_step, step), first.peak if numbers else None, sigma,
    )  # fmt: skip


def _in_sigma(episode: Episode) -> float | None:
    return episode.peak / episode.sigma if episode.sigma > 0.0 else None


def _near(estimate: float, step: float) -> float | None:
    """Round an estimated step to a whole one where steps are whole."""
    if not math.isfinite(estimate):
        return None
    return float(round(estimate)) if float(step).is_integer() else estimate


def _before(history: Sequence[WTwinState], index: int) -> float | None:
    return history[index - 1].step if index else None


def _classify(before: Sequence[float], rise: Sequence[float]) -> tuple[FailureType, float]:
    slope = _slope(before)
    level = median(before[-LEVEL_WINDOW:])
    spread = 1.4826 * median(abs(d - level) for d in before[-LEVEL_WINDOW:])
    jump = (median(rise) - level) / max(1.0, spread)
    if jump > ABRUPT_FROM:
        return "abrupt_spike", slope
    if slope > SLOPE_ERRORS * math.sqrt(12 / len(before) ** 3):
        return "gradual_drift", slope
    return "uncertain", slope


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


def _uncertain(
    reasoning: str, step: float, w: float | None = None, spike: float | None = None
) -> Suggestion:
    return Suggestion(
        True, "uncertain", None, "manual_review", "manual_review", reasoning,
        w, step, None, spike,
    )  # fmt: skip


def _rounded(value: float | None, digits: int) -> float | None:
    return round(value, digits) if value is not None and math.isfinite(value) else None
