"""A run's history in memory, asked as W&B is: what a reader must make of appends, rewinds and exports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from wtwin_adapters.wandb_api_history import Reader
from wtwin_adapters.wandb_api_queries import Head, Page
from wtwin_adapters.wandb_api_rows import Row, rows_of
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Point

CREATED = "2026-11-30T12:00:00"
CREATED_UNIX = 1_796_040_000.0


class KeptHistory:
    """Rows by their step; those below ``live_from`` lie in exports. ``asked`` counts requests."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.live_from = 0
        self.created = CREATED
        self.asked: Counter[str] = Counter()
        self.leaves = math.inf
        """How many requests one fetch may send."""
        self.left = math.inf
        self._clock = CREATED_UNIX

    def log(self, *rows: Mapping[str, Any], gap: int = 1) -> None:
        """Append rows, each a second after the one before."""
        for row in rows:
            self._clock += 1.0
            step = self.last_step + gap if self.rows else 0
            self.rows.append({"_step": step, "_timestamp": self._clock, **row})

    def rewind(self, last_step: int) -> None:
        self.rows = [row for row in self.rows if row["_step"] <= last_step]

    def export(self) -> None:
        self.live_from = self.last_step + 1

    @property
    def last_step(self) -> int:
        return self.rows[-1]["_step"] if self.rows else -1

    # -- what the reader asks --------------------------------------------------------------------

    def head(self) -> Head:
        self.asked["head"] += 1
        keys = {key for row in self.rows for key in row}
        return Head(self.created, self.last_step, tuple(keys), exported=self.live_from > 0)

    def page(self, min_step: int, width: int, skipped: Counter[str]) -> Page:
        self.asked["page"] += 1
        low = max(min_step, self.live_from)
        rows = [row for row in self.rows if low <= row["_step"] < min_step + width]
        return Page(Head(self.created, self.last_step, ()), rows_of(rows, skipped))

    def scan(self, min_step: int, count: int, skipped: Counter[str]) -> tuple[list[Row], bool]:
        self.asked["scan"] += 1
        rows = [row for row in self.rows if row["_step"] >= min_step]
        return rows_of(rows[:count], skipped), len(rows) > count

    def leave(self, first: bool) -> bool:
        self.left -= 1
        return self.left >= 0


class Watcher:
    """Reads a history on and on, as the engine does, and keeps what it was told."""

    def __init__(
        self,
        history: KeptHistory,
        limit: int = 1_000,
        running: bool = True,
        names: Names = Names(),  # noqa: B008 - frozen
    ) -> None:
        self.history = history
        self.limit = limit
        self.running = running
        self.names = names
        self.cursor: Mapping[str, Any] | None = None
        self.points: list[Point] = []
        self.batches: list[Batch] = []
        self.skipped: Counter[str] = Counter()

    def look(self) -> list[Batch]:
        """Fetch until there is no more; gives the batches of this time."""
        batches: list[Batch] = []
        while not batches or batches[-1].more:
            self.history.left = self.history.leaves
            reader = Reader(self.history, self.names, self.limit, self.running)
            batch = reader.read(self.cursor)
            assert len(batch.points) <= self.limit
            assert len(batches) < 10_000, "reading doesn't come to an end"
            self.cursor = batch.cursor
            self.skipped.update(batch.skipped)
            batches.append(batch)
            self._take(batch)
        self.batches += batches
        return batches

    def _take(self, batch: Batch) -> None:
        if batch.restart is not None:
            step = batch.restart.step
            self.points = [p for p in self.points if step is not None and p.step < step]
        self.points += batch.points

    def losses(self) -> list[tuple[float, float]]:
        """(step, loss) of everything that stands now."""
        return [(point.step, point.value) for point in self.points if point.metric == "loss"]


def losses_of(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    return [(float(row["_step"]), float(row["loss"])) for row in rows if "loss" in row]
