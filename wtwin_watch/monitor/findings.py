"""What rules have found, as detections: one plain sentence each, with its numbers."""

from __future__ import annotations

from typing import Protocol

from wtwin_watch.model import Detection, Family, Severity
from wtwin_watch.monitor.grad_norm import GradNormRule
from wtwin_watch.monitor.missing import MissingRule
from wtwin_watch.monitor.rules import RESOLVED_AFTER, NonFiniteRule
from wtwin_watch.monitor.throughput import ThroughputRule
from wtwin_watch.monitor.words import finite, step_text, what_it_is
from wtwin_watch.monitor.zero import ZeroRule

RULE = "rule"
"""The detector of what needs no forecast."""


def nonfinite(rule: NonFiniteRule, began: bool, step: float, value: float) -> Detection:
    """The loss is NaN or infinite, or no longer."""
    if began:
        healthy = rule.last_healthy
        before = (
            "" if healthy is None else f"; the last finite one was at step {step_text(healthy)}"
        )
        summary = f"Loss is {what_it_is(value)} at step {step_text(step)}{before}."
    else:
        summary = (
            f"Loss has been finite for {RESOLVED_AFTER} points in a row; it was NaN or infinite in"
            f" {rule.bad_points} points from step {step_text(rule.onset)} to {step_text(rule.last_bad)}."
        )
    return _found(
        Family.NONFINITE, "nonfinite", Severity.CRITICAL, rule, began, summary, step, value
    )


def zero(rule: ZeroRule, began: bool, step: float, value: float) -> Detection:
    """The loss is exactly 0, or no longer."""
    since = step_text(rule.onset)
    if began:
        summary = (
            f"Loss has been exactly 0 since step {since}, though it was far from 0 before; that is what a"
            " filtered NaN or a broken reduction looks like."
        )
    else:
        summary = f"Loss is {value:.4g}, no longer exactly 0; it had been since step {since}."
    return _found(Family.LOSS, "zero", Severity.CRITICAL, rule, began, summary, step, value)


def missing(rule: MissingRule, began: bool, step: float) -> Detection:
    """The log goes on without a loss, or with one again."""
    if began:
        summary = (
            f"The last {rule.rows} rows of the log hold no loss, the latest at step {step_text(step)}; the"
            f" last loss was at step {step_text(rule.last_healthy)}. A NaN may be written as an empty cell."
        )
    else:
        summary = f"The loss is logged again, from step {step_text(step)} on."
    return Detection(
        family=Family.PROGRESS,
        kind="loss_missing",
        active=began,
        severity=Severity.WARNING,
        summary=summary,
        detector=RULE,
        step=step,
        last_healthy_step=rule.last_healthy,
    )


def grad_norm(rule: GradNormRule, began: bool, step: float, value: float) -> Detection:
    """The gradient norm is NaN or infinite and stays so, or no longer."""
    since = step_text(rule.onset)
    if began:
        summary = f"Gradient norm has been NaN or infinite in {rule.bad} points since step {since}."
    else:
        summary = (
            f"Gradient norm has been finite for {RESOLVED_AFTER} points in a row; it had not been since"
            f" step {since}."
        )
    return _found(
        Family.NONFINITE, "grad_nonfinite", Severity.WARNING, rule, began, summary, step, value
    )


def throughput(rule: ThroughputRule, began: bool, step: float) -> Detection:
    """The throughput has dropped, come back, or stayed low for so long that it is usual now."""
    since = step_text(rule.onset)
    if began:
        share = f", {rule.now / rule.level:.0%} of the usual {rule.level:.4g}"
        summary = f"Throughput has been {rule.now:.4g} since step {since}{share}."
    elif rule.recovered:
        summary = f"Throughput is {rule.now:.4g} again; it had been low since step {since}."
    else:
        summary = (
            f"Throughput has been {rule.now:.4g} for so long that it is taken as usual from here on; before"
            f" step {since} it was {rule.level:.4g}."
        )
    return _found(
        Family.PROGRESS,
        "throughput_drop",
        Severity.WARNING,
        rule,
        began,
        summary,
        step,
        rule.now,
        expected=rule.level,
    )


class _Rule(Protocol):
    """What a rule remembers of the stretch that it has found."""

    @property
    def onset(self) -> float | None: ...

    @property
    def last_healthy(self) -> float | None: ...


def _found(
    family: Family,
    kind: str,
    severity: Severity,
    rule: _Rule,
    began: bool,
    summary: str,
    step: float,
    observed: float,
    expected: float | None = None,
) -> Detection:
    return Detection(
        family=family,
        kind=kind,
        active=began,
        severity=severity,
        summary=summary,
        detector=RULE,
        step=step,
        onset_step=rule.onset,
        last_healthy_step=rule.last_healthy,
        observed=finite(observed),
        expected=finite(expected),
    )
