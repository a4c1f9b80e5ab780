"""A budget of false alarms for all that one watcher watches, instead of a threshold for each run.

Each run's detector is held to one false alarm in ``far`` points. With many runs that is many false alarms
in all: three hundred runs with a point in ten seconds log 2.6 million points a day, which at ``far`` =
100,000 are 26 false alarms. So people are told of a rise only when its evidence is what chance brings once
in so many points as the budget has room for; until then it is shown and kept, and told to nobody.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

VERIFIED_FAR = 1e5
"""Up to here the false-alarm rate was measured, on simulated runs and real logs (docs/detection.md)."""
WEEK_S = 7 * 86_400.0
_UNITS = {
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": WEEK_S,
    "month": 30 * 86_400.0,
    "year": 365 * 86_400.0,
}
_TEXT = re.compile(
    r"(one|[0-9]{1,6}(?:\.[0-9]{1,6})?)\s+(?:per|a|an|each)\s+(hour|day|week|month|year)"
)


@dataclass(frozen=True, slots=True)
class Budget:
    """What the budget comes to with the runs there are now. Rates are per second."""

    allowed: float
    """False alarms that may be told."""
    points: float
    """Losses that are logged by the runs watched."""
    runs: int
    """How many runs these are."""
    far: float
    """Points between two false alarms of each run's detector."""

    @property
    def far_to_tell(self) -> float:
        """Evidence that chance brings once in so many points is told; never less than the detector's own."""
        return max(self.far, self.points / self.allowed)

    @property
    def found_a_week(self) -> float:
        """False alarms a week that the detectors find."""
        return self.points * WEEK_S / self.far

    @property
    def told_a_week(self) -> float:
        """False alarms a week that people are told of."""
        return self.points * WEEK_S / self.far_to_tell

    @property
    def bar(self) -> float:
        """Evidence from which on a rise is told, in nats; see `wtwin_watch.monitor.far.threshold`."""
        return math.log(self.far_to_tell) - 1.5

    @property
    def verified(self) -> bool:
        """Whether the false-alarm rate was measured that far."""
        return self.far_to_tell <= VERIFIED_FAR

    def __str__(self) -> str:
        if not self.runs:
            return "false alarms to expect a week: known once a run shows how fast it logs"
        text = (
            f"false alarms to expect a week: {self.told_a_week:.2g} told of {self.found_a_week:.2g} found"
            f" ({self.runs} run{'s' * (self.runs != 1)}, {self.points * 60.0:.3g} losses a minute)"
        )
        if self.far_to_tell > self.far:
            text += f"; told from far = {self.far_to_tell:.2g} on"
        if not self.verified:
            text += f", which is more than the {VERIFIED_FAR:.0e} that was measured"
        return text


def parse_budget(text: str) -> float:
    """Read how many false alarms are bearable (``1 per week``, ``2 a day``); return how many a second.

    Raises `ValueError` for anything else.
    """
    match = _TEXT.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("should be a number of false alarms in a time, such as '1 per week'")
    count = 1.0 if match[1] == "one" else float(match[1])
    if count <= 0.0:
        raise ValueError("has no room for 0: chance alone brings a false alarm now and then")
    return count / _UNITS[match[2]]
