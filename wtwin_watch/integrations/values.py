"""Numbers as training loops have them: plain ones, tensors and arrays."""

from __future__ import annotations

from typing import Any


def number(value: Any) -> float:
    """Read a number, or a tensor or array that holds one.

    Raises `TypeError` for anything else.
    """
    if type(value) is float:
        return value
    try:
        item = getattr(value, "item", None)
        return float(value if item is None else item())
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{type(value).__name__} is not one number: {error}") from error
