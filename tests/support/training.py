"""Losses as tests need them: what a healthy run logs, and what is surely wrong.

Each is a list to be logged step by step. A NaN is alerted about at once, and 64 finite losses in a row end
that alert. A healthy loss goes on where it was: one that begins anew is a jump, and so not healthy.
"""

from __future__ import annotations

import math

NAN = [math.nan, math.nan]
FINITE_TO_RECOVER = 64


def healthy(count: int, start: int = 0, level: float = 2.0) -> list[float]:
    """Losses that fall slowly to ``level`` from a unit above it, with a small ripple."""
    return [
        level + math.exp(-step / 150.0) + 0.01 * math.sin(1.7 * step)
        for step in range(start, start + count)
    ]
