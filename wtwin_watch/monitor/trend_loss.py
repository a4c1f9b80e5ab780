"""The trend detector as it watches the loss of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from wtwin_watch.model import Detection
from wtwin_watch.monitor.options import TrendOptions
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.rises import Rises
from wtwin_watch.monitor.trend import TrendMonitor
from wtwin_watch.monitor.wtwin import WTwinState


class TrendLoss:
    """Follows a `TrendMonitor`. The first finite point waits for the second, which knows the learning rate.

    The monitor takes its clock from its first point, and a row may name the loss before the learning rate.
    """

    def __init__(self, options: TrendOptions, history_limit: int | None = 0) -> None:
        self.monitor = options.monitor(history_limit)
        self._rises = Rises("Loss")
        self._first: tuple[float, float] | None = None
        self._waited = False
        self._expected = math.nan

    def update(self, step: float, value: float, lr: float | None) -> list[tuple[str, Detection]]:
        """Judge a point; return what began, changed or ended with it, by signal."""
        if self._waited:
            return self._judge(step, value, lr)
        if math.isfinite(value) and self._first is None:
            self._first = (step, value)
            return []
        return self._release(lr) + self._judge(step, value, lr)

    def _judge(self, step: float, value: float, lr: float | None) -> list[tuple[str, Detection]]:
        self._expected = self.monitor.update(step, value, lr).l_pred
        return self._rises.follow(self.monitor, step, value)

    def _release(self, lr: float | None) -> list[tuple[str, Detection]]:
        if self._first is None:
            return []
        first, self._first, self._waited = self._first, None, True
        return self._judge(*first, lr)

    def flush(self) -> list[tuple[str, Detection]]:
        """Judge a point that still waits: the log has ended."""
        return self._release(None)

    def rewind(self, step: float) -> None:
        """Let go of a waiting point from ``step`` on; the monitor itself sees by the steps that they fall."""
        if self._first is not None and self._first[0] >= step:
            self._first = None

    def expected(self, step: float) -> float:
        """Return the loss expected now; NaN while there is no forecast."""
        return self._expected

    @property
    def judged(self) -> list[WTwinState]:
        """The states kept of points that were judged."""
        return [state for state in self.monitor.history if state.Q > 0.0 or state.alert]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "monitor": self.monitor.snapshot(),
            "rises": self._rises.snapshot(),
            "first": pack(self._first or ()),
            "waited": self._waited,
            "expected": pack((self._expected,)),
        }

    @classmethod
    def restore(cls, options: TrendOptions, snapshot: Mapping[str, Any]) -> TrendLoss:
        """Make the one that goes on where `snapshot` was taken."""
        loss = cls(options)
        loss.monitor = TrendMonitor.restore(snapshot["monitor"], asdict(options))
        loss._rises.recall(snapshot["rises"])
        first = unpack(snapshot["first"])
        loss._first = (first[0], first[1]) if first else None
        loss._waited = bool(snapshot["waited"])
        (loss._expected,) = unpack(snapshot["expected"])
        return loss
