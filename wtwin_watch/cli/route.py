"""What ``check --route`` says: the routes that an alert would take, and who would be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wtwin_watch.alerting.matching import Labels, all_hold, parse_labels
from wtwin_watch.alerting.routing import receivers_for
from wtwin_watch.cli.output import table
from wtwin_watch.errors import UsageError
from wtwin_watch.model import WEIGHT, Severity

if TYPE_CHECKING:
    from wtwin_watch.alerting.routing import Recipient, Routing
    from wtwin_watch.settings import Settings


def answer(settings: Settings, text: str) -> dict[str, Any]:
    """Say where an alert with the labels of ``text`` would go. Raises `UsageError`."""
    try:
        labels = parse_labels(text)
    except ValueError as error:
        raise UsageError(f"--route: {error}") from None
    named = receivers_for(settings.routing, labels)
    routes = _routes(settings.routing, labels)
    routed = any(route["matches"] for route in routes)
    receivers = []
    for receiver in settings.receivers:
        why = _why_not(receiver.recipient, named, routed, labels)
        receivers.append({"name": receiver.name, "told": why is None, "why_not": why})
    return {
        "labels": {label: list(values) for label, values in labels.items() if any(values)},
        "routes": routes,
        "default": not routed,
        "receivers": receivers,
    }


def shown(result: dict[str, Any]) -> list[str]:
    """Put the answer into lines for a person."""
    lines = ["routes:"]
    lines += table(
        (str(number), route["match"] or "every alert", _outcome(route))
        for number, route in enumerate(result["routes"], 1)
    )
    if result["default"]:
        lines.append("  no route matches: alerts.receivers says who is told")
    told = [receiver["name"] for receiver in result["receivers"] if receiver["told"]]
    lines += ["", f"told: {', '.join(told) or 'nobody'}"]
    others = [(r["name"], r["why_not"]) for r in result["receivers"] if not r["told"]]
    return [*lines, "", "not told:", *table(others)] if others else lines


def _routes(routing: Routing, labels: Labels) -> list[dict[str, Any]]:
    routes = []
    asked = True
    for route in routing.routes:
        matches = asked and all_hold(route.match, labels)
        routes.append(
            {
                "match": " ".join(map(str, route.match)),
                "receivers": list(route.receivers),
                "continue": route.proceed,
                "asked": asked,
                "matches": matches,
            }
        )
        asked = asked and (route.proceed or not matches)
    return routes


def _outcome(route: dict[str, Any]) -> str:
    if not route["asked"]:
        return "not asked"
    if not route["matches"]:
        return "doesn't match"
    to = ", ".join(route["receivers"]) or "nobody"
    more = "; the routes after it are asked as well" if route["continue"] else ""
    return f"matches: {to}{more}"


def _why_not(
    recipient: Recipient, named: tuple[str, ...], routed: bool, labels: Labels
) -> str | None:
    if recipient.name not in named:
        return "no route that matches names it" if routed else "alerts.receivers doesn't name it"
    [severity] = labels["severity"]
    if severity and WEIGHT[Severity(severity)] < WEIGHT[recipient.least]:
        return f"is told from severity {recipient.least.value} on"
    return None
