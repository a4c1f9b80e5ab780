"""What happens in each life of the daemon: which logs go on how, and what ends it. Pure, from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

FIRING, RESOLVED = "firing", "resolved"
AFTER_FETCH = "after-fetch"
POINTS = ("before-commit", "after-commit", "before-send", "after-send", "after-mark", AFTER_FETCH)
"""Where a life can end on the way of a point, in the words of `tests.support.faulty_daemon`."""
GROWING = 3
"""So many logs at least go on in each life."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A run goes wrong (``FIRING``), or is well again."""

    run: int
    event: str


@dataclass(frozen=True, slots=True)
class Life:
    """One start of the daemon, and its end: at ``point``, or at a random moment where that is None.

    ``turns`` are logged meanwhile, and the runs ``growing`` go on as before. A point that is about an event
    is about that of the first turn.
    """

    point: str | None
    turns: tuple[Turn, ...] = ()
    growing: tuple[int, ...] = ()

    @property
    def fault(self) -> str | None:
        """The fault to put in."""
        if self.point is None:
            return None
        return f"{self.point}:{1 if self.point == AFTER_FETCH else self.turns[0].event}"


def lives(kills: int, runs: int, episodes: int, chance: random.Random) -> list[Life]:
    """Plan as many lives as ``kills``, half of them ended at fault points, each point as often.

    By the end each run has gone wrong and become well ``episodes`` times. Enough episodes are needed for
    each point to have an event.
    """
    points: list[str | None] = [POINTS[i % len(POINTS)] for i in range(kills // 2)]
    points += [None] * (kills - len(points))
    chance.shuffle(points)
    if points[-1] is not None:
        # What is left over happens in the last life, which has to be one that can hold it.
        index = points.index(None)
        points[index], points[-1] = points[-1], None
    left = 2 * runs * episodes
    needing, free = sum(map(_needs_turn, points)), points.count(None)
    if left < needing:
        raise ValueError(f"{needing} kills want an event, and there are {left}")
    begun, wrong = [0] * runs, [False] * runs
    wanted = [RESOLVED, FIRING]
    planned = []
    for point in points:
        count = 0
        if _needs_turn(point):
            count, needing = 1, needing - 1
        elif point is None:
            count = round((left - needing) / free + (chance.uniform(-0.5, 0.5) if free > 1 else 0))
            count, free = max(0, min(count, left - needing)), free - 1
        left -= count
        turns = []
        for _ in range(count):
            wanted.reverse()
            turns.append(_turn(wanted[0], begun, wrong, episodes, chance))
        taken = {turn.run for turn in turns}
        well = [run for run in range(runs) if not wrong[run] and run not in taken]
        growing = chance.sample(well, min(GROWING, len(well)))
        planned.append(Life(point, tuple(turns), tuple(growing)))
    return planned


def _needs_turn(point: str | None) -> bool:
    return point not in (None, AFTER_FETCH)


def _turn(
    wanted: str, begun: list[int], wrong: list[bool], episodes: int, chance: random.Random
) -> Turn:
    """Choose a run for the ``wanted`` event, or for the other where none is left for it."""
    able: dict[str, Sequence[int]] = {
        FIRING: [i for i, bad in enumerate(wrong) if not bad and begun[i] < episodes],
        RESOLVED: [i for i, bad in enumerate(wrong) if bad],
    }
    other = RESOLVED if wanted == FIRING else FIRING
    event = wanted if able[wanted] else other
    run = chance.choice(able[event])
    wrong[run] = event == FIRING
    begun[run] += event == FIRING
    return Turn(run, event)
