"""The trend monitor: says when a loss has left its own trend, at a false-alarm rate of your choice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wtwin_watch.errors import SnapshotError
from wtwin_watch.monitor.backfill import LEAST, STRETCH, Attempt, Floats
from wtwin_watch.monitor.contrast import LONGEST
from wtwin_watch.monitor.episode import Episode, Rise, plain, value
from wtwin_watch.monitor.evidence import BLOCK, Evidence
from wtwin_watch.monitor.far import parse_far, threshold
from wtwin_watch.monitor.history import History
from wtwin_watch.monitor.judging import LARGEST, LARGEST_STEP, LOWEST, Judging, new_state
from wtwin_watch.monitor.ledger import Ledger
from wtwin_watch.monitor.pace import Pace
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.points import FAST_AFTER
from wtwin_watch.monitor.stagnation import stagnates
from wtwin_watch.monitor.wtwin import WTwinState

SNAPSHOT_VERSION = 3
READ_VERSIONS = (2, SNAPSHOT_VERSION)
"""In the former one the sums of blocks began with nothing."""
LONG_ROW = 8
"""Rows of so many repetitions are looked at one by one."""
STATE_DTYPE = np.dtype(
    [(name, np.bool_ if name == "alert" else np.float64) for name in WTwinState._fields]
)


class TrendMonitor(Judging):
    """Watches one loss for leaving its own trend: drifts, jumps, divergence, NaN and frozen values.

    The loss's course in log time is compared, on many scales at once, with a line through what came
    just before; the line may flatten at any time, never rise. Evidence E is a log-likelihood ratio less
    the price of looking often, in units of a noise that counts correlation in::

        D = sqrt(2 E)     T = sqrt(2 (ln far - 1.5))     W = Q (D - T)     alert: W > 0

    D reads as a deviation in sigma. ``Q`` is 0 for the first 64 points, 1 after. During an alert the
    forecast stays as it was before the rise, D - T is the smoothed excess in sigma, and nothing is learned.

    ``far``: mean points between false alarms, or a rate as `parse_far` reads it (``1% per run of 20000
    points``). ``min_effect``: rises below this share of the loss are ignored, by default 0.0005, and
    0.00025 in runs with a learning rate. ``history_limit``: keep so many last states; None keeps all, 0 none.

    A point costs some microseconds, and all memory but ``history`` is bounded. Raises `ValueError` for
    settings that can't be.
    """

    def __init__(
        self,
        far: float | str = 1e5,
        min_effect: float | None = None,
        history_limit: int | None = None,
    ) -> None:
        if min_effect is not None and not 0.0 <= min_effect < 1.0:
            raise ValueError(f"min_effect is {min_effect!r}, must be in [0, 1)")
        if history_limit is not None and history_limit < 0:
            raise ValueError(f"history_limit is {history_limit!r}, must be at least 0")
        self.far = parse_far(far)
        self.history_limit = history_limit
        super().__init__(threshold(self.far), min_effect)
        self._keep_history()

    def reset(self) -> None:
        """Begin anew: forget everything but the settings."""
        super().__init__(self._h, self.min_effect)
        self._keep_history()

    def _keep_history(self) -> None:
        self._history = History(self.history_limit)
        self._append = self._history.states.append

    # -- a point -----------------------------------------------------------------------------------

    def update(self, step: float, loss: float, lr: float | None = None) -> WTwinState:
        """Judge one point, and learn from it.

        A step that falls means that the run went back to it; one that repeats is another look at the
        same place. ``lr``: the learning rate, if the run logs one from its first point on. A point whose
        step is no finite number is passed over.
        """
        # What goes its ordinary way is done here, at once; all else in `_rarely`.
        if not (
            loss.__class__ is float
            and loss != self._value
            and LOWEST <= loss <= LARGEST
            and (
                step - self._step == self._calm_stride
                if lr is None
                else self._glides and self._pace.glide(step, lr)
            )
        ):
            return self._keep(self._rarely(step, loss, lr))
        self._step = step
        self._value = loss
        evidence = self._evidence
        values = evidence.values
        values.append(loss)
        found = 0.0 if loss <= evidence.quiet_to else evidence.judge(loss)
        if len(values) >= evidence.block:
            self._finish_block(step, loss)
            if self._h < evidence.E:
                return self._keep(self._strike(step, loss, max(found, evidence.E)))
        if found <= evidence.E:
            tail = self._tail
        elif found > self._h:
            return self._keep(self._strike(step, loss, found))
        else:
            tail = self._weighed(found)
        state = new_state(WTwinState, (step, loss) + tail)  # noqa: RUF005 - in half the time
        self._append(state)
        return state

    def _strike(self, step: float, loss: float, found: float) -> WTwinState:
        """Begin an alert at a point that went its ordinary way so far."""
        self._sync()
        self._alarm(step, loss, found)
        return self._state(step, loss, self._evidence.expected, math.sqrt(2.0 * found))

    def _keep(self, state: WTwinState) -> WTwinState:
        self._history.note(state, self._stored - 1)
        self._append(state)
        return state

    def _sync(self) -> None:
        """Let clock and count know of the points that went their ordinary way."""
        pace, evidence = self._pace, self._evidence
        if self._calm_stride == self._calm_stride:
            missing = len(evidence.values) - len(pace.waiting)
            pace.catch_up(self._step, missing)

    def _rarely(self, step: float, loss: float, lr: float | None) -> WTwinState:
        """Judge a point that may be anything."""
        self._sync()
        before = self._evidence.count
        if type(loss) is not float:
            loss = float(loss)
        if type(step) is not float and type(step) is not int:
            step = float(step)
        state = self._judge(step, loss, lr)
        evidence, pace = self._evidence, self._pace
        self._others += before + 1 - evidence.count
        self._step = pace.last
        self._tail = self._weighed(evidence.E)
        calm = (
            self._same == 0
            and self._differed
            and self.ready
            and not (pace.holding or self._rise or self._nonfinite or self._frozen)
        )
        self._calm_stride = pace.calm_stride if calm else math.nan
        self._glides = calm and pace.can_glide
        return state

    def update_many(
        self, steps: ArrayLike, losses: ArrayLike, lrs: ArrayLike | None = None
    ) -> NDArray[np.void]:
        """Judge many points, as `update` does one after the other, in a fraction of the time.

        Returns an array with the fields of `WTwinState`. D and W agree with those of `update` to 1e-9,
        alerts, their kinds and onsets exactly but for ties. Raises `ValueError` for unequal lengths.
        """
        at = np.asarray(steps, dtype=np.float64)
        y = np.asarray(losses, dtype=np.float64)
        rates = None if lrs is None else np.asarray(lrs, dtype=np.float64)
        if at.ndim != 1 or at.shape != y.shape or (rates is not None and rates.shape != y.shape):
            raise ValueError("steps, losses and learning rates must be columns of the same length")
        out = np.empty(len(y), dtype=STATE_DTYPE)
        i = 0
        while i < len(y):
            took, wait = self._stretch(at[i:], y[i:], out[i:]) if rates is None else (0, STRETCH)
            if not took:
                took = min(wait, len(y) - i)
                some = slice(i, i + took)
                lr = repeat(None) if rates is None else rates[some].tolist()
                out[some] = list(map(self.update, at[some].tolist(), y[some].tolist(), lr))
            i += took
        return out

    def _stretch(self, steps: Floats, losses: Floats, out: NDArray[np.void]) -> tuple[int, int]:
        """Take some next points at once, as far as they go their usual way.

        Returns how many were taken; and if none were, how many are to be taken one by one before it is
        worth trying again.
        """
        evidence, pace = self._evidence, self._pace
        if evidence.block != BLOCK or self._calm_stride != self._calm_stride:
            return 0, 4 * BLOCK
        if evidence.values:
            return 0, BLOCK - len(evidence.values)
        if len(evidence.recent) < LONGEST:
            return 0, (LONGEST - len(evidence.recent)) * BLOCK
        self._sync()
        room = min(len(losses), STRETCH) // BLOCK * BLOCK
        if room < LEAST:
            return 0, len(losses)
        steps, losses = steps[:room], losses[:room]
        differences = np.diff(losses, prepend=evidence.last)
        same = differences == 0.0
        usual = (
            (np.diff(steps, prepend=pace.last) == pace.calm_stride)
            & (np.abs(losses) <= LARGEST)
            & (np.abs(steps) <= LARGEST_STEP)
        )
        usual[LONG_ROW - 1 :] &= np.convolve(same, np.ones(LONG_ROW), "valid") < LONG_ROW
        # The last one must not repeat the one before: the count of repetitions begins anew after it.
        usable = np.flatnonzero(~same[BLOCK - 1 :: BLOCK])
        if not usual.all():
            usable = usable[usable < int(np.argmin(usual)) // BLOCK]
        if not len(usable):
            return 0, BLOCK
        room = (int(usable[-1]) + 1) * BLOCK
        while room >= LEAST:
            steps, losses = steps[:room], losses[:room]
            attempt = Attempt(evidence, losses, steps - pace.origin + pace.offset, self._h)
            stretch = attempt.run()
            if stretch is not None:
                break
            usable = usable[usable < min(attempt.usual_until, room - LEAST // 2) // BLOCK]
            room = (int(usable[-1]) + 1) * BLOCK if len(usable) else 0
        else:
            return 0, LEAST // 2
        self._repeats += int(same[:room].sum())
        self._tail = self._weighed(evidence.E)
        self._value = float(losses[-1])
        self._step = float(steps[-1])
        pace.last = float(steps[-1])
        d = np.sqrt(2.0 * stretch.evidence)
        rows = out[:room]
        rows["step"], rows["l_obs"], rows["l_pred"], rows["D"] = steps, losses, stretch.expected, d
        rows["Q"], rows["T"], rows["W"], rows["alert"] = 1.0, self._T, d - self._T, False
        if self.history_limit != 0:
            self._history.states.extend(map(new_state, repeat(WTwinState), rows.tolist()))
        return room, 0

    # -- what is known -----------------------------------------------------------------------------

    @property
    def stagnating(self) -> bool:
        """Whether the loss has stopped falling, though it fell before. Information, not an alert.

        Looked up in the blocks when asked for; costs about as much as ten points.
        """
        evidence = self._evidence
        return stagnates(evidence.levels, evidence.count, evidence.block)

    @property
    def rise_evidence(self) -> float | None:
        """Evidence, in nats, that the rise which is on is none of chance's; None while there is none.

        At the alert it is what the alert takes, and it grows while the excess lasts: chance alone
        brings as much once in about exp(evidence + 1.5) points.
        """
        rise = self._rise
        return None if rise is None else max(threshold(self.far), rise.evidence)

    @property
    def points_needed(self) -> int:
        """How many more points it takes until there are enough; 0 when there are."""
        return max(0, FAST_AFTER + 1 - self._evidence.count)

    @property
    def status(self) -> str:
        """What the monitor can say now: a sentence for a person."""
        if not self.ready:
            return f"still learning, needs {self.points_needed} more points"
        return "judging"

    @property
    def sigma(self) -> float:
        """Sigma of a point, correlation counted in, in the loss's unit; 0 before it is known."""
        return max(self._evidence.sigma, self._evidence.sd)

    @property
    def history(self) -> list[WTwinState]:
        """The states of all points, oldest first.

        The list itself where all are kept, a copy where ``history_limit`` caps it.
        """
        return self._history.as_list()

    @property
    def first_alert_index(self) -> int | None:
        """Where in `history` the first alert stands; None if there was none or it's no longer kept."""
        return self._history.first_alert_index(self._stored)

    def first_alert_step(self) -> float | None:
        """Return the step of the first alert, or None if there was none."""
        return self._history.first_alert_step()

    # -- stored and brought back -------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return all of the state as a JSON-able dict, `history` left out.

        Some 25 KB in a long run. The monitor goes on exactly as the one that `restore` makes.
        """
        rise, first = self._rise, self._history.first_alert
        return {
            "version": SNAPSHOT_VERSION,
            "settings": {name: getattr(self, name) for name in SETTINGS},
            "evidence": self._evidence.state(),
            "pace": self._pace.state(),
            "ledger": self._ledger.state(),
            "rise": None if rise is None else rise.state(),
            "open": [None if e is None else e.state() for e in map(self.__getattribute__, OPEN)],
            "first_alert": None if first is None else list(first),
            "closed": None if self._closed is None else list(self._closed),
            "in_hold": pack(self._in_hold),
            "plain": {name: plain(getattr(self, name)) for name in PLAIN},
        }

    @classmethod
    def restore(
        cls, snapshot: Mapping[str, Any], settings: Mapping[str, Any] | None = None
    ) -> TrendMonitor:
        """Make the monitor that goes on exactly where `snapshot` was taken, with an empty `history`.

        ``settings`` replace stored constructor arguments of the same name; what was learned stays.
        Raises `SnapshotError` for a form this version doesn't read.
        """
        if snapshot.get("version") not in READ_VERSIONS:
            raise SnapshotError(
                f"a trend snapshot of version {snapshot.get('version')!r} can't be read;"
                f" this program reads versions {READ_VERSIONS[0]} and {READ_VERSIONS[1]}"
            )
        try:
            monitor = cls(**{**snapshot["settings"], **(settings or {})})
            monitor._recall(snapshot)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SnapshotError(f"a trend snapshot is damaged: {error!r}") from error
        return monitor

    def _recall(self, snapshot: Mapping[str, Any]) -> None:
        self._evidence = Evidence.revive(snapshot["evidence"])
        self._pace = Pace.revive(snapshot["pace"])
        if self.min_effect is not None:
            self._evidence.min_effect = self.min_effect
        self._ledger = Ledger.revive(snapshot["ledger"])
        self._rise = None if snapshot["rise"] is None else Rise.revive(snapshot["rise"])
        for name, state in zip(OPEN, snapshot["open"], strict=True):
            setattr(self, name, None if state is None else Episode.revive(state))
        if snapshot["first_alert"] is not None:
            index, step = snapshot["first_alert"]
            self._history.first_alert = (int(index), step)
        if snapshot["closed"] is not None:
            number, at, lasted = snapshot["closed"]
            self._closed = (int(number), int(at), int(lasted))
        self._in_hold = unpack(snapshot["in_hold"])
        self._evidence.limit = self._h
        for name in PLAIN:
            setattr(self, name, value(snapshot["plain"][name]))
        self._tail = self._weighed(self._evidence.E)


SETTINGS = ("far", "min_effect", "history_limit")
OPEN = ("_nonfinite", "_frozen")
PLAIN = (
    "_others", "_finite_run", "_held", "_value", "_same", "_repeats", "_calm_stride", "_differed", "_step",
    "_glides", "_first_median", "_lowest_median", "_too_high",
)  # fmt: skip
