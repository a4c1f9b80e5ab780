"""Several alerts in one message: which runs, what they have in common, and where to look. Pure text."""

from __future__ import annotations

from collections.abc import Sequence

from wtwin_watch.model import Alert, AlertState, Companion, Family, Run

MOST_NAMED = 20
"""So many runs are named in a message; the others are counted."""
_SHARED = {
    Family.LOSS: "data, code, or settings",
    Family.NONFINITE: "data, code, or settings",
    Family.PROGRESS: "storage, network, or the scheduler",
    Family.STATE: "a machine, the scheduler, or a quota",
    Family.SOURCE: "the network, or the tracker",
}


def where(run: Run, size: int) -> str:
    """Name the runs in a title."""
    return run.name if size == 1 else f"{run.name} and {size - 1} more"


def in_common(alert: Alert, run: Run, others: Sequence[Companion], size: int) -> str:
    """Say how many alerts it is about, within which time they began, and what they may share."""
    begun = sorted([alert.started_at, *(other.alert.started_at for other in others)])
    spread = _duration(begun[-1] - begun[0])
    whose = f"of the group {run.group}" if run.group else f"of the source {run.key.source}"
    shared = _SHARED[alert.family]
    return f"{size} runs {whose} within {spread}: look for what they share, such as {shared}."


def listed(run: Run, others: Sequence[Companion], size: int) -> str:
    """Name the runs, a line each."""
    lines = [run.name]
    lines += [
        other.run.name + (" (over)" if other.alert.state is AlertState.RESOLVED else "")
        for other in others[: MOST_NAMED - 1]
    ]
    if size > len(lines):
        lines.append(f"and {size - len(lines)} more")
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s"
