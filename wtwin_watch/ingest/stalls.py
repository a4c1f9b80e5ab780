"""Steps that stop coming, as detections; when that is, `wtwin_watch.ingest.cadence` says."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wtwin_watch.ingest.cadence import Cadence
from wtwin_watch.model import Detection, Family, Point, RunStatus, Severity

SIGNAL = "stalled"
TWO = 2.0
"""A smaller unit is used below so many of the larger."""
OVER_AFTER_S = 86_400.0
"""A log in which no step came for so long is taken for that of an ended run, unless it says otherwise."""


def new_steps(
    points: Sequence[Point], before: float | None
) -> tuple[int, list[float], float | None]:
    """Count the steps in ``points`` that follow on ``before``; return also their times, and the last one.

    Points of one row have the same step. Beside later ones, earlier steps are no progress: some metrics
    are logged late. Where all are earlier, the run was begun again without a word.
    """
    steps = [(p.step, p.wall_time) for p in points if math.isfinite(p.step)]
    if before is not None and steps and max(step for step, _ in steps) < before:
        before = None
    count, times = 0, []
    for step, time in steps:
        if before is None or step > before:
            before = step
            count += 1
            if time is not None:
                times.append(time)
    return count, times, before


def stalled(status: RunStatus, cadence: Cadence, step: float | None) -> Detection:
    """No step has come for too long. Where the log can't say whether the run has ended, that is no alarm."""
    if status is RunStatus.RUNNING:
        severity, doubt = Severity.CRITICAL, "though its tracker says that it is running"
    else:
        severity, doubt = Severity.WARNING, "and the log doesn't say whether the run has ended"
    where = "" if step is None else f" {step:.15g}"
    return _detection(
        f"No new step since step{where}, for {words(cadence.idle_s)}, {doubt}; the longest pause before was"
        f" {words(cadence.longest_pause_s)}.",
        step,
        severity=severity,
        active=True,
    )


def over(gap_s: float, step: float | None) -> Detection:
    """Steps come again, or needn't any more."""
    return _detection(f"Steps come again, after {words(gap_s)}.", step)


def taken_for_ended(step: float | None) -> Detection:
    """The log has been at rest for so long that its run is taken for ended."""
    return _detection(
        f"No step came for {words(OVER_AFTER_S)}, so the run is taken for ended.", step
    )


def is_over(status: RunStatus, cadence: Cadence) -> bool:
    """Whether a stalled run is to be taken for ended."""
    return status is not RunStatus.RUNNING and cadence.idle_s >= OVER_AFTER_S


def words(seconds: float) -> str:
    """A duration as a person says it: ``45 s``, ``12 min``, ``3 h``."""
    minutes, hours = seconds / 60.0, seconds / 3600.0
    if minutes < TWO:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if hours < TWO else f"{hours:.0f} h"


def _detection(
    summary: str,
    step: float | None,
    *,
    severity: Severity = Severity.WARNING,
    active: bool = False,
) -> Detection:
    return Detection(
        family=Family.PROGRESS,
        kind="stalled",
        active=active,
        severity=severity,
        summary=summary,
        detector="cadence",
        step=step,
        last_healthy_step=step,
    )
