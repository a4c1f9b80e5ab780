"""Runs of which nothing is expected: they rest in the store alone, and in the end they are forgotten."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wtwin_watch.ingest.watched import WatchedRun
from wtwin_watch.model import Run, RunStatus

REST_AFTER_S = 3_600.0
"""A run that brought nothing for so long, and that nothing is open about, needs no place in memory."""
GONE_AFTER_S = 60.0
"""A run that is listed no longer is gone after this: a log may be away for a moment while it is rewritten."""
FORGOTTEN = "The run is gone: its source doesn't list it any more."


@dataclass(frozen=True, slots=True)
class Resting:
    """What is known of a run at rest: enough to notice that it moves."""

    status: RunStatus
    version: str | None
    gone_since: float | None = None

    def still(self, found: Run) -> bool:
        """Whether it goes on resting, though it is listed as ``found``."""
        same = (found.status, found.version) == (self.status, self.version)
        return same and self.gone_since is None

    def gone(self, now: float) -> Resting:
        """The same, listed no longer."""
        return replace(self, gone_since=now)


def gone_for_good(gone_since: float, now: float) -> bool:
    """Whether a run that isn't listed is not merely away for a moment."""
    return now - gone_since >= GONE_AFTER_S


def may_rest(run: WatchedRun, now: float, *, stalls: bool) -> bool:
    """Whether nothing is expected of ``run`` for now: it can be taken up again from the store."""
    if run.gone_since is None:
        if now - run.moved_at < REST_AFTER_S or run.run.version is None:
            return False
        if not run.run.status.ended and stalls and run.cadence.awaited:
            return False
    open_ = any(alert.open and not alert.quiet for alert in run.alerts.values())
    untold = run.untold and not run.backlog
    busy = run.fetching or run.asking or untold or run.trouble.reason is not None
    return not (open_ or busy)
