"""From the first alerts of every detector in every log to the table: detected, delay, false alarms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.curves import Log, sigma_before
from benchmarks.published.detectors import DETECTORS
from benchmarks.published.experiments import CLEAN, GRADUAL, KINDS, ONSET, logs

PROGRESSIVE = "progressive, all"


@dataclass(frozen=True)
class Judged:
    """One log, where each detector gives its first alert, and the noise of a point before the onset."""

    name: str
    kind: str
    alerts: dict[str, float | None]
    sigma: float = math.nan


@dataclass(frozen=True)
class Cell:
    """What one detector made of the logs of one row.

    ``delays``: of the failures seen, in steps. ``false``: logs with an alert at the onset or before; in
    clean ones, anywhere. An alert that is early earns no detection.
    """

    logs: int
    delays: tuple[float, ...]
    false: int

    @property
    def mean(self) -> float:
        """Mean delay; never where nothing was seen."""
        return float(np.mean(self.delays)) if self.delays else math.inf

    @property
    def sd(self) -> float:
        """Standard deviation of the delays; 0 for a single one."""
        return float(np.std(self.delays, ddof=1)) if len(self.delays) > 1 else 0.0

    def shown(self, kind: str) -> str:
        """The cell in words."""
        if kind == CLEAN:
            return f"{self.false}/{self.logs} alarms"
        seen = f"{len(self.delays)}/{self.logs}"
        if len(self.delays) > 1:
            seen += f", {self.mean:.0f} ± {self.sd:.0f}"
        elif self.delays:
            seen += f", {self.mean:.0f}"
        return f"{seen} ({self.false} early)" if self.false else seen


def judge(folder: Path) -> list[Judged]:
    """Let every detector judge every log of a folder."""
    return [
        Judged(log.name.split(".")[0], kind, alerts(log), sigma_before(log.losses, ONSET))
        for kind, log in logs(folder)
    ]


def alerts(log: Log) -> dict[str, float | None]:
    """Return the step of the first alert of each detector."""
    return {name: first(log) for name, first in DETECTORS.items()}


def cell(judged: Sequence[Judged], detector: str) -> Cell:
    """Sum up one detector over the logs of one row."""
    delays, false = [], 0
    for one in judged:
        at = one.alerts[detector]
        if at is None:
            continue
        if one.kind == CLEAN or at <= ONSET:
            false += 1
        else:
            delays.append(at - ONSET)
    return Cell(len(judged), tuple(delays), false)


def rows(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Return the logs of each row that has any, by the kind that heads it."""
    found = {PROGRESSIVE: [one for one in judged if one.kind in GRADUAL]}
    found |= {kind: [one for one in judged if one.kind == kind] for kind in KINDS}
    return {kind: ones for kind, ones in found.items() if ones}


def markdown(judged: Sequence[Judged]) -> str:
    """Return the table in Markdown: a row a failure, a column a detector."""
    lines = [
        "| failure | logs | " + " | ".join(DETECTORS) + " |",
        "|---" * (len(DETECTORS) + 2) + "|",
    ]
    for kind, ones in rows(judged).items():
        cells = [cell(ones, name).shown(kind) for name in DETECTORS]
        lines.append(f"| {KINDS.get(kind, kind)} | {len(ones)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
