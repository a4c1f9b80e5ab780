"""Routing: who is told about an alert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wtwin_watch.alerting.matching import Labels, Matcher, all_hold
from wtwin_watch.model import Severity


@dataclass(frozen=True, slots=True)
class Recipient:
    """A receiver as dispatching sees it: what it isn't told, and whether alerts are put together for it."""

    name: str
    least: Severity = Severity.INFO
    """What is less grave begins no message to it."""
    grouped: bool = True


@dataclass(frozen=True, slots=True)
class Route:
    """Alerts that match go to these receivers. ``proceed``: the routes after it are asked as well."""

    match: tuple[Matcher, ...]
    receivers: tuple[str, ...]
    proceed: bool = False


@dataclass(frozen=True, slots=True)
class Routing:
    """The routes in their order, and who is told where none matches."""

    routes: tuple[Route, ...]
    default: tuple[str, ...]


def receivers_for(routing: Routing, labels: Labels) -> tuple[str, ...]:
    """Name who is told about an alert with ``labels``, each once; empty: nobody."""
    matched = matching_routes(routing.routes, labels)
    if not matched:
        return routing.default
    return tuple(dict.fromkeys(name for route in matched for name in route.receivers))


def matching_routes(routes: Sequence[Route], labels: Labels) -> list[Route]:
    """The routes that take an alert with ``labels``: up to the first one that doesn't let it proceed."""
    taken = []
    for route in routes:
        if all_hold(route.match, labels):
            taken.append(route)
            if not route.proceed:
                break
    return taken
