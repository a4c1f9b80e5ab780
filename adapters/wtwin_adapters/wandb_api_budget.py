"""How many requests a W&B host is sent: one budget for all its projects, and the rests it asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

PER_MINUTE = 240
"""Requests a minute in the long run."""
BURST = 60
LONGEST_REST_S = 60.0
"""However long a host asks to be left alone, it is asked again after this."""
_LOW = 50.0
"""Of the 1,000 that ``RateLimit-Remaining`` counts down from."""


class Budget:
    """A bucket of requests that fills with time. Used from many threads."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._left = float(BURST)
        self._filled_at = monotonic()
        self._rests_until = 0.0

    def take(self, until: float) -> bool:
        """Wait for leave to send one request; False where it does not come before ``until``."""
        while True:
            with self._lock:
                wait_s = self._wait_s()
                if wait_s <= 0.0:
                    self._left -= 1.0
                    return True
            if self._monotonic() + wait_s > until:
                return False
            self._sleep(min(wait_s, 1.0))

    def spend(self, requests: int) -> None:
        """Count requests that were sent by another hand; they may leave the bucket in debt."""
        with self._lock:
            self._fill()
            self._left = max(-float(BURST), self._left - requests)

    def note(self, status: int, headers: Mapping[str, str]) -> float:
        """Take in an answer; returns for how many seconds the host wants no more requests."""
        rest_s = 0.0
        remaining = _number(headers.get("RateLimit-Remaining"))
        if remaining is not None and remaining < _LOW:
            rest_s = _number(headers.get("RateLimit-Reset")) or 0.0
        if status in (429, 503):
            asked = _number(headers.get("Retry-After"))
            rest_s = max(rest_s, asked if asked is not None else 5.0 * (status == 429))
        rest_s = min(max(rest_s, 0.0), LONGEST_REST_S)
        with self._lock:
            self._rests_until = max(self._rests_until, self._monotonic() + rest_s)
        return rest_s

    def _wait_s(self) -> float:
        self._fill()
        missing_s = max(0.0, (1.0 - self._left) * 60.0 / PER_MINUTE)
        return max(missing_s, self._rests_until - self._monotonic())

    def _fill(self) -> None:
        now = self._monotonic()
        self._left = min(float(BURST), self._left + (now - self._filled_at) * PER_MINUTE / 60.0)
        self._filled_at = now


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None  # Retry-After may be a date, which nobody's clock agrees on
    return None if value is None or value != value else value
