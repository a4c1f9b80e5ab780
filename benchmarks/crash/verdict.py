"""What the receivers were told, held against what happened. Pure: counts, no effects."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.crash.plan import FIRING, RESOLVED


@dataclass(frozen=True, slots=True)
class Episode:
    """A run that went wrong at one step and was well again at another, as its log has it."""

    run: str
    onset_step: float
    resolved_step: float


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification as the daemon's state has it; ``key`` is its idempotency key."""

    key: str
    receiver: str
    run: str
    onset_step: float | None
    event: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A receiver took the notification of ``key`` from the daemon's ``life``, and did or didn't answer."""

    receiver: str
    key: str
    life: int
    answered: bool


@dataclass(slots=True)
class Told:
    """What came of it. A repeated delivery is one of a key that the receiver had taken before."""

    notifications: int = 0
    deliveries: int = 0
    missing: int = 0
    disorderly: int = 0
    unknown: int = 0
    """Deliveries that no episode and no notification stands behind."""
    new_keys: int = 0
    """Second deliveries of what was delivered under another key."""
    unexplained: int = 0
    """Repeated deliveries though the answer to the one before was not lost."""
    after_kill: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Repeated since the daemon was killed before it had noted the answer, by receiver."""
    after_lost_answer: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Repeated since the receiver took it and cut the connection, by receiver."""


def judge(
    episodes: Sequence[Episode],
    receivers: Iterable[str],
    notices: Iterable[Notice],
    deliveries: Sequence[Delivery],
    noted_in: Mapping[str, int],
) -> Told:
    """Hold ``deliveries``, in the order they came, against ``episodes``.

    ``noted_in``: by key, the life at whose end the state first had it as sent.
    """
    about = {notice.key: notice for notice in notices}
    places: dict[tuple[str, float | None, str], int] = {}
    for episode in episodes:
        for event in (FIRING, RESOLVED):
            places[episode.run, episode.onset_step, event] = len(places)
    told = Told(deliveries=len(deliveries))
    furthest: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    last_of: dict[str, Delivery] = {}
    keys: dict[tuple[str, int], set[str]] = defaultdict(set)
    for delivery in deliveries:
        notice = about.get(delivery.key)
        place = notice and places.get((notice.run, notice.onset_step, notice.event))
        if notice is None or place is None or notice.receiver != delivery.receiver:
            told.unknown += 1
            continue
        line = (delivery.receiver, notice.run)
        told.disorderly += place < furthest[line]
        furthest[line] = max(place, furthest[line])
        keys[delivery.receiver, place].add(delivery.key)
        if (before := last_of.get(delivery.key)) is not None:
            _explain(told, before, delivery, noted_in)
        last_of[delivery.key] = delivery
    receivers = list(receivers)
    told.notifications = len(places) * len(receivers)
    told.missing = told.notifications - len(keys)
    told.new_keys = sum(len(used) - 1 for used in keys.values())
    return told


def _explain(told: Told, before: Delivery, again: Delivery, noted_in: Mapping[str, int]) -> None:
    if not before.answered:
        told.after_lost_answer[again.receiver] += 1
    elif again.life > before.life and noted_in.get(again.key, math.inf) > before.life:
        told.after_kill[again.receiver] += 1
    else:
        told.unexplained += 1
