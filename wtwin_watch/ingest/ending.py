"""What a tracker says of a run's state, as detections: that it failed, crashed, was killed or preempted."""

from __future__ import annotations

from collections.abc import Sequence

from wtwin_watch.model import Detection, Family, Run, RunStatus, Severity

LAST_LINES = 20
"""Lines of console output that an alert about a failed run ends with."""
LONGEST_LINE = 300
FINAL = frozenset({RunStatus.FINISHED, RunStatus.FAILED, RunStatus.CRASHED, RunStatus.KILLED})
"""What is over for good, as far as anybody can tell; a preempted run is expected back."""
BROKEN = frozenset({RunStatus.FAILED, RunStatus.CRASHED})

_WHAT = {
    RunStatus.FAILED: "failed",
    RunStatus.CRASHED: "crashed: its process was not heard of any more",
    RunStatus.KILLED: "was killed",
    RunStatus.PREEMPTED: "was preempted; it is expected to go on",
    RunStatus.FINISHED: "has finished",
}


def ended(run: Run, step: float | None, lines: Sequence[str], failed_after_s: float) -> Detection:
    """What is to be said of a run that ended in another way than by finishing.

    Trackers often call a run crashed that goes on (a lost network is enough), and a failed one is often
    begun again: such an alert waits ``failed_after_s`` seconds. Being killed or preempted is information.
    """
    broken = run.status in BROKEN
    code = "" if run.exit_code is None else f" (exit code {run.exit_code})"
    return Detection(
        family=Family.STATE,
        kind=run.status.value,
        active=True,
        severity=Severity.CRITICAL if broken else Severity.INFO,
        summary=f"The run {_WHAT[run.status]}{code}.",
        detector="tracker",
        step=step,
        last_healthy_step=step,
        patience_s=failed_after_s if broken else 0.0,
        last_lines=tuple(line[:LONGEST_LINE] for line in lines) if broken else (),
    )


def goes_on(run: Run, step: float | None) -> Detection:
    """The run goes on, or has finished after all."""
    finished = run.status is RunStatus.FINISHED
    summary = "The run has finished after all." if finished else "The run goes on."
    return Detection(
        family=Family.STATE,
        kind=run.status.value,
        active=False,
        severity=Severity.INFO,
        summary=summary,
        detector="tracker",
        step=step,
    )


def why_closed(run: Run) -> str:
    """Why the other alerts of a run that is over end."""
    return f"The run {_WHAT[run.status].split(':')[0]}, so this is no longer observed."
