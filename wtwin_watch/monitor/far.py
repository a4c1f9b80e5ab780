"""How many false alarms are bearable: as points between two, or as a chance for a run."""

from __future__ import annotations

import math
import re

LEAST = 10.0
MOST = 1e12
_NUMBER = r"([0-9][0-9_,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
_PER_POINTS = re.compile(
    rf"(?:{_NUMBER}|one)\s+(?:false\s+alarms?\s+)?(?:per|in)\s+{_NUMBER}\s*(?:points?)?"
)
_PER_RUN = re.compile(rf"{_NUMBER}\s*(%)?\s+(?:per|in\s+a)\s+run\s+of\s+{_NUMBER}\s*(?:points?)?")
_RUNS = re.compile(
    rf"(?:{_NUMBER}|one)\s+(?:per|in)\s+{_NUMBER}\s+runs\s+of\s+{_NUMBER}\s*(?:points?)?"
)


def per_run(chance: float, points: float) -> float:
    """Return the mean points between false alarms at a ``chance`` of one in a run of ``points`` points."""
    if not (0.0 < chance <= 1.0 and points >= 1.0):
        raise ValueError(
            f"a chance of {chance!r} in {points!r} points isn't in (0, 1] of 1 or more"
        )
    return checked(points / chance)


def parse_far(text: str | float) -> float:
    """Read a false-alarm rate; return the mean points between false alarms.

    A number is that already (``1e5``). Also read are ``1 per 100000 points``, ``one in 1e5 points``,
    ``0.01 per run of 20000 points``, ``1% per run of 20000 points`` and ``1 in 1000 runs of 5000 points``.
    Raises `ValueError` for anything else, and outside 10 to 1e12.
    """
    if isinstance(text, (int, float)):
        return checked(float(text))
    words = text.strip().lower()
    if match := re.fullmatch(_NUMBER, words):
        return checked(_number(match[1]))
    if match := _RUNS.fullmatch(words):
        return checked(_number(match[2]) / _number(match[1] or "1") * _number(match[3]))
    if match := _PER_POINTS.fullmatch(words):
        return checked(_number(match[2]) / _number(match[1] or "1"))
    if match := _PER_RUN.fullmatch(words):
        chance = _number(match[1]) / (100.0 if match[2] else 1.0)
        return per_run(chance, _number(match[3]))
    raise ValueError(
        f"can't read {text!r} as a false-alarm rate; write 1e5, '1 per 100000 points' or"
        " '1% per run of 20000 points'"
    )


def checked(points: float) -> float:
    """Return ``points`` if a detector can be held to it, or raise `ValueError`."""
    if not (LEAST <= points <= MOST):
        raise ValueError(f"one false alarm in {points:g} points: give {LEAST:g} to {MOST:g} points")
    return points


def threshold(far: float) -> float:
    """Return the evidence above which there is one false alarm in about ``far`` points."""
    return math.log(far) - 1.5


def _number(text: str) -> float:
    value = float(text.replace(",", "").replace("_", ""))
    if value <= 0.0:
        raise ValueError("a false-alarm rate has no room for 0")
    return value
