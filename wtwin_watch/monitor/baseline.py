"""Forecasts of the loss: what a baseline has to offer, and the power law of the W-Twin method."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

FIT_POINTS = 5
"""A power law is never fitted to fewer points."""
FLAT_RANGE = 0.05
"""A window whose range is below this share of its mean is taken as flat."""
FLAT_EXPONENT = 0.05
"""A fitted decay no steeper than this is taken as flat."""
MIN_LOG_SPAN = 0.01
"""The shortest window of log steps that a slope is read from: ten steps from step 1,000 on.

On such a window a noise of 1 % in the loss moves the exponent by about 1, so it says nothing; on the
thousandth part of it (a run resumed at step 100,001) it makes the coefficients overflow.
"""


class BaseBaseline(ABC):
    """A causal forecast of the loss, fitted once by the monitor on what it has seen.

    ``fit`` may raise `ValueError` to say "not yet": the monitor asks again at later observations. A
    baseline that is fitted already is used as it is, from the first observation on.
    """

    positive_only: ClassVar[bool] = False
    """``fit`` can use only observations whose loss is positive; it is given no others."""

    @abstractmethod
    def fit(self, steps: Floats, losses: Floats) -> None:
        """Fit on the observations so far, in the order of their arrival, all of them finite."""

    @abstractmethod
    def predict(self, t: Any) -> Any:
        """Return the loss expected at step ``t``, a number or an array."""

    @property
    @abstractmethod
    def fit_mse(self) -> float:
        """Mean squared residual of the fit; the method's confidence Q comes from it."""

    @property
    @abstractmethod
    def is_fitted(self) -> bool:
        """Whether `predict` may be called."""

    def reset(self) -> None:
        """Forget the fit. This default serves baselines that note it in ``_fitted``."""
        if hasattr(self, "_fitted"):
            self._fitted = False


class PowerLawBaseline(BaseBaseline):
    """``L(t) = a t^-b + c``, read off the earliest tenth of the observations after the warm-up.

    The floor ``c`` is 0.8 times the smallest loss of the window; ``a`` and ``b`` are the straight line
    through ``log(L - c)`` over ``log t``. A window that is flat, rises, or spans too few log steps to
    carry a slope is forecast by its mean (``a`` = 0).

    ``calibration_frac``: share of the observations after the warm-up to fit, in (0, 1]; at least five
    are taken. ``warmup_steps``: the last step of the warm-up. Where one isn't given, it is that of the
    monitor, or 0.10 and 50 on its own.
    """

    positive_only = True

    def __init__(
        self, calibration_frac: float | None = None, warmup_steps: float | None = None
    ) -> None:
        self._given = (calibration_frac, warmup_steps)
        self.calibration_frac = 0.10
        self.warmup_steps: float = 50
        self.adopt(0.10, 50)
        self.a = 0.0
        self.b = 0.0
        self.c = 0.0
        self._fit_mse = math.inf
        self._fitted = False

    def __repr__(self) -> str:
        return (
            f"PowerLawBaseline(calibration_frac={self.calibration_frac},"
            f" warmup_steps={self.warmup_steps})"
        )

    def adopt(self, calibration_frac: float, warmup_steps: float) -> None:
        """Take a monitor's settings where none were given at construction. Raises `ValueError`."""
        own_frac, own_warmup = self._given
        self.calibration_frac = calibration_frac if own_frac is None else own_frac
        self.warmup_steps = warmup_steps if own_warmup is None else own_warmup
        if not 0 < self.calibration_frac <= 1:
            raise ValueError(f"calibration_frac is {self.calibration_frac}; it must lie in (0, 1]")
        if not self.warmup_steps >= 0:
            raise ValueError(f"warmup_steps is {self.warmup_steps}; it can't be below 0")

    def fit(self, steps: ArrayLike, losses: ArrayLike) -> None:
        """Fit on the earliest part after the warm-up.

        Raises `ValueError`, and leaves the former state, for fewer than five observations there, for
        a loss in the window that isn't positive, and for coefficients that aren't finite.
        """
        t = np.asarray(steps, dtype=np.float64)
        loss = np.asarray(losses, dtype=np.float64)
        after = t > self.warmup_steps
        t, loss = t[after], loss[after]
        if len(t) < FIT_POINTS:
            raise ValueError(
                f"{len(t)} usable observations after step {self.warmup_steps:g}, {FIT_POINTS} needed"
            )
        n = max(FIT_POINTS, int(len(t) * self.calibration_frac))
        t, loss = t[:n], loss[:n]
        if not (loss > 0).all():
            raise ValueError("a loss in the fit window is not above 0")
        with np.errstate(all="ignore"):
            a, b, c = _power_law(t, loss)
            mse = float(np.mean((loss - (a * t**-b + c)) ** 2))
        if not all(map(math.isfinite, (a, b, c, mse))):
            raise ValueError("the power law through the fit window has no finite coefficients")
        self.a, self.b, self.c, self._fit_mse, self._fitted = a, b, c, mse, True

    def predict(self, t: Any) -> Any:
        """Return the forecast at step ``t``. Raises `RuntimeError` before the fit."""
        if not self._fitted:
            raise RuntimeError("the baseline isn't fitted; call fit() first")
        if isinstance(t, int | float):
            try:
                return self.a * max(t, 1e-8) ** -self.b + self.c
            except OverflowError:
                return math.inf
        with np.errstate(over="ignore"):
            return self.a * np.maximum(t, 1e-8) ** -self.b + self.c

    @property
    def fit_mse(self) -> float:
        """Mean squared residual on the fit window; infinite before the fit."""
        return self._fit_mse

    @property
    def is_fitted(self) -> bool:
        """Whether the coefficients are there."""
        return self._fitted

    @property
    def coefficients(self) -> dict[str, float]:
        """The fitted ``a``, ``b`` and ``c``."""
        return {"a": self.a, "b": self.b, "c": self.c}

    def snapshot(self) -> dict[str, Any]:
        """Return the fit as a JSON-able dict."""
        fit = [self.a, self.b, self.c, self._fit_mse] if self._fitted else None
        return {"given": list(self._given), "fit": fit}

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> PowerLawBaseline:
        """Make the baseline whose `snapshot` this is."""
        baseline = cls(*snapshot["given"])
        if snapshot["fit"] is not None:
            a, b, c, mse = map(float, snapshot["fit"])
            baseline.a, baseline.b, baseline.c, baseline._fit_mse = a, b, c, mse
            baseline._fitted = True
        return baseline


def _power_law(t: Floats, loss: Floats) -> tuple[float, float, float]:
    mean = float(np.mean(loss))
    flat = (0.0, 1.0, mean)
    if float(np.max(loss) - np.min(loss)) < FLAT_RANGE * mean:
        return flat
    log_t = np.log(t)
    if float(np.max(log_t) - np.min(log_t)) < MIN_LOG_SPAN:
        return flat
    c = max(0.0, 0.8 * float(np.min(loss)))
    slope, intercept = np.polyfit(log_t, np.log(np.maximum(loss - c, 1e-6)), 1)
    b = -float(slope)
    if b <= FLAT_EXPONENT:
        return flat
    return float(np.exp(intercept)), b, c
