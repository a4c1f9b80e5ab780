"""What the decisions about a run depend on besides the run itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from wtwin_watch.alerting.lifecycle import Policy
from wtwin_watch.ingest.plan import Patience, SourcePlan
from wtwin_watch.metrics import Names
from wtwin_watch.monitor.options import DetectorOptions
from wtwin_watch.monitor.run import RunMonitor


@dataclass(frozen=True, slots=True)
class Judging:
    """What a run is judged by: the names of its metrics and the settings of its detector."""

    names: Names
    detector: DetectorOptions
    exclude_metrics: tuple[str, ...] = ()

    def new_monitor(self) -> RunMonitor:
        """A monitor that has seen nothing. It keeps its latest state, for the run's curve."""
        return RunMonitor(self.names, self.detector, history_limit=1)

    def stored(self) -> dict[str, Any]:
        """What a checkpoint keeps of it, to know whether it is still the same."""
        form = asdict(self)
        excluded = form.pop("exclude_metrics")
        return form | ({"exclude_metrics": list(excluded)} if excluded else {})


@dataclass(frozen=True, slots=True)
class Rules:
    """All that the decisions about a run depend on besides the run."""

    policy: Policy
    patience: Patience
    plan: SourcePlan
    new_id: Callable[[], str]
