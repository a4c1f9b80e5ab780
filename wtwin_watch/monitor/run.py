"""The monitor of one run: which of its points are judged, and what detections come of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Names, Role, choose, wanted
from wtwin_watch.model import Detection, Family, Point, Severity
from wtwin_watch.monitor import findings
from wtwin_watch.monitor.board import Board
from wtwin_watch.monitor.choice import RoleChoice
from wtwin_watch.monitor.classic_loss import SIGNAL, ClassicLoss
from wtwin_watch.monitor.grad_norm import GradNormRule
from wtwin_watch.monitor.missing import MissingRule
from wtwin_watch.monitor.options import ClassicOptions, DetectorOptions, TrendOptions
from wtwin_watch.monitor.overfit import OVERFIT, OverfitRule
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.rises import RISE
from wtwin_watch.monitor.rules import NonFiniteRule, Turn
from wtwin_watch.monitor.throughput import ThroughputRule
from wtwin_watch.monitor.trend import TrendMonitor
from wtwin_watch.monitor.trend_loss import TrendLoss
from wtwin_watch.monitor.words import finite
from wtwin_watch.monitor.wtwin import WTwinMonitor, WTwinState
from wtwin_watch.monitor.zero import ZeroRule

__all__ = ["ClassicOptions", "DetectorOptions", "RunMonitor", "TrendOptions"]

SNAPSHOT_VERSION = 2
COMPANIONS = (Role.GRAD_NORM, Role.VAL_LOSS, Role.THROUGHPUT)
KNOWS_LR_AT = 2
"""At the loss's second point a full row was seen: a learning rate that isn't there by then comes too late."""

_LEVELS = {
    Family.LOSS: frozenset({SIGNAL, RISE, OVERFIT}),
    Family.PROGRESS: frozenset({"throughput"}),
}
"""The signals about a level that can be taken as normal."""

_USUAL_NAMES = Names()
_DEFAULTS = TrendOptions()


class RunMonitor:
    """Judges the points of one run: its loss by the trend detector or the published one, and by rules.

    The same points in the same order give the same detections and the same `snapshot`, however they are
    split into calls; and a monitor whose `snapshot` was taken goes on exactly as the one that `restore`
    makes of it. A loss point that repeats the one before it, step and value, is dropped; any other
    counts in the order of its arrival, also where its step repeats or falls. One whose step is no finite
    number is judged at the step before it. Numbers in detections are finite or None.

    Besides the loss: its being no number, exactly zero or missing; a validation loss that rises while the
    loss falls; a throughput that drops; a gradient norm that isn't finite. The learning rate is the loss's
    clock. In each family at most one detection is open at a time; others that agree are its evidence.

    ``names`` are the metric names a user gave, ``detector`` the settings of the method. ``history_limit``
    is how many states of the loss are kept: none, unless somebody wants to look at them (None keeps all).
    """

    def __init__(
        self,
        names: Names = _USUAL_NAMES,
        detector: DetectorOptions = _DEFAULTS,
        history_limit: int | None = 0,
    ) -> None:
        self._names = names
        self._options = detector
        self._history_limit = history_limit
        self._begin()

    def _begin(self) -> None:
        names, options = self._names, self._options
        self._choice = RoleChoice(Role.LOSS, names)
        self._companions = {role: RoleChoice(role, names) for role in COMPANIONS}
        self._seen: dict[str, None] = {}
        self._rates: dict[str, float] = {}
        """The latest value of each learning rate seen."""
        self._rate: str | None = None
        """The learning rate that is the clock."""
        self._loss: ClassicLoss | TrendLoss = (
            TrendLoss(options, self._history_limit)
            if isinstance(options, TrendOptions)
            else ClassicLoss(options, self._history_limit)
        )
        self._nonfinite = NonFiniteRule()
        self._zero = ZeroRule()
        self._missing = MissingRule()
        self._grad_norm = GradNormRule()
        self._overfit: OverfitRule | None = None
        """Made when there is a validation loss: it holds a monitor of its own."""
        self._throughput = ThroughputRule()
        self._board = Board()
        self._last: tuple[float, float] | None = None
        self._points = 0

    def feed(self, points: Iterable[Point]) -> list[Detection]:
        """Judge ``points`` in their order; return what began, changed or ended, each exactly once."""
        told: list[Detection] = []
        for point in points:
            name = point.metric
            if name not in self._seen and wanted(name, self._names):
                self._seen[name] = None
            if math.isfinite(point.step) and self._missing.row(point.step) is Turn.BEGAN:
                self._tell("missing", findings.missing(self._missing, True, point.step), told)
            for loss in self._choice.take(point):
                self._judge(loss, told)
            if name != self._choice.metric:
                self._accompany(point, told)
        return told

    def flush(self) -> list[Detection]:
        """Judge points still held back because the loss wasn't chosen; to be called at a log's end."""
        told: list[Detection] = []
        for loss in self._choice.flush():
            self._judge(loss, told)
        self._tell_all(self._loss.flush(), told)
        for role, choice in self._companions.items():
            for point in choice.flush():
                self._judge_companion(role, point, told)
        return told

    def settle(self) -> list[Detection]:
        """Judge a first row that has stayed the only one for a while, if its loss is no finite number.

        Which metric is the loss is then chosen by that row alone. Of a number by itself nothing can be
        said, so such a row goes on waiting for the next.
        """
        told: list[Detection] = []
        for loss in self._choice.flush() if self._choice.holds_no_number else ():
            self._judge(loss, told)
        return told

    def restart(self, step: float | None, reason: str) -> list[Detection]:
        """Take note that the log goes on from ``step``, or starts anew (None).

        Anew: everything is forgotten and what was open ends, with ``reason`` in its summary. A rewind
        takes back only points still held back or waiting for a fit; the monitors see by the steps that
        they fall. Open alerts stay, so that one ends when the repeated stretch turns out well, not
        because it is repeated.
        """
        if step is not None:
            for choice in (self._choice, *self._companions.values()):
                choice.rewind(step)
            self._loss.rewind(step)
            return []
        summary = f"The log starts anew ({reason}), so this is no longer observed."
        ended = self._board.end(summary, self.last_step)
        self._begin()
        return ended

    def note(self, signal: str, found: Detection) -> list[Detection]:
        """Take a finding from outside among its own, as ``signal``; return what is to be told."""
        return self._board.take(signal, found)

    def accept(self, family: Family) -> list[Detection] | None:
        """Take what is too high or too low in ``family`` as the new normal; return what is to be told.

        None, and nothing is changed, where nothing there is a level that could be normal: a loss that
        isn't finite, is frozen, exactly 0 or missing, has stopped falling, or steps that don't come.
        """
        if self._last is None or not self._board.signals(family) & _LEVELS.get(family, frozenset()):
            return None
        step, value = self._last
        told: list[Detection] = []
        if family is Family.LOSS:
            self._tell_all(self._loss.accept(step, value), told)
            if self._overfit is not None:
                self._tell_all(self._overfit.accept(step), told)
        elif self._throughput.accept():
            self._tell("throughput", findings.throughput(self._throughput, False, step), told)
        return told

    @property
    def rise_evidence(self) -> float | None:
        """Evidence that the loss is too high by more than chance, in nats (`TrendMonitor.rise_evidence`).

        At most 40, which is as good as certainty. None while it isn't, and where the detector gives none.
        """
        return self._loss.strength if isinstance(self._loss, TrendLoss) else None

    @property
    def findings(self) -> list[Detection]:
        """What is wrong now: one detection a family, as it was when it began or changed."""
        return self._board.findings

    @property
    def active(self) -> frozenset[Family]:
        """What is wrong now: the families whose last detection began something."""
        return self._board.active

    @property
    def roles(self) -> dict[Role, str]:
        """Which metric plays which role, of those seen; the loss from when it is chosen."""
        roles = choose(self._seen, self._names)
        roles.pop(Role.LOSS, None)
        for role, choice in ((Role.LOSS, self._choice), *self._companions.items()):
            if choice.metric is not None and choice.metric in self._seen:
                roles[role] = choice.metric
        if self._rate is not None:
            roles[Role.LR] = self._rate
        return roles

    @property
    def last_step(self) -> float | None:
        """Step of the latest loss point judged."""
        return None if self._last is None else self._last[0]

    @property
    def last_loss(self) -> float | None:
        """The latest loss judged; may be NaN or infinite."""
        return None if self._last is None else self._last[1]

    @property
    def points(self) -> int:
        """How many loss points were judged, since the start or the latest beginning anew."""
        return self._points

    @property
    def loss_monitor(self) -> WTwinMonitor | TrendMonitor:
        """The monitor of the loss itself, to look at; it belongs to this object."""
        return self._loss.monitor

    @property
    def judged(self) -> list[WTwinState]:
        """The states kept of loss points that were judged; empty where no history is kept."""
        return self._loss.judged

    @property
    def ready(self) -> bool:
        """Whether there is a forecast to judge by."""
        return self._loss.monitor.ready

    @property
    def status(self) -> str:
        """What can be said of this run now, and if nothing, why: a sentence for a person."""
        return "no loss seen yet" if self._last is None else self._loss.monitor.status

    # -- the loss ----------------------------------------------------------------------------------

    def _judge(self, point: Point, told: list[Detection]) -> None:
        step, value = point.step, point.value
        if not math.isfinite(step):
            step = self.last_step or 0.0
        if self._missing.loss(step) is Turn.ENDED:
            self._tell("missing", findings.missing(self._missing, False, step), told)
        if self._last is not None and _same((step, value), self._last):
            return
        self._last = (step, value)
        self._points += 1
        turn = self._nonfinite.update(step, value)
        if turn is not None:
            found = findings.nonfinite(self._nonfinite, turn is Turn.BEGAN, step, value)
            self._tell("loss", self._with_forecast(found), told)
        if math.isfinite(value):
            turn = self._zero.update(step, value)
            if turn is not None:
                found = findings.zero(self._zero, turn is Turn.BEGAN, step, value)
                self._tell("zero", self._with_forecast(found), told)
            if self._zero.suspicious and isinstance(self._loss, TrendLoss):
                return  # such a zero is no loss: the trend is not to follow it
            if self._overfit is not None:
                self._overfit.train(value)
        self._tell_all(self._loss.update(step, value, self._learning_rate()), told)

    def _learning_rate(self) -> float | None:
        if self._rate is None:
            if self._points > KNOWS_LR_AT or not self._rates:
                return None
            self._rate = choose(self._rates, self._names)[Role.LR]
        return self._rates[self._rate]

    # -- the metrics beside it ---------------------------------------------------------------------

    def _accompany(self, point: Point, told: list[Detection]) -> None:
        name = point.metric
        if name in self._rates:
            if name == self._rate or self._points <= KNOWS_LR_AT:
                self._rates[name] = point.value
            return
        if name not in self._seen:
            return
        if self._points <= KNOWS_LR_AT and choose([name], self._names).keys() == {Role.LR}:
            self._rates[name] = point.value
            return
        for role, choice in self._companions.items():
            for taken in choice.take(point):
                self._judge_companion(role, taken, told)

    def _judge_companion(self, role: Role, point: Point, told: list[Detection]) -> None:
        step, value = point.step, point.value
        if not math.isfinite(step):
            return
        if role is Role.GRAD_NORM:
            turn = self._grad_norm.update(step, value)
            if turn is not None:
                found = findings.grad_norm(self._grad_norm, turn is Turn.BEGAN, step, value)
                self._tell("grad_norm", replace(found, metric=point.metric), told)
        elif role is Role.THROUGHPUT:
            turn = self._throughput.update(step, value)
            if turn is not None:
                found = findings.throughput(self._throughput, turn is Turn.BEGAN, step)
                self._tell("throughput", replace(found, metric=point.metric), told)
        else:
            if self._overfit is None:
                self._overfit = OverfitRule(self._val_options)
            for signal, found in self._overfit.update(step, value):
                self._tell(signal, replace(found, metric=point.metric), told)

    @property
    def _val_options(self) -> TrendOptions:
        return self._options if isinstance(self._options, TrendOptions) else _DEFAULTS

    # -- what is told ------------------------------------------------------------------------------

    def _with_forecast(self, found: Detection) -> Detection:
        expected = self._loss.expected(self.last_step or 0.0)
        return replace(found, expected=finite(expected), sigma=finite(self._loss.monitor.sigma))

    def _tell_all(self, found: Sequence[tuple[str, Detection]], told: list[Detection]) -> None:
        for signal, one in found:
            self._tell(signal, one, told)

    def _tell(self, signal: str, found: Detection, told: list[Detection]) -> None:
        if found.metric is None:
            found = replace(found, metric=self._choice.metric)
        for one in self._board.take(signal, found):
            if one.active and one.family in (Family.LOSS, Family.NONFINITE):
                validation = () if self._overfit is None else self._overfit.evidence
                gradient = () if signal == "grad_norm" else self._grad_norm.evidence
                witnesses = gradient + validation
                told.append(replace(one, evidence=one.evidence + witnesses))
            else:
                told.append(one)

    # -- stored and brought back -------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return all of the state as a JSON-able dict."""
        return {
            "version": SNAPSHOT_VERSION,
            "detector": self._options.name,
            "choice": self._choice.snapshot(),
            "companions": {role.value: c.snapshot() for role, c in self._companions.items()},
            "seen": list(self._seen),
            "rates": [list(self._rates), pack(self._rates.values())],
            "rate": self._rate,
            "loss": self._loss.snapshot(),
            "nonfinite": self._nonfinite.snapshot(),
            "zero": self._zero.snapshot(),
            "missing": self._missing.snapshot(),
            "grad_norm": self._grad_norm.snapshot(),
            "overfit": None if self._overfit is None else self._overfit.snapshot(),
            "throughput": self._throughput.snapshot(),
            "board": self._board.snapshot(),
            "last": pack(self._last or ()),
            "points": self._points,
        }

    @classmethod
    def restore(
        cls, snapshot: Mapping[str, Any], names: Names, detector: DetectorOptions
    ) -> RunMonitor:
        """Make the monitor that goes on where `snapshot` was taken, with the settings as they are now.

        Raises `SnapshotError` for a form this version doesn't read, and where another loss or another
        detector is asked for.
        """
        version, kind = snapshot.get("version"), snapshot.get("detector")
        if version not in (1, SNAPSHOT_VERSION) or kind != detector.name:
            raise SnapshotError(
                f"a run's state of version {version!r}, detector {kind!r}, can't be read;"
                f" this program reads versions 1 and {SNAPSHOT_VERSION}, detector {detector.name!r}"
            )
        monitor = cls(names, detector)
        try:
            if version == 1:
                monitor._recall_first_form(snapshot)
            else:
                monitor._recall(snapshot)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SnapshotError(f"a run's state is damaged: {error!r}") from error
        return monitor

    def _recall(self, snapshot: Mapping[str, Any]) -> None:
        names, options = self._names, self._options
        self._choice = RoleChoice.restore(Role.LOSS, names, snapshot["choice"])
        self._companions = {
            role: RoleChoice.restore(role, names, snapshot["companions"][role])
            for role in COMPANIONS
        }
        self._seen = dict.fromkeys(snapshot["seen"])
        rates, values = snapshot["rates"]
        self._rates = dict(zip(rates, unpack(values), strict=True))
        self._rate = snapshot["rate"]
        self._loss = (
            TrendLoss.restore(options, snapshot["loss"])
            if isinstance(options, TrendOptions)
            else ClassicLoss.restore(options, snapshot["loss"])
        )
        self._nonfinite = NonFiniteRule.restore(snapshot["nonfinite"])
        self._zero = ZeroRule.restore(snapshot["zero"])
        self._missing = MissingRule.restore(snapshot["missing"])
        self._grad_norm = GradNormRule.restore(snapshot["grad_norm"])
        if snapshot["overfit"] is not None:
            self._overfit = OverfitRule.restore(self._val_options, snapshot["overfit"])
        self._throughput = ThroughputRule.restore(snapshot["throughput"])
        self._board = Board.restore(snapshot["board"])
        self._recall_last(snapshot)

    def _recall_first_form(self, snapshot: Mapping[str, Any]) -> None:
        """Read the form of the program's first version, which had the published method and one rule."""
        if not isinstance(self._options, ClassicOptions):
            raise TypeError("the first form holds the published method")
        choice = {"metric": snapshot["choice"]["loss"], **snapshot["choice"]}
        self._choice = RoleChoice.restore(Role.LOSS, self._names, choice)
        self._seen = dict.fromkeys(snapshot["choice"]["seen"])
        self._loss = ClassicLoss.restore(
            self._options, {**snapshot, "monitor": snapshot["classic"]}
        )
        self._nonfinite = NonFiniteRule.restore(snapshot["nonfinite"])
        self._recall_last(snapshot)
        # What was open has been told, so its end must be too.
        step = self.last_step or 0.0
        metric = self._choice.metric
        if self._nonfinite.active:
            found = findings.nonfinite(self._nonfinite, True, step, math.nan)
            self._board.take("loss", replace(found, metric=metric))
        if snapshot["drifting"]:
            found = Detection(
                Family.LOSS, "drift", True, Severity.WARNING, "Loss is above its forecast.",
                self._options.name, metric, step,
            )  # fmt: skip
            self._board.take(SIGNAL, found)

    def _recall_last(self, snapshot: Mapping[str, Any]) -> None:
        last = unpack(snapshot["last"])
        self._last = (last[0], last[1]) if last else None
        self._points = int(snapshot["points"])


def _same(one: tuple[float, float], other: tuple[float, float]) -> bool:
    (step, value), (last_step, last_value) = one, other
    both_nan = math.isnan(value) and math.isnan(last_value)
    return step == last_step and (value == last_value or both_nan)
