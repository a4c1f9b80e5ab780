"""The real clock."""

from __future__ import annotations

import time


class SystemClock:
    """Time of the machine."""

    def time(self) -> float:
        """Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()
