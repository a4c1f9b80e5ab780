"""Whether a run's steps have stopped coming, judged by how they used to come.

Only time counts in which the run was really seen: between two looks that both succeeded, and of a long
time between two looks no more than `most_between`. So neither an outage of the source, nor one of ours,
is ever taken for a pause of the run, and none makes a run look stalled.

A run is judged once its steps were seen to come three times. It is stalled when no step came for

    max(stall_after, 4 x the longest pause seen)

and, until a thousand steps were watched or read with their times, for no less than 22 mean step times more
than the longest pause: it may have evaluations and checkpoints that nobody has seen yet. (A hang and a first
evaluation look alike until the latter ends: what is told sooner would sometimes be false.) Looks are some
time apart, so it is told at the last look that is still in time. The longest pause is that of the latest
20,000 to 40,000 steps; what lies before a rewind is no pause but a stop.

Simulated (``python -m benchmarks.sources``): no false stall in 1,000 run-hours with evaluation and checkpoint
pauses of up to 20 step times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

TIMES_LONGEST = 4.0
KNOWN_AFTER = 3
"""So many times steps must have come before their absence says anything."""
LEARNT_AFTER = 1_000
"""After so many steps the run's pauses are taken for known."""
UNSEEN_STEPS = 22.0
"""How long a pause that was never seen may be, in step times."""
GENERATION = 20_000
"""The longest pause is remembered for one to two times so many steps."""
RATE_STEPS = 1_024.0
"""The mean step time is that of the latest one to two times so many steps."""
HABIT = 50.0
"""In what was logged before first sight, a gap of more than so many usual ones was a stop, no pause."""


@dataclass(slots=True)
class Cadence:
    """How the steps of one run come. ``idle_s`` is for how long none came, as far as anybody looked."""

    steps: int = 0
    """Whose pauses are known: seen to come, or logged with their times before."""
    arrivals: int = 0
    """How often new steps were there."""
    idle_s: float = 0.0
    longest_s: float = 0.0
    longest_before_s: float = 0.0
    generation: int = 0
    spent_s: float = 0.0
    """Time that the latest ``counted`` steps took."""
    counted: float = 0.0
    stalled: bool = False
    over: bool = False
    """It is taken for ended, until a step comes."""
    seen_at: float | None = None
    """When it was last looked at, on the clock that never goes back; None: not since the start."""

    def begin(self, now: float) -> None:
        """What was logged before is read up to ``now``; from here on its steps are watched."""
        self.seen_at, self.idle_s = now, 0.0

    def looked(self, now: float, interval_s: float) -> None:
        """Nothing new was there at ``now``."""
        if self.seen_at is not None:
            self.idle_s += min(now - self.seen_at, most_between(interval_s))
        self.seen_at = now

    def came(self, now: float, interval_s: float, steps: int, *, rewound: bool = False) -> float:
        """``steps`` new steps were there at ``now``; returns for how long none had come, seconds.

        ``rewound``: the run was begun again, so the time before was no pause of it.
        """
        watched = self.seen_at is not None
        self.looked(now, interval_s)
        gap, self.idle_s = self.idle_s, 0.0
        self.over = False
        if not watched or rewound:
            return gap
        self.arrivals += 1
        self.steps += steps
        self._learn_pause(gap, steps)
        self.spent_s += gap
        self.counted += steps
        if self.counted > 2.0 * RATE_STEPS:
            share = RATE_STEPS / self.counted
            self.spent_s, self.counted = self.spent_s * share, self.counted * share
        return gap

    def blind(self) -> None:
        """It can't be seen now: what passes until the next look doesn't count."""
        self.seen_at = None

    def recall(self, times: Sequence[float]) -> None:
        """Learn the pauses in what was logged before first sight, from the times of its steps."""
        gaps = [b - a for a, b in pairwise(times) if b > a]
        if len(gaps) < KNOWN_AFTER:
            return
        self.steps += len(gaps)
        usual = median(gaps)
        self._learn_pause(max(gap for gap in gaps if gap <= HABIT * usual), len(gaps))

    def patience_s(self, stall_after_s: float, interval_s: float) -> float:
        """How long no step may come, seconds, with looks ``interval_s`` apart."""
        longest = max(self.longest_s, self.longest_before_s)
        patience = max(stall_after_s, TIMES_LONGEST * longest)
        if self.steps < LEARNT_AFTER and self.counted:
            mean = self.spent_s / self.counted
            patience = max(patience, longest + UNSEEN_STEPS * mean + 3.0 * interval_s)
        return patience

    def stalls(self, stall_after_s: float, interval_s: float) -> bool:
        """Whether it has stalled: at the next look it would be too late to say so.

        The last step may have come right after a look, so one more interval is taken off.
        """
        if not self.awaited:
            return False
        return self.idle_s + 2.0 * interval_s > self.patience_s(stall_after_s, interval_s)

    @property
    def awaited(self) -> bool:
        """Whether a step is expected: enough were seen to come, and the run isn't taken for ended."""
        return self.arrivals >= KNOWN_AFTER and not self.over

    @property
    def longest_pause_s(self) -> float:
        """The longest pause seen, seconds."""
        return max(self.longest_s, self.longest_before_s)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "seen_at"}

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> Cadence:
        """Make the cadence that goes on where `snapshot` was taken; the time in between doesn't count."""
        return cls(**snapshot)

    def _learn_pause(self, pause_s: float, steps: int) -> None:
        self.generation += steps
        if self.generation >= GENERATION:
            self.longest_before_s, self.longest_s = self.longest_s, 0.0
            self.generation = 0
        self.longest_s = max(self.longest_s, pause_s)


def most_between(interval_s: float) -> float:
    """Of the time between two looks so much counts at most, seconds: more was an outage of ours."""
    return 3.0 * interval_s + 60.0
