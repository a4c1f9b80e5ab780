"""The monitor of one run: which of its points are judged, and what detections come of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Names, Role
from wtwin_watch.model import Detection, Family, Point, Severity
from wtwin_watch.monitor.choice import LossChoice
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.rules import RESOLVED_AFTER, NonFiniteRule, Turn
from wtwin_watch.monitor.wtwin import WTwinMonitor, WTwinState

SNAPSHOT_VERSION = 1
DETECTOR = "classic"


@dataclass(frozen=True, slots=True)
class ClassicOptions:
    """Settings of the published W-Twin method as it watches runs; see `WTwinMonitor`.

    The warm-up is 100 steps, as in the published command and experiments (the class has 50). Raises
    `ValueError` for settings that can't be.
    """

    alpha: float = 2.0
    warmup_steps: float = 100
    n_consec: int = 5
    mad_window: int = 50
    tau: float = 1e-3
    calibration_frac: float = 0.10
    threshold_window: int = 200
    use_adaptive_T: bool = False

    def __post_init__(self) -> None:
        self.monitor()

    def monitor(self, history_limit: int | None = 0) -> WTwinMonitor:
        """Make a monitor of these settings, by default one that keeps no history."""
        return WTwinMonitor(**asdict(self), history_limit=history_limit)


_USUAL_NAMES = Names()
_DEFAULTS = ClassicOptions()


class RunMonitor:
    """Judges the points of one run by the W-Twin method, and watches for a loss that is no number.

    The same points in the same order give the same detections and the same `snapshot`, however they are
    split into calls. A loss point that repeats the one before it, step and value, is dropped; any other
    counts in the order of its arrival, also where its step repeats or falls. One whose step is no finite
    number is judged at the step before it. Numbers in detections are finite or None.

    ``names`` are the metric names a user gave, ``detector`` the settings of the method. ``history_limit``
    is how many states `classic` keeps: none, unless somebody wants to look at them (None keeps all).
    """

    def __init__(
        self,
        names: Names = _USUAL_NAMES,
        detector: ClassicOptions = _DEFAULTS,
        history_limit: int | None = 0,
    ) -> None:
        self._names = names
        self._options = detector
        self._history_limit = history_limit
        self._begin()

    def _begin(self) -> None:
        self._choice = LossChoice(self._names)
        self._classic = self._options.monitor(self._history_limit)
        self._rule = NonFiniteRule()
        self._drifting = False
        self._onset: float | None = None
        self._healthy: float | None = None
        self._last: tuple[float, float] | None = None
        self._points = 0

    def feed(self, points: Iterable[Point]) -> list[Detection]:
        """Judge ``points`` in their order; return what began or ended, each exactly once."""
        detections: list[Detection] = []
        for point in points:
            for loss in self._choice.take(point):
                self._judge(loss, detections)
        return detections

    def flush(self) -> list[Detection]:
        """Judge points still held back because the loss wasn't chosen; to be called at a log's end."""
        detections: list[Detection] = []
        for loss in self._choice.flush():
            self._judge(loss, detections)
        return detections

    def restart(self, step: float | None, reason: str) -> list[Detection]:
        """Take note that the log goes on from ``step``, or starts anew (None).

        Anew: everything is forgotten and what was open ends, with ``reason`` in its summary. A rewind
        takes back only observations still waiting for the fit. The forecast, sigma and open alerts
        stay, so that an alert ends when the repeated stretch turns out well, not because it is repeated.
        """
        if step is not None:
            self._choice.rewind(step)
            self._classic.rewind(step)
            return []
        summary = f"The log starts anew ({reason}), so this is no longer observed."
        detections = []
        if self._rule.active:
            detections.append(self._nonfinite(False, summary))
        if self._drifting:
            detections.append(self._loss(False, summary))
        self._begin()
        return detections

    @property
    def active(self) -> frozenset[Family]:
        """What is wrong now: the families whose last detection began something."""
        wrong = {Family.LOSS: self._drifting, Family.NONFINITE: self._rule.active}
        return frozenset(family for family, is_wrong in wrong.items() if is_wrong)

    @property
    def roles(self) -> dict[Role, str]:
        """Which metric plays which role, of those seen; the loss from when it is chosen."""
        return self._choice.roles

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
    def classic(self) -> WTwinMonitor:
        """The monitor of the method itself, to look at; it belongs to this object."""
        return self._classic

    @property
    def ready(self) -> bool:
        """Whether there is a forecast to judge by."""
        return self._classic.ready

    @property
    def status(self) -> str:
        """What can be said of this run now, and if nothing, why: a sentence for a person."""
        return "no loss seen yet" if self._last is None else self._classic.status

    def _judge(self, point: Point, detections: list[Detection]) -> None:
        step, value = point.step, point.value
        if not math.isfinite(step):
            step = self.last_step or 0.0
        if self._last is not None and _same((step, value), self._last):
            return
        self._last = (step, value)
        self._points += 1
        turn = self._rule.update(step, value)
        if turn is Turn.BEGAN:
            detections.append(self._nonfinite(True, self._bad_summary(step, value)))
        elif turn is Turn.ENDED:
            detections.append(self._nonfinite(False, self._good_summary(), observed=value))
        state = self._classic.update(step, value)
        if math.isfinite(value):
            self._compare(state, detections)

    def _compare(self, state: WTwinState, detections: list[Detection]) -> None:
        """Follow the classic monitor where the loss is finite: a NaN neither begins nor ends a drift."""
        if state.W > 0:
            if self._onset is None:
                self._onset = state.step
        elif not state.alert and not self._drifting:
            self._onset = None
            if self._classic.ready:
                self._healthy = state.step
        if state.alert == self._drifting:
            return
        self._drifting = state.alert
        summary = self._up_summary(state) if state.alert else self._down_summary(state)
        detections.append(self._loss(state.alert, summary, state))
        if not state.alert:
            self._onset, self._healthy = None, state.step

    def _loss(self, active: bool, summary: str, state: WTwinState | None = None) -> Detection:
        sigma = self._classic.sigma
        return Detection(
            family=Family.LOSS,
            kind="drift",
            active=active,
            severity=Severity.WARNING,
            summary=summary,
            detector=DETECTOR,
            metric=self._choice.loss,
            step=self.last_step,
            onset_step=self._onset,
            last_healthy_step=self._healthy,
            observed=_finite(self.last_loss if state is None else state.l_obs),
            expected=None if state is None else _finite(state.l_pred),
            sigma=None if state is None else _finite(sigma),
            score=None if state is None else _finite(state.W),
        )

    def _nonfinite(self, active: bool, summary: str, observed: float | None = None) -> Detection:
        rule = self._rule
        return Detection(
            family=Family.NONFINITE,
            kind="nonfinite",
            active=active,
            severity=Severity.CRITICAL,
            summary=summary,
            detector=DETECTOR,
            metric=self._choice.loss,
            step=self.last_step,
            onset_step=rule.onset,
            last_healthy_step=rule.last_healthy,
            observed=_finite(observed),
            expected=_finite(self._classic.forecast(self.last_step or 0.0)),
            sigma=_finite(self._classic.sigma),
        )

    def _up_summary(self, state: WTwinState) -> str:
        return (
            f"Loss {state.l_obs:.4g} is {state.D:.3g} sigma above its forecast of {state.l_pred:.4g},"
            f" and has been too high since step {_number(self._onset)} (W = {state.W:.3g})."
        )

    def _down_summary(self, state: WTwinState) -> str:
        return (
            f"Loss {state.l_obs:.4g} is within {state.T:.3g} sigma of its forecast of {state.l_pred:.4g}"
            f" again ({state.D:+.3g} sigma); it had been too high since step {_number(self._onset)}."
        )

    def _bad_summary(self, step: float, value: float) -> str:
        what = "NaN" if math.isnan(value) else "infinite"
        healthy = self._rule.last_healthy
        before = "" if healthy is None else f"; the last finite one was at step {_number(healthy)}"
        return f"Loss is {what} at step {_number(step)}{before}."

    def _good_summary(self) -> str:
        rule = self._rule
        return (
            f"Loss has been finite for {RESOLVED_AFTER} points in a row; it was NaN or infinite in"
            f" {rule.bad_points} points from step {_number(rule.onset)} to {_number(rule.last_bad)}."
        )

    def snapshot(self) -> dict[str, Any]:
        """Return all of the state as a JSON-able dict."""
        return {
            "version": SNAPSHOT_VERSION,
            "detector": DETECTOR,
            "choice": self._choice.snapshot(),
            "classic": self._classic.snapshot(),
            "nonfinite": self._rule.snapshot(),
            "drifting": self._drifting,
            "onset": self._onset,
            "healthy": self._healthy,
            "last": pack(self._last or ()),
            "points": self._points,
        }

    @classmethod
    def restore(
        cls, snapshot: Mapping[str, Any], names: Names, detector: ClassicOptions
    ) -> RunMonitor:
        """Make the monitor that goes on where `snapshot` was taken, with the settings as they are now.

        Raises `SnapshotError` for a form this version doesn't read, and where another loss is asked for.
        """
        version, kind = snapshot.get("version"), snapshot.get("detector")
        if (version, kind) != (SNAPSHOT_VERSION, DETECTOR):
            raise SnapshotError(
                f"a run's state of version {version!r}, detector {kind!r}, can't be read;"
                f" this program reads version {SNAPSHOT_VERSION}, detector {DETECTOR!r}"
            )
        monitor = cls(names, detector)
        try:
            monitor._choice = LossChoice.restore(snapshot["choice"], names)
            monitor._classic = WTwinMonitor.restore(snapshot["classic"], asdict(detector))
            monitor._rule = NonFiniteRule.restore(snapshot["nonfinite"])
            monitor._drifting = bool(snapshot["drifting"])
            monitor._onset = snapshot["onset"]
            monitor._healthy = snapshot["healthy"]
            last = unpack(snapshot["last"])
            monitor._last = (last[0], last[1]) if last else None
            monitor._points = int(snapshot["points"])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SnapshotError(f"a run's state is damaged: {error!r}") from error
        return monitor


def _same(one: tuple[float, float], other: tuple[float, float]) -> bool:
    (step, value), (last_step, last_value) = one, other
    both_nan = math.isnan(value) and math.isnan(last_value)
    return step == last_step and (value == last_value or both_nan)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.15g}"
