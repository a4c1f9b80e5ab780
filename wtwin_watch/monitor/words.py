"""Numbers in sentences, and in detections: finite or None."""

from __future__ import annotations

import math


def finite(value: float | None) -> float | None:
    """Return ``value``, or None where it is no finite number."""
    return value if value is not None and math.isfinite(value) else None


def step_text(value: float | None) -> str:
    """Write a step: 300, not 300.0."""
    return "?" if value is None else f"{value:.15g}"


def what_it_is(value: float) -> str:
    """Say what a number that isn't finite is."""
    return "NaN" if math.isnan(value) else "infinite"


def amount(excess: float, sigma: float) -> str:
    """Write an excess in its own unit and in sigma."""
    in_sigma = f" ({excess / sigma:.3g} sigma)" if sigma > 0.0 and math.isfinite(sigma) else ""
    return f"{excess:.3g}{in_sigma}"
