"""A validation loss that rises against its own trend while the training loss falls."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from wtwin_watch.model import Detection, Severity
from wtwin_watch.monitor.board import stored_detection
from wtwin_watch.monitor.options import TrendOptions
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.rises import RISE, Rises
from wtwin_watch.monitor.trend import TrendMonitor

OVERFIT = "overfit"
MEMORY = 256
"""So many mean training losses, one an evaluation, are remembered."""
BEFORE = 8
"""So many of them before the rise are what the training loss has fallen from."""


class OverfitRule:
    """Judges the validation loss by a `TrendMonitor`; a rise that lasts is overfitting if training goes on.

    Training goes on where the mean training loss since the rise began is below that of the eight
    evaluations before. A rise of both losses is the training loss's alert, and only evidence here. A
    monitor of its own takes some 70 evaluations to know a trend.
    """

    def __init__(self, options: TrendOptions) -> None:
        self.monitor = options.monitor()
        self._rises = Rises("Validation loss")
        self._rise: Detection | None = None
        """The rise of the validation loss that is open."""
        self._told = False
        self._sum = 0.0
        self._count = 0
        self._steps = array("d")
        self._means = array("d")
        """Mean training loss since the evaluation before, at each of ``_steps``."""

    def train(self, value: float) -> None:
        """Take note of a finite training loss."""
        self._sum += value
        self._count += 1

    def update(self, step: float, value: float) -> list[tuple[str, Detection]]:
        """Judge a validation loss; return what began or ended with it."""
        if self._count:
            self._steps.append(step)
            self._means.append(self._sum / self._count)
            del self._steps[:-MEMORY], self._means[:-MEMORY]
            self._sum, self._count = 0.0, 0
        self.monitor.update(step, value)
        ended = None
        for signal, found in self._rises.follow(self.monitor, step, value):
            if signal == RISE:
                self._rise = found if found.active else None
                ended = found
        if self._rise is None:
            if ended is None or not self._told:
                return []
            self._told = False
            return [(OVERFIT, replace(ended, kind=OVERFIT))]
        if self._told or self._rise.severity is Severity.INFO:
            return []
        change = self._training_change(self._rise.onset_step)
        if not change < 0.0:
            return []
        self._told = True
        summary = (
            f"{self._rise.summary} The training loss has fallen by {-change:.3g} meanwhile: the model"
            " overfits."
        )
        overfit = replace(
            self._rise, kind=OVERFIT, severity=Severity.WARNING, summary=summary, step=step
        )
        return [(OVERFIT, overfit)]

    def accept(self, step: float) -> list[tuple[str, Detection]]:
        """Take the level of a rise as the new normal; return the end of what was told of it."""
        episode = self.monitor.episode
        if episode is None:
            return []
        self.monitor.accept()
        ended = self._rises.follow(self.monitor, step, episode.observed)
        self._rise = None
        if not self._told:
            return []
        self._told = False
        return [
            (OVERFIT, replace(found, kind=OVERFIT)) for signal, found in ended if signal == RISE
        ]

    def _training_change(self, onset: float | None) -> float:
        """Return by how much the mean training loss has changed since ``onset``; NaN where it isn't known."""
        if onset is None:
            return math.nan
        pairs = list(zip(self._steps, self._means, strict=True))
        before = [loss for step, loss in pairs if step <= onset][-BEFORE:]
        after = [loss for step, loss in pairs if step > onset]
        if not before or not after:
            return math.nan
        return sum(after) / len(after) - sum(before) / len(before)

    @property
    def evidence(self) -> tuple[str, ...]:
        """What it has to say about an alert that begins now."""
        return () if self._rise is None or self._told else (self._rise.summary,)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "monitor": self.monitor.snapshot(),
            "rises": self._rises.snapshot(),
            "rise": None if self._rise is None else asdict(self._rise),
            "told": self._told,
            "sum": self._sum,
            "count": self._count,
            "train": [pack(self._steps), pack(self._means)],
        }

    @classmethod
    def restore(cls, options: TrendOptions, snapshot: Mapping[str, Any]) -> OverfitRule:
        """Make the rule that goes on where `snapshot` was taken."""
        rule = cls(options)
        rule.monitor = TrendMonitor.restore(snapshot["monitor"], asdict(options))
        rule._rises.recall(snapshot["rises"])
        if snapshot["rise"] is not None:
            rule._rise = stored_detection(snapshot["rise"])
        rule._told = bool(snapshot["told"])
        rule._sum = float(snapshot["sum"])
        rule._count = int(snapshot["count"])
        rule._steps, rule._means = (array("d", unpack(one)) for one in snapshot["train"])
        return rule
