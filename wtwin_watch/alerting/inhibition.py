"""Inhibition: an alert that another one explains isn't told while that one fires."""

from __future__ import annotations

from collections.abc import Iterable

from wtwin_watch.model import Alert, AlertState, Family

ENDED_KINDS = frozenset({"failed", "crashed", "killed", "preempted"})
"""What the tracker says of a run that is over: its loss and its progress are explained by that."""
_HIDDEN = {
    Family.SOURCE: frozenset({Family.PROGRESS, Family.STATE}),
    Family.STATE: frozenset({Family.LOSS, Family.NONFINITE, Family.PROGRESS}),
}
EXPLAINING = frozenset(_HIDDEN)
"""Families whose alerts may explain others."""


def inhibitor(alert: Alert, others: Iterable[Alert]) -> Alert | None:
    """The firing alert among ``others``, of the same run or its source, that explains ``alert``."""
    for other in others:
        if other.state is not AlertState.FIRING or other.quiet:
            continue
        if alert.family not in _HIDDEN.get(other.family, frozenset()):
            continue
        if other.family is Family.SOURCE and other.kind == "source_down":
            return other
        if other.family is Family.STATE and other.kind in ENDED_KINDS:
            return other
    return None
