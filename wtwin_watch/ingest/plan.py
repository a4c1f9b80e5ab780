"""What the engine is told to do: how long it waits for what, and what is watched of a source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from wtwin_watch.metrics import Names
from wtwin_watch.model import WEIGHT, Batch, Detection, Run, Severity


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited for what, in seconds, and from how many points of its loss on a run counts."""

    old_after_s: float = 3600.0
    """A run whose log is older than this at first sight pages nobody."""
    source_down_after_s: float = 60.0
    failed_after_s: float = 300.0
    """A run that is called failed or crashed is told unless its steps go on within this time."""
    stall_after_s: float = 300.0
    """A run isn't called stalled before this; see `wtwin_watch.ingest.cadence`."""
    forget_after_s: float = 7 * 86_400.0
    """A run that is listed no longer is forgotten after this."""
    min_steps: int = 0


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """How one source is watched. Patterns are those of file names: ``*``, ``?`` and ``[]``."""

    adapter: str
    names: Names
    interval_s: float
    exclude: tuple[str, ...] = ()
    """Runs with such a name or id are not watched."""
    exclude_metrics: tuple[str, ...] = ()
    """Metrics with such a name are not looked at."""
    max_severity: Severity = Severity.CRITICAL
    """What is told of its runs is at most this grave."""
    stalls: bool = True
    """Whether its runs can be found to stall."""
    rate: float | None = None
    """Looks and fetches a second at most; None: as many as come."""

    def excludes(self, run: Run) -> bool:
        """Whether ``run`` is not to be watched."""
        return any(
            fnmatchcase(name, pattern)
            for pattern in self.exclude
            for name in (run.name, run.key.run)
        )

    def without_excluded(self, batch: Batch) -> Batch:
        """``batch`` without the metrics that are not to be looked at."""
        if not self.exclude_metrics:
            return batch
        out = {
            name: any(fnmatchcase(name, pattern) for pattern in self.exclude_metrics)
            for name in {point.metric for point in batch.points}
        }
        return replace(batch, points=[point for point in batch.points if not out[point.metric]])

    def capped(self, found: Detection) -> Detection:
        """``found``, no graver than this source's runs may be."""
        if WEIGHT[found.severity] <= WEIGHT[self.max_severity]:
            return found
        return replace(found, severity=self.max_severity)
