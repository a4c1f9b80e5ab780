"""How many requests a W&B host is sent: one budget for all its projects, and the rests it asks for."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping

PER_MINUTE = 240.0
"""Requests a minute in the long run, where the settings don't say it."""
BURST = 60
LONGEST_REST_S = 60.0
"""However long a host asks to be left alone, it is asked again after this."""
_USUAL_REST_S = 5.0
_TOO_MANY, _UNAVAILABLE = 429, 503
_LOW = 50.0
"""Of the 1,000 that ``RateLimit-Remaining`` counts down from."""


class Budget:
    """A bucket of requests that fills with time. Used from many threads."""

    def __init__(
        self,
        per_minute: float = PER_MINUTE,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._per_minute = per_minute
        self._left = float(BURST)
        self._filled_at = monotonic()
        self._rests_until = 0.0

    def limit(self, per_minute: float) -> None:
        """Send no more than this in a minute; the least of what is asked for counts."""
        with self._lock:
            self._per_minute = min(self._per_minute, per_minute)

    def take(self, until: float) -> bool:
        """Wait for leave to send one request; False where it does not come before ``until``."""
        while True:
            with self._lock:
                wait_s = self._wait_s()
                if self._monotonic() + wait_s > until:
                    return False
                if wait_s <= 0.0:
                    self._left -= 1.0
                    return True
            self._sleep(min(wait_s, 1.0))

    @property
    def rest_s(self) -> float:
        """For how long no request is to be sent, seconds."""
        with self._lock:
            return max(0.0, self._wait_s())

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
        asked_s = _number(headers.get("Retry-After"))
        if status == _TOO_MANY and asked_s is None:
            asked_s = _USUAL_REST_S
        if status in (_TOO_MANY, _UNAVAILABLE):
            rest_s = max(rest_s, asked_s or 0.0)
        rest_s = min(max(rest_s, 0.0), LONGEST_REST_S)
        with self._lock:
            self._rests_until = max(self._rests_until, self._monotonic() + rest_s)
        return rest_s

    def _wait_s(self) -> float:
        self._fill()
        missing_s = max(0.0, (1.0 - self._left) * 60.0 / self._per_minute)
        return max(missing_s, self._rests_until - self._monotonic())

    def _fill(self) -> None:
        now = self._monotonic()
        self._left = min(
            float(BURST), self._left + (now - self._filled_at) * self._per_minute / 60.0
        )
        self._filled_at = now


def _number(text: str | None) -> float | None:
    # Retry-After may be a date, which needs clocks that agree: the usual rest is taken then.
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return None if math.isnan(value) else value
