"""Routes: which receivers are told of what, from the tables ``[[route]]`` and ``alerts.receivers``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from wtwin_watch.alerting.matching import Matcher, parse
from wtwin_watch.alerting.routing import Route, Routing
from wtwin_watch.plugins import did_you_mean
from wtwin_watch.settings.given import Entry
from wtwin_watch.settings.mistakes import Mistakes, Place
from wtwin_watch.settings.model import ReceiverNames, Section


def _read_match(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("should be a text such as 'project=myteam/llm severity=critical'")
    return parse(value)


class RouteTable(Section):
    """A table ``[[route]]``: the first one that matches an alert says who is told of it."""

    match: Annotated[
        tuple[Matcher, ...], BeforeValidator(_read_match, json_schema_input_type=str)
    ] = Field(
        "",
        validate_default=True,
        description="the alerts that are meant: label=value, set apart by spaces; all if left out",
    )
    receivers: ReceiverNames = Field(description="who is told of them; an empty list: nobody")
    proceed: bool = Field(
        False, alias="continue", description="whether the routes after it are asked as well"
    )


def read_routing(
    tables: Sequence[Entry],
    default: tuple[str, ...] | None,
    default_place: Place,
    receivers: Collection[str],
    mistakes: Mistakes,
) -> Routing:
    """Read the routes in their order. ``default``: who is told where none matches; None: everybody."""
    routes = []
    for entry in tables:
        table = mistakes.validate(RouteTable, entry.values, entry.where, "route")
        place = entry.where(("receivers",))
        check_receivers(
            entry.values.get("receivers"), receivers, place, "route.receivers", mistakes
        )
        if table is not None:
            routes.append(Route(table.match, table.receivers, table.proceed))
    if default is not None:
        check_receivers(list(default), receivers, default_place, "alerts.receivers", mistakes)
    return Routing(tuple(routes), tuple(receivers) if default is None else default)


def check_receivers(
    written: Any, known: Collection[str], place: Place, key: str, mistakes: Mistakes
) -> None:
    """Note the names in what is written that no receiver has, also where its table is wrong otherwise."""
    for name in written if isinstance(written, list) else [written]:
        if isinstance(name, str) and name not in known:
            hint = did_you_mean(name, known) or f"; there is: {', '.join(known)}"
            mistakes.add(place, f"no receiver is called {name!r}{hint}", key)


def untold(routing: Routing, receivers: Iterable[str]) -> list[str]:
    """Say which receivers are told of no alert."""
    everything = [i for i, route in enumerate(routing.routes) if not route.match]
    ends = next((i for i in everything if not routing.routes[i].proceed), len(routing.routes))
    named = {*routing.default, *(name for route in routing.routes for name in route.receivers)}
    told = {name for route in routing.routes[: ends + 1] for name in route.receivers}
    if not everything:
        told |= set(routing.default)
    return [
        f"the receiver {name!r} is told of no alert: "
        + (
            "a route that takes all alerts stands before what names it"
            if name in named
            else "no route names it, nor does alerts.receivers"
        )
        for name in receivers
        if name not in told
    ]
