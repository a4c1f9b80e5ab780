"""What is remembered of a run of an MLflow server, and whether it may have something new."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wtwin_adapters.files import digest
from wtwin_adapters.mlflow_history import Fingerprint
from wtwin_watch.model import RunStatus

QUIET_S = 300.0
"""A running run whose metrics stand still for this long may have gone back to an earlier step."""
_QUIET_GROWTH = 1.1


@dataclass(slots=True)
class Seen:
    """A run as it was last listed: a cache, asked for anew where it is missing."""

    latest: dict[str, Fingerprint]
    running: bool = True
    newest: float | None = None
    """When its latest point was logged, unix seconds, of those read."""
    behind: bool = False
    """It went back to an earlier step, which its latest rows don't show."""
    probe_at: float = 0.0
    """When a loss that stands still is looked into again, on the clock that never goes back."""
    whole_again_at: float = -math.inf
    """When a whole history may be asked for again, on that clock."""
    version: str | None = None

    def renew_version(self, status: RunStatus, now: float, monotonic: float) -> str | None:
        """The run's version, which changes when it may have something new; None: it may at any time.

        ``now`` is unix seconds, ``monotonic`` the clock that never goes back.
        """
        if self.running and self.behind:
            return None
        if self.running and monotonic < self.whole_again_at:
            return self.version
        quiet = 0
        if self.running and self.latest:
            newest = max(latest[0] for latest in self.latest.values())
            quiet = quiet_looks(now - newest / 1000.0)
        self.version = digest(repr((status.value, sorted(self.latest.items()), quiet)).encode())
        return self.version

    def last_activity(self, info: Mapping[str, Any]) -> float | None:
        """When the run last logged something, else when it began, unix seconds."""
        times = [latest[0] / 1000.0 for latest in self.latest.values()]
        times += [self.newest] if self.newest is not None else []
        if not times and info.get("start_time"):
            times = [float(info["start_time"]) / 1000.0]
        return max(times, default=None)


def quiet_looks(idle_s: float) -> int:
    """How often a run that has been silent for so long is looked into nevertheless.

    Every five minutes, and after ten times as long whenever its silence has grown by a tenth.
    """
    if idle_s < 10 * QUIET_S:
        return int(max(idle_s, 0.0) // QUIET_S)
    return 10 + int(math.log(idle_s / (10 * QUIET_S), _QUIET_GROWTH))
