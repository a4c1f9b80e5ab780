"""Forecasts of one's own for the published method: an exponential floor, and a law of the learning rate.

A baseline is any subclass of `BaseBaseline`; ``fit`` may raise `ValueError` to be asked again later.

    python examples/baselines.py

shows on made-up losses what each is for: a rise that the power law of the published method doesn't see.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wtwin_watch.monitor import BaseBaseline, WTwinMonitor

Floats = NDArray[np.float64]
RATES_TRIED = 60
"""So many time constants, or exponents, are tried; the rest of a law is linear and solved for each."""


class ExponentialFloor(BaseBaseline):
    """``L(t) = c + a exp(-t / tau)``: a loss that settles, as in fine-tuning, where a power law never ends.

    All observations are fitted by least squares, tau from a thirtieth of their span to twice it. ``least``:
    so many observations are waited for.
    """

    def __init__(self, least: int = 100) -> None:
        self.least = least
        self.a, self.c, self.tau = 0.0, math.nan, 1.0
        self._fit_mse, self._fitted = math.inf, False

    def fit(self, steps: Floats, losses: Floats) -> None:
        """Fit a, c and tau. Raises `ValueError` for too few observations and for one and the same step."""
        span = float(np.ptp(steps)) if len(steps) else 0.0
        if len(steps) < self.least or span == 0.0:
            raise ValueError(
                f"{len(steps)} observations over {span:g} steps; {self.least} are needed"
            )
        best = math.inf
        for tau in np.geomspace(span / 30.0, 2.0 * span, RATES_TRIED).tolist():
            (a, c), mse = least_squares([np.exp(-steps / tau), np.ones(len(steps))], losses)
            if mse < best:
                best, self.a, self.c, self.tau = mse, a, c, tau
        self._fit_mse, self._fitted = best, True

    def predict(self, t: Any) -> Any:
        """Return the loss expected at step ``t``."""
        return self.c + self.a * np.exp(-np.asarray(t) / self.tau)

    @property
    def fit_mse(self) -> float:
        """Mean squared residual of the fit."""
        return self._fit_mse

    @property
    def is_fitted(self) -> bool:
        """Whether it has been fitted."""
        return self._fitted


class MultiPowerLaw(BaseBaseline):
    """The multi-power law (Luo et al. 2025, arXiv 2503.12811): a loss under a known learning-rate schedule.

    ::

        L(t) = L0 + A S(t)^-alpha - B sum over k <= t of (lr_(k-1) - lr_k) G(lr_k^-gamma S_k(t))
        G(x) = 1 - (C x + 1)^-beta

    S sums the learning rate from the first step, S_k from step k on, and k begins after the warm-up. L0, A, B
    and alpha are fitted; C, beta and gamma, which the beginning of a run doesn't tell, are of the order that
    the paper found for its models. Where the rate hasn't fallen yet, B isn't known and stays 0.

    ``steps`` and ``rates``: the schedule, as logged or as planned, rising steps to the end of what is to be
    forecast; past it the last value stays. ``least``: so many observations are waited for. A forecast costs
    the same at any step.
    """

    GAMMA, C, BETA = 0.63, 2.0, 0.6
    GRID = 600

    def __init__(self, steps: ArrayLike, rates: ArrayLike, least: int = 400) -> None:
        at, lr = np.asarray(steps, dtype=np.float64), np.asarray(rates, dtype=np.float64)
        if at.ndim != 1 or at.shape != lr.shape or len(at) < 2 or not (np.diff(at) > 0).all():
            raise ValueError("steps must rise, and each needs a learning rate")
        if not (np.isfinite(lr).all() and (lr >= 0).all() and lr.max() > 0):
            raise ValueError("learning rates must be finite, at least 0, and not all 0")
        self.least = least
        # Sums over all steps cost their square; a grid is finest at the beginning, where a loss moves.
        jumps = np.flatnonzero(np.abs(np.diff(lr)) > 0.01 * lr.max())
        even = np.geomspace(max(at[0], 1.0), at[-1], self.GRID).round()
        self.grid = np.unique(np.concatenate([even, at[jumps], at[jumps + 1]]))
        rate = np.interp(self.grid, at, lr)
        self.sums = np.maximum(np.cumsum(rate * np.diff(self.grid, prepend=0.0)), 1e-300)
        self.annealed = self._annealed(rate)
        self.alpha, self.L0, self.A, self.B = 0.5, math.nan, 0.0, 0.0
        self._fit_mse, self._fitted = math.inf, False

    def _annealed(self, rate: Floats) -> Floats:
        """The sum over the falls of the rate, to be multiplied by B."""
        total = np.zeros(len(rate))
        for k in range(int(np.argmax(rate)) + 1, len(rate)):
            fall = rate[k - 1] - rate[k]
            x = max(rate[k], 1e-3 * rate.max()) ** -self.GAMMA * (self.sums[k:] - self.sums[k - 1])
            total[k:] += fall * (1.0 - (self.C * x + 1.0) ** -self.BETA)
        return total

    def fit(self, steps: Floats, losses: Floats) -> None:
        """Fit L0, A, B and alpha to all observations after the peak. Raises `ValueError` for too few."""
        if len(steps) < self.least:
            raise ValueError(f"{len(steps)} observations; {self.least} are needed")
        steps, losses = steps[len(steps) // 4 :], losses[len(losses) // 4 :]
        sums, annealed = self._at(steps)
        best = math.inf
        for alpha in np.linspace(0.05, 2.0, RATES_TRIED).tolist():
            columns = [np.ones(len(steps)), (sums / sums[-1]) ** -alpha, -annealed]
            (low, amplitude, fallen), mse = least_squares(columns, losses, positive=True)
            if mse < best:
                best, self.alpha = mse, alpha
                self.L0, self.A, self.B = low, amplitude * sums[-1] ** alpha, fallen
        self._fit_mse, self._fitted = best, True

    def predict(self, t: Any) -> Any:
        """Return the loss expected at step ``t``."""
        sums, annealed = self._at(t)
        return self.L0 + self.A * sums**-self.alpha - self.B * annealed

    def _at(self, t: Any) -> tuple[Any, Any]:
        return np.interp(t, self.grid, self.sums), np.interp(t, self.grid, self.annealed)

    @property
    def fit_mse(self) -> float:
        """Mean squared residual of the fit."""
        return self._fit_mse

    @property
    def is_fitted(self) -> bool:
        """Whether it has been fitted."""
        return self._fitted


def least_squares(
    columns: list[Floats], losses: Floats, positive: bool = False
) -> tuple[list[float], float]:
    """Return the coefficients and the mean squared residual; with ``positive``, those below 0 become 0."""
    kept = [i for i, column in enumerate(columns) if np.any(column)]
    while True:
        matrix = np.stack([columns[i] for i in kept], axis=1)
        found = np.linalg.lstsq(matrix, losses, rcond=None)[0]
        wrong = [i for i, value in zip(kept, found, strict=True) if value < 0] if positive else []
        if not wrong or len(wrong) == len(kept):
            break
        kept = [i for i in kept if i not in wrong]
    coefficients = [0.0] * len(columns)
    for i, value in zip(kept, found.tolist(), strict=True):
        coefficients[i] = value
    return coefficients, float(np.mean((matrix @ found - losses) ** 2))


def show(what: str, losses: Floats, begins: int, baselines: dict[str, BaseBaseline | None]) -> None:
    """Print when the published method sees a rise of the losses with each of the baselines."""
    print(f"{what}, rising from step {begins} on:")
    for name, baseline in baselines.items():
        monitor = WTwinMonitor(baseline=baseline, warmup_steps=100)
        for step, loss in enumerate(losses.tolist(), 1):
            monitor.update(step, loss)
        first = monitor.first_alert_step()
        seen = "never" if first is None else f"at step {first}"
        print(
            f"  {name:<18} alert {seen}; forecast for the end {monitor.forecast(len(losses)):.3f}"
        )


def main() -> None:
    """Show both."""
    t = np.arange(1.0, 3001.0)
    noise = np.random.default_rng(0).normal(0.0, 0.01, len(t))
    rise = 0.0003 * np.maximum(0.0, t - 2000.0)
    settles = 0.6 + 1.5 * np.exp(-t / 150.0)
    baselines: dict[str, BaseBaseline | None] = {
        "power law": None,
        "exponential floor": ExponentialFloor(least=400),
    }
    show("a fine-tuning that settles", settles + noise + rise, 2000, baselines)
    rates = 3e-4 * np.minimum(t / 100.0, np.minimum(1.0, (3600.0 - t) / 3000.0))
    law = MultiPowerLaw(t, rates)
    law.L0, law.A, law.B, law.alpha = 0.8, 0.2, 300.0, 0.5
    falls = np.asarray(law.predict(t)) + noise + rise
    baselines = {"power law": None, "multi-power law": MultiPowerLaw(t, rates, least=1200)}
    show("a loss under a falling learning rate", falls, 2000, baselines)


if __name__ == "__main__":
    main()
