"""A run's loss as a picture needs it: few columns however long the run is, the finer the later.

A column stands for some points in a row. Of a run of N points the one that lies ``age`` points back belongs
to column ``limit * (age / N) ** 0.25``, counted from the end: single points where an alert has just begun, a
percent or two of the run where it is old.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Role
from wtwin_watch.model import Detection, Point
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.monitor.wtwin import WTwinState

COLUMNS = 256
SLICE = 128
"""After so many points the forecast is noted while a history is read."""
LARGEST = 1e30
"""A loss beyond this is none that a picture could show."""

_STEP, _SIZE, _LOST, _LOW, _HIGH, _MEAN, _EXPECTED, _SIGMA, _SCORE = range(9)
_WIDTH = 9

Floats = NDArray[np.float64]


class Curve:
    """What is kept of a run's loss: at most a half more than ``limit`` columns of 36 bytes.

    ``limit`` None keeps every point. NaN where something isn't known.
    """

    def __init__(self, limit: int | None = COLUMNS) -> None:
        self._limit = limit
        self._table: NDArray[np.float32] = np.empty((0, _WIDTH), dtype=np.float32)
        self._new: list[tuple[float, ...]] = []
        """Rows that aren't in the table yet: single ones would cost as much as many."""

    def add(
        self, losses: Sequence[tuple[float, float]], states: Iterable[WTwinState], sigma: float
    ) -> None:
        """Take the next (step, loss) pairs, what is known of how they were judged, and sigma after them."""
        judged = {state.step: state for state in states}
        noise = sigma if 0.0 < sigma <= LARGEST else math.nan
        for step, loss in losses:
            shown = abs(loss) <= LARGEST
            seen = loss if shown else math.nan
            expected = score = math.nan
            state = judged.get(step)
            if state is not None and (state.Q > 0.0 or state.alert):
                if abs(state.l_pred) <= LARGEST:
                    expected = state.l_pred
                score = min(max(state.W, -LARGEST), LARGEST)
            self._new.append((step, 1.0, not shown, seen, seen, seen, expected, noise, score))
        if len(self._new) >= SLICE:
            self._settle()

    def _settle(self) -> None:
        """Put what is new into the table."""
        if not self._new:
            return
        self._table = np.vstack((self._table, np.array(self._new, dtype=np.float32)))
        self._new = []
        if self._limit is not None and len(self._table) > self._limit * 3 // 2:
            self._thin(self._limit)

    def rewind(self, step: float | None) -> None:
        """Forget what lies from ``step`` on, since it is logged once more; None: everything."""
        self._settle()
        known = self._table[:, _STEP] < (-math.inf if step is None else step)
        self._table = self._table[known]

    def __len__(self) -> int:
        self._settle()
        return len(self._table)

    @property
    def step(self) -> Floats:
        """The last step of each column."""
        return self._column(_STEP)

    @property
    def lost(self) -> Floats:
        """How many of its losses were no finite number."""
        return self._column(_LOST)

    @property
    def low(self) -> Floats:
        """The lowest loss of each column."""
        return self._column(_LOW)

    @property
    def high(self) -> Floats:
        """The highest loss of each column."""
        return self._column(_HIGH)

    @property
    def mean(self) -> Floats:
        """The mean loss of each column."""
        return self._column(_MEAN)

    @property
    def expected(self) -> Floats:
        """The loss that was expected there."""
        return self._column(_EXPECTED)

    @property
    def sigma(self) -> Floats:
        """The noise of the loss there, in its unit."""
        return self._column(_SIGMA)

    @property
    def score(self) -> Floats:
        """The highest W of each column."""
        return self._column(_SCORE)

    def _column(self, which: int) -> Floats:
        self._settle()
        return self._table[:, which].astype(np.float64)

    def part(self, first: int, last: int, most: int) -> Curve:
        """Return the columns from ``first`` to before ``last``, neighbours joined that lie close.

        Those join that lie within the same of ``most`` equal parts of the steps between.
        """
        self._settle()
        other = Curve(self._limit)
        other._table = self._table[first:last]
        if len(other._table) > most:
            step = other._table[:, _STEP].astype(np.float64)
            width = (step.max() - step.min()) / most or 1.0
            place = np.floor((step - step.min()) / width)
            other._table = _joined(other._table, np.flatnonzero(np.diff(place, prepend=-1.0)))
        return other

    def _thin(self, limit: int) -> None:
        age = self._table[::-1, _SIZE].astype(np.float64).cumsum()[::-1]
        place = np.floor(limit * (age / age[0]) ** 0.25)
        self._table = _joined(self._table, np.flatnonzero(np.diff(place, prepend=-1.0)))

    def snapshot(self) -> dict[str, Any]:
        """Return it as a JSON-able dict."""
        self._settle()
        data = self._table.astype("<f4").tobytes()
        return {"version": 1, "columns": base64.b64encode(data).decode("ascii")}

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> Curve:
        """Make the one that goes on where `snapshot` was taken. Raises `SnapshotError`."""
        curve = cls()
        try:
            if snapshot["version"] != 1:
                raise ValueError(f"version {snapshot['version']!r}")
            data = base64.b64decode(snapshot["columns"], validate=True)
            table = np.frombuffer(data, dtype="<f4").reshape(-1, _WIDTH)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise SnapshotError(f"a run's curve can't be read: {error}") from error
        curve._table = table.astype(np.float32)
        return curve


def _joined(columns: NDArray[np.float32], starts: NDArray[np.intp]) -> NDArray[np.float32]:
    """Join columns to one each from one of ``starts`` to the next."""
    table = columns.astype(np.float64)
    joined = np.empty((len(starts), _WIDTH))
    joined[:, _STEP] = table[np.append(starts[1:], len(table)) - 1, _STEP]
    for which in (_SIZE, _LOST):
        joined[:, which] = np.add.reduceat(table[:, which], starts)
    joined[:, _LOW] = np.fmin.reduceat(table[:, _LOW], starts)
    for which in (_HIGH, _SCORE):
        joined[:, which] = np.fmax.reduceat(table[:, which], starts)
    sizes = table[:, _SIZE]
    joined[:, _MEAN] = _means(table[:, _MEAN], sizes - table[:, _LOST], starts)
    for which in (_EXPECTED, _SIGMA):
        joined[:, which] = _means(table[:, which], sizes, starts)
    return joined.astype(np.float32)


def _means(values: Floats, weights: Floats, starts: NDArray[np.intp]) -> Floats:
    """Weighted means of groups, NaN left out; NaN where a group has nothing else."""
    weights = np.where(np.isnan(values), 0.0, weights)
    total = np.add.reduceat(np.where(weights > 0.0, values, 0.0) * weights, starts)
    weight = np.add.reduceat(weights, starts)
    means: Floats = np.divide(total, weight, out=np.full(len(starts), math.nan), where=weight > 0.0)
    return means


def feed(monitor: RunMonitor, points: Sequence[Point], curve: Curve) -> list[Detection]:
    """Feed ``points`` to ``monitor`` and note in ``curve`` what it makes of them; return its detections.

    Of a monitor that keeps its latest state alone, what was expected is noted each `SLICE` points.
    """
    found: list[Detection] = []
    for start in range(0, len(points), SLICE):
        some = points[start : start + SLICE]
        found += monitor.feed(some)
        loss = monitor.roles.get(Role.LOSS)
        # A step that is no number, or one beyond any count, has no place in a picture.
        losses = [(p.step, p.value) for p in some if p.metric == loss and abs(p.step) <= LARGEST]
        if losses:
            judge = monitor.loss_monitor
            curve.add(losses, judge.history[-len(losses) :], judge.sigma)
    return found
