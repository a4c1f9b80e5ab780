"""The published W-Twin monitor: a forecast fitted early, and how far the loss has left it.

Kretski, D. (2026). W-Twin: Forecast-Based Detection of Progressive Neural Network Training
Degradation. doi:10.5281/zenodo.21842461. Where this differs from the published program, and why, is
said in ``docs/classic.md``.
"""

from __future__ import annotations

import math
import operator
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from wtwin_watch.errors import SnapshotError
from wtwin_watch.monitor.baseline import BaseBaseline, PowerLawBaseline
from wtwin_watch.monitor.history import History
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.robust import ENOUGH, SlidingMad

SNAPSHOT_VERSION = 1
FIT_AFTER = 100
"""So many observations after the warm-up are waited for before the forecast is fitted."""
FIT_MEMORY = 5_000
"""A baseline is fitted on at most so many latest observations: memory stays bounded until then."""
EAGER_ATTEMPTS = 100
"""A baseline that says "not yet" is asked at each observation so often, later ever more rarely."""
D_LIMIT = 1e4
ADAPTIVE_FROM = 10
"""So many deviations are needed for an adaptive threshold."""


class WTwinState(NamedTuple):
    """What the monitor says of one observation.

    ``D`` is the deviation from the forecast in sigma, ``Q`` the confidence in the forecast (0 to 1),
    ``T`` the threshold, ``W = Q (D - T)`` the score; ``l_pred`` is NaN where there is no forecast yet.
    """

    step: float
    l_obs: float
    l_pred: float
    D: float
    Q: float
    T: float
    W: float
    alert: bool


class WTwinMonitor:
    """Watches one loss curve against a power law fitted to its beginning (Kretski, 2026).

    ::

        D = (loss - forecast) / sigma       sigma: robust, of the previous mad_window losses
        Q = exp(-fit_mse / tau)             T: alpha, or adaptive
        W = Q (D - T)                       alert: W > 0 in n_consec observations in a row

    The forecast is fitted once, when 100 observations lie behind the warm-up. An observation costs some
    microseconds however many there were, and memory is bounded but for ``history``.

    A NaN or infinite loss alerts at once (D = W = infinity) and changes nothing else. Every observation
    counts in the order of its arrival, also where its step repeats or falls; one whose step is no
    finite number can't be forecast and is passed over.

    False alarms at the defaults: none in 7 clean nano-GPT runs of 4,500 steps, but a curve that bends
    away from its first hundred steps is forecast too high and the monitor is blind; see ``status``.

    >>> monitor = WTwinMonitor()
    >>> for step in range(1, 400):
    ...     state = monitor.update(step, 2.0 * step**-0.5 + 0.1 + 0.02 * math.sin(step * step))
    >>> monitor.first_alert_step() is None, monitor.ready
    (True, True)

    ``baseline``: the forecast, by default a `PowerLawBaseline` with the settings given here.
    ``mad_window``: observations. ``threshold_window``: observations, of the adaptive threshold.
    ``alpha``: sigma. ``tau``: in the square of the loss's unit. ``n_consec``: observations.
    ``calibration_frac``: share of the observations after the warm-up. ``warmup_steps``: steps.
    ``use_adaptive_T``: T = min(alpha, mean + alpha sd of the last deviations), frozen during an alert.
    ``scale_free`` with ``T_train`` > 0: warmup_steps = max(50, T_train / 200).
    ``history_limit``: keep so many last states; None keeps all, 0 none.

    Raises `ValueError` for settings that can't be.
    """

    def __init__(
        self,
        baseline: BaseBaseline | None = None,
        mad_window: int = 50,
        threshold_window: int = 200,
        alpha: float = 2.0,
        tau: float = 1e-3,
        n_consec: int = 5,
        calibration_frac: float = 0.10,
        warmup_steps: float = 50,
        use_adaptive_T: bool = False,
        scale_free: bool = False,
        T_train: int = 0,
        history_limit: int | None = None,
    ) -> None:
        if scale_free and T_train > 0:
            warmup_steps = max(50, int(0.005 * T_train))
        _check(
            mad_window=(mad_window, mad_window >= ENOUGH, "at least 2"),
            threshold_window=(threshold_window, threshold_window >= ENOUGH, "at least 2"),
            alpha=(alpha, math.isfinite(alpha), "a finite number"),
            tau=(tau, 0 < tau < math.inf, "above 0 and finite"),
            n_consec=(n_consec, n_consec >= 1, "at least 1"),
            calibration_frac=(calibration_frac, 0 < calibration_frac <= 1, "in (0, 1]"),
            warmup_steps=(warmup_steps, 0 <= warmup_steps < math.inf, "at least 0 and finite"),
            T_train=(T_train, T_train >= 0, "at least 0"),
            history_limit=(
                history_limit,
                history_limit is None or history_limit >= 0,
                "at least 0",
            ),
        )
        self.baseline = PowerLawBaseline() if baseline is None else baseline
        if isinstance(self.baseline, PowerLawBaseline):
            self.baseline.adopt(calibration_frac, warmup_steps)
        self.mad_window = mad_window
        self.threshold_window = threshold_window
        self.alpha = alpha
        self.tau = tau
        self.n_consec = n_consec
        self.calibration_frac = calibration_frac
        self.warmup_steps = warmup_steps
        self.use_adaptive_T = use_adaptive_T
        self.scale_free = scale_free
        self.T_train = T_train
        self.history_limit = history_limit
        self._forget()

    def _forget(self) -> None:
        self.sigma = math.nan
        """Sigma of the latest observation that was judged, in the loss's unit; NaN before."""
        self._window = SlidingMad(self.mad_window)
        self._recent_D: deque[float] = deque(maxlen=self.threshold_window)
        self._unfitted: deque[tuple[float, float]] = deque(maxlen=FIT_MEMORY)
        self._n_clean = 0
        self._attempts = 0
        self._refusal = ""
        self._next_attempt = FIT_AFTER
        self._above = 0
        self._frozen_T: float | None = None
        self._history = History(self.history_limit)
        self._stored = 0
        self._last_step = 0.0
        self._stride = 1.0
        self._q: float | None = None
        if self.baseline.is_fitted:
            self._trust()

    def update(self, step: float, loss: float, lr: float | None = None) -> WTwinState:
        """Judge one observation, and learn from it.

        ``lr`` has no part in this method; it is there so that detectors can be exchanged.
        """
        if type(step) is not int and type(step) is not float:
            step = _plain(step)
        loss = float(loss)
        if not math.isfinite(step):
            alert = self._above >= self.n_consec or not math.isfinite(loss)
            return WTwinState(step, loss, math.nan, 0.0, 0.0, 0.0, 0.0, alert)
        if not math.isfinite(loss):
            return self._store(self._not_finite(step, loss))
        if self._q is None:
            self._learn(step, loss)
            if self._q is None:
                self._window.push(loss)
                return WTwinState(step, loss, math.nan, 0.0, 0.0, 0.0, 0.0, False)
        return self._store(self._judge(step, loss, self._q))

    def _judge(self, step: float, loss: float, q: float) -> WTwinState:
        forecast = float(self.baseline.predict(float(step)))
        sigma = self._window.sigma()
        self._window.push(loss)
        self.sigma = sigma
        threshold = self._threshold()
        if math.isnan(forecast):
            alert = self._above >= self.n_consec
            return WTwinState(step, loss, forecast, 0.0, q, threshold, 0.0, alert)
        deviation = (loss - forecast) / sigma
        if deviation > D_LIMIT:
            deviation = D_LIMIT
        elif deviation < -D_LIMIT:
            deviation = -D_LIMIT
        if self.use_adaptive_T:
            self._recent_D.append(deviation)
        score = q * (deviation - threshold)
        self._above = self._above + 1 if score > 0 else 0
        alert = self._above >= self.n_consec
        if not alert:
            self._frozen_T = None
        elif self._frozen_T is None:
            self._frozen_T = threshold
        return WTwinState(step, loss, forecast, deviation, q, threshold, score, alert)

    def _threshold(self) -> float:
        if self._frozen_T is not None:
            return self._frozen_T
        recent = self._recent_D
        if not self.use_adaptive_T or len(recent) < ADAPTIVE_FROM:
            return self.alpha
        # Anew from the window: sums that slide lose the digits of small deviations next to 1e4.
        mean = math.fsum(recent) / len(recent)
        variance = math.fsum([(d - mean) ** 2 for d in recent]) / (len(recent) - 1)
        return min(mean + self.alpha * math.sqrt(variance), self.alpha)

    def _not_finite(self, step: float, loss: float) -> WTwinState:
        forecast, q = self.forecast(step), self._q or 0.0
        return WTwinState(step, loss, forecast, math.inf, q, self._threshold(), math.inf, True)

    def _store(self, state: WTwinState) -> WTwinState:
        self._history.note(state, self._stored)
        self._stored += 1
        self._history.states.append(state)
        return state

    def _learn(self, step: float, loss: float) -> None:
        """Collect towards the fit; try it when enough lies behind the warm-up."""
        stride = step - self._last_step
        if stride > 0:
            self._stride = stride
        self._last_step = step
        self._unfitted.append((step, loss))
        if step <= self.warmup_steps:
            return
        self._n_clean += 1
        if self._n_clean < self._next_attempt:
            return
        self._attempts += 1
        # A fit costs what is remembered. Asked at every observation for ever it would cost that each time.
        pause = max(1, len(self._unfitted) // 64) if self._attempts >= EAGER_ATTEMPTS else 1
        self._next_attempt = self._n_clean + pause
        seen = np.array(self._unfitted, dtype=np.float64)
        if getattr(self.baseline, "positive_only", False):
            seen = seen[seen[:, 1] > 0]
        try:
            self.baseline.fit(seen[:, 0], seen[:, 1])
        except ValueError as error:
            self._refusal = str(error)
            return
        if self.baseline.is_fitted:
            self._trust()

    def _trust(self) -> None:
        """From now on observations are judged; Q stays as it is."""
        exponent = -float(self.baseline.fit_mse) / self.tau
        self._q = 0.0 if math.isnan(exponent) else math.exp(min(exponent, 0.0))
        self._unfitted.clear()
        self._refusal = ""

    @property
    def ready(self) -> bool:
        """Whether there is a forecast to judge by."""
        return self._q is not None

    @property
    def points_needed(self) -> int:
        """About how many more observations it takes until there is a forecast; 0 when there is one."""
        if self._q is not None:
            return 0
        missing = max(1, FIT_AFTER - self._n_clean)
        if self._n_clean == 0:
            missing += int(max(0.0, self.warmup_steps - self._last_step) / self._stride)
        return missing

    @property
    def status(self) -> str:
        """What the monitor can say now, and if nothing, why: a sentence for a person."""
        if self._q is None:
            if self._refusal:
                return f"no forecast yet: {self._refusal}"
            return f"still learning, needs about {self.points_needed} more points"
        if self._q == 0.0:
            return (
                f"can't alert: the forecast's mean squared error of {self.baseline.fit_mse:.3g} leaves it"
                f" no confidence at tau = {self.tau:g}; give a tau of the size of that error"
            )
        return "judging"

    @property
    def history(self) -> list[WTwinState]:
        """The states since there was a forecast, oldest first, and those of non-finite losses before.

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

    def forecast(self, step: float) -> float:
        """Return the loss expected at ``step``; NaN while there is no forecast."""
        return math.nan if self._q is None else float(self.baseline.predict(float(step)))

    def rewind(self, step: float) -> None:
        """Take back what was collected from ``step`` on, because that stretch is logged once more.

        Only observations still waiting for the fit can be taken back. A fitted forecast, the window of
        losses that sigma comes from and the count of observations above the threshold stay.
        """
        kept = [(at, loss) for at, loss in self._unfitted if at < step]
        gone = [at for at, _ in self._unfitted if at >= step]
        self._unfitted = deque(kept, maxlen=FIT_MEMORY)
        self._n_clean -= sum(at > self.warmup_steps for at in gone)
        self._next_attempt = max(FIT_AFTER, self._n_clean + 1)
        self._last_step = kept[-1][0] if kept else 0.0

    def reset(self) -> None:
        """Begin anew: forget all observations and the fit, keep the settings."""
        self.baseline.reset()
        self._forget()

    def snapshot(self) -> dict[str, Any]:
        """Return all of the state as a JSON-able dict, ``history`` included.

        Raises `SnapshotError` for a baseline other than `PowerLawBaseline`.
        """
        if type(self.baseline) is not PowerLawBaseline:
            raise SnapshotError(
                f"a monitor with a baseline of class {type(self.baseline).__name__} has no snapshot;"
                " PowerLawBaseline has one"
            )
        history, first = self._history.states, self._history.first_alert
        return {
            "version": SNAPSHOT_VERSION,
            "settings": {name: getattr(self, name) for name in _SETTINGS},
            "baseline": self.baseline.snapshot(),
            "sigma": None if math.isnan(self.sigma) else self.sigma,
            "window": pack(self._window.arrived),
            "recent_D": pack(self._recent_D),
            "unfitted": [
                pack(step for step, _ in self._unfitted),
                pack(x for _, x in self._unfitted),
            ],
            "n_clean": self._n_clean,
            "attempts": self._attempts,
            "refusal": self._refusal,
            "next_attempt": self._next_attempt,
            "above": self._above,
            "frozen_T": self._frozen_T,
            "stored": self._stored,
            "first_alert": None if first is None else list(first),
            "last_step": self._last_step,
            "stride": self._stride,
            "history": {
                "step": [state.step for state in history],
                "alert": [int(state.alert) for state in history],
                "numbers": pack(number for state in history for number in state[1:7]),
            },
        }

    @classmethod
    def restore(
        cls, snapshot: Mapping[str, Any], settings: Mapping[str, Any] | None = None
    ) -> WTwinMonitor:
        """Make the monitor that goes on exactly where `snapshot` was taken.

        ``settings`` replace stored constructor arguments of the same name; what was learned stays.
        Raises `SnapshotError` for a form this version doesn't read.
        """
        if snapshot.get("version") != SNAPSHOT_VERSION:
            raise SnapshotError(
                f"a W-Twin snapshot of version {snapshot.get('version')!r} can't be read;"
                f" this program reads version {SNAPSHOT_VERSION}"
            )
        try:
            baseline = PowerLawBaseline.restore(snapshot["baseline"])
            monitor = cls(baseline, **{**snapshot["settings"], **(settings or {})})
            monitor._recall(snapshot)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SnapshotError(f"a W-Twin snapshot is damaged: {error!r}") from error
        return monitor

    def _recall(self, snapshot: Mapping[str, Any]) -> None:
        self.sigma = math.nan if snapshot["sigma"] is None else float(snapshot["sigma"])
        self._window = SlidingMad(self.mad_window, unpack(snapshot["window"]))
        self._recent_D.extend(unpack(snapshot["recent_D"]))
        steps, losses = map(unpack, snapshot["unfitted"])
        self._unfitted.extend(zip(steps, losses, strict=True))
        self._n_clean = int(snapshot["n_clean"])
        self._attempts = int(snapshot["attempts"])
        self._refusal = str(snapshot["refusal"])
        self._next_attempt = int(snapshot["next_attempt"])
        self._above = int(snapshot["above"])
        frozen = snapshot["frozen_T"]
        self._frozen_T = None if frozen is None else float(frozen)
        self._history.states.extend(_states(snapshot["history"]))
        self._stored = int(snapshot["stored"])
        if snapshot["first_alert"] is not None:
            index, step = snapshot["first_alert"]
            self._history.first_alert = (int(index), step)
        self._last_step = float(snapshot["last_step"])
        self._stride = float(snapshot["stride"])


_SETTINGS = (
    "mad_window", "threshold_window", "alpha", "tau", "n_consec", "calibration_frac",
    "warmup_steps", "use_adaptive_T", "scale_free", "T_train", "history_limit",
)  # fmt: skip


def _states(history: Mapping[str, Any]) -> Iterator[WTwinState]:
    numbers = unpack(history["numbers"])
    for i, (step, alert) in enumerate(zip(history["step"], history["alert"], strict=True)):
        l_obs, l_pred, d, q, t, w = numbers[6 * i : 6 * i + 6]
        yield WTwinState(step, l_obs, l_pred, d, q, t, w, bool(alert))


def _plain(step: Any) -> float:
    """Turn a step of another library's number type into Python's."""
    try:
        return operator.index(step)
    except TypeError:
        return float(step)


def _check(**settings: tuple[Any, bool, str]) -> None:
    for name, (value, right, rule) in settings.items():
        if not right:
            raise ValueError(f"{name} is {value}; it must be {rule}")
