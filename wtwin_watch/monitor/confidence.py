"""How often a suggestion was right where the failure was known: measured shares, no invented numbers.

The table is printed by ``python -m benchmarks.confidence``, which injects failures into synthetic runs and,
where WTWIN_WATCH_CORPUS is set, into real clean logs, and counts how often the first alert's kind names
the right type of failure. An alert before the failure, or without one, counts as wrong. The shares hold
for that mixture of failures; where false alarms are more frequent than failures they are lower.
"""

from __future__ import annotations

from typing import NamedTuple

ENOUGH = 10
"""Fewer cases say nothing."""
SIZES = ((3.0, "small"), (10.0, "medium"))


class Cases(NamedTuple):
    """How many suggestions there were, and how many of them were right."""

    right: int
    of: int


TABLE: dict[tuple[str, str, str], Cases] = {
    ("classic", "abrupt_spike", "large"): Cases(125, 126),
    ("classic", "abrupt_spike", "medium"): Cases(50, 53),
    ("classic", "abrupt_spike", "small"): Cases(2, 2),
    ("classic", "gradual_drift", "large"): Cases(2, 2),
    ("classic", "gradual_drift", "medium"): Cases(84, 86),
    ("classic", "gradual_drift", "small"): Cases(26, 27),
    ("classic", "nonfinite", "large"): Cases(98, 98),
    ("trend", "divergence", "large"): Cases(91, 91),
    ("trend", "drift", "large"): Cases(66, 67),
    ("trend", "drift", "medium"): Cases(147, 149),
    ("trend", "drift", "small"): Cases(180, 193),
    ("trend", "level_shift", "large"): Cases(57, 57),
    ("trend", "level_shift", "medium"): Cases(49, 50),
    ("trend", "level_shift", "small"): Cases(43, 54),
    ("trend", "nonfinite", "large"): Cases(118, 118),
    ("trend", "spike", "large"): Cases(218, 218),
    ("trend", "spike", "medium"): Cases(162, 169),
    ("trend", "spike", "small"): Cases(93, 132),
}
"""(detector, kind, size) → cases; of 59 curves, 29 of them real, with 32 cases each."""


def size_of(excess_sigma: float | None) -> str:
    """Name the size of an excess: small to 3 sigma, medium to 10, large above or where it isn't known."""
    if excess_sigma is not None:
        for limit, name in SIZES:
            if excess_sigma <= limit:
                return name
    return "large"


def confidence(detector: str, kind: str, excess_sigma: float | None) -> float | None:
    """Return the share of suggestions of this kind and size that were right; None if too few were seen.

    Where that size was too rare, the share is that of all sizes of the kind.
    """
    size = size_of(excess_sigma)
    found = TABLE.get((detector, kind, size), Cases(0, 0))
    if found.of < ENOUGH:
        same = [cases for (d, k, _), cases in TABLE.items() if (d, k) == (detector, kind)]
        found = Cases(sum(c.right for c in same), sum(c.of for c in same))
    return found.right / found.of if found.of >= ENOUGH else None
