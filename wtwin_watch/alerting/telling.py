"""What telling people depends on, and what comes of it: the records of `wtwin_watch.alerting.dispatch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from wtwin_watch.alerting.routing import Recipient, Routing
from wtwin_watch.model import Alert, Companion, Event, Run


@dataclass(frozen=True, slots=True)
class Timing:
    """How long is waited before people are told, in seconds.

    ``wait_s``: the first alert of a group, unless it is critical, waits so long for others.
    ``interval_s``: what else happens in a group is told at most this often, unless it gets graver.
    ``window_s``: alerts of one source and family that begin within this time of each other are a group;
    0: each alert is told by itself.
    ``repeat_s``: what still fires and nobody has acknowledged is told again after this; 0: never.
    """

    wait_s: float = 5.0
    interval_s: float = 300.0
    window_s: float = 600.0
    repeat_s: float = 86_400.0


AT_ONCE = Timing(0.0, 0.0, 0.0, 0.0)
"""Every event of every alert is told by itself and at once."""


@dataclass(frozen=True, slots=True)
class Telling:
    """Who there is to be told, of what, and how patiently."""

    recipients: tuple[Recipient, ...]
    routing: Routing
    timing: Timing = AT_ONCE


def everybody(*names: str, timing: Timing = AT_ONCE) -> Telling:
    """Each of the receivers ``names`` is told of everything."""
    recipients = tuple(Recipient(name) for name in names)
    return Telling(recipients, Routing((), names), timing)


class Choice(StrEnum):
    """What was decided about telling people of an alert."""

    TOLD = "told"
    GROUPED = "told together with another"
    SILENCED = "silenced"
    INHIBITED = "explained by another"
    WEAK = "too weak for the budget of false alarms"
    RELEASED = "no longer held back"
    BELOW = "below the receiver's severity"
    NOBODY = "routed to nobody"
    BRIEF = "ended before it was told"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision about one alert, and why. ``receiver`` empty: it holds for all of them."""

    alert_id: str
    at: float
    receiver: str
    choice: Choice
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """A notification to be made: ``alert`` leads the ``others`` that are told with it."""

    receiver: str
    event: Event
    alert: Alert
    run: Run
    others: tuple[Companion, ...] = ()
    size: int = 1
    """How many alerts it is about, also where not all of them are listed."""


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What the store is to keep of a group from now on; ``state`` None: nothing."""

    receiver: str
    id: str
    state: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be told, what was decided, and what the store is to remember of it."""

    told: Sequence[Told] = ()
    decisions: Sequence[Decision] = ()
    groups: Sequence[GroupChange] = ()

    def __bool__(self) -> bool:
        return bool(self.told or self.decisions or self.groups)
