"""``wtwin-watch check``: are the settings right, and can every source be read?"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.options import json_option, watching_options
from wtwin_watch.cli.output import one_line, print_json, table
from wtwin_watch.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from wtwin_watch.settings import Flags, Settings, SourceSettings

NOBODY_TOLD, CANT_OBSERVE = 1, 69
PATIENCE_S = 30.0
"""A source that doesn't answer for this long can't be read."""


@click.command("check")
@watching_options
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the settings file, and end.")
@click.option(
    "--route",
    metavar="LABELS",
    help="Say where an alert with these labels would go: 'project=x severity=critical'.",
)
@json_option
def command(flags: Flags, schema: bool, route: str | None, as_json: bool) -> int:
    """Check the settings and every secret in them, look at every source once, and tell nobody.

    \b
    Examples:
      wtwin-watch check --csv 'runs/*.csv'
      wtwin-watch check --route 'project=myteam/llm severity=critical'

    Exit code 0 all is well, 69 a source can't be read, 78 mistakes in the settings, 2 in the command;
    with --route 1 if nobody would be told.
    """
    if schema:
        from wtwin_watch.settings.schema import settings_schema

        print_json(settings_schema())
        return 0
    from wtwin_watch.settings import load_settings

    try:
        settings = load_settings(flags, os.environ, needs_sources=route is None)
    except (SettingsError, UsageError) as error:
        if as_json:
            print_json({"ok": False, "mistakes": error.mistakes})
            return error.exit_code
        raise
    if route is not None:
        return _say_route(settings, route, as_json)
    sources = [_looked_at(source) for source in settings.sources]
    result = _result(settings, sources)
    if as_json:
        print_json(result)
    else:
        click.echo("\n".join(_shown(result)))
    return 0 if result["ok"] else CANT_OBSERVE


def _say_route(settings: Settings, text: str, as_json: bool) -> int:
    from wtwin_watch.cli.route import answer, shown

    result = answer(settings, text)
    if as_json:
        print_json(result)
    else:
        click.echo("\n".join(shown(result)))
    return 0 if any(receiver["told"] for receiver in result["receivers"]) else NOBODY_TOLD


def _looked_at(settings: SourceSettings) -> dict[str, Any]:
    """Open a source and count its runs, within `PATIENCE_S`."""
    answer: dict[str, Any] = {"runs": None, "error": "does not answer"}
    looking = threading.Thread(target=_look, args=(settings, answer), daemon=True)
    looking.start()
    looking.join(PATIENCE_S)
    return {
        "name": settings.name,
        "adapter": settings.adapter,
        "interval_s": settings.interval_s,
        "from": settings.origin,
        **answer,
    }


def _look(settings: SourceSettings, answer: dict[str, Any]) -> None:
    from wtwin_watch.logs import masked
    from wtwin_watch.plugins import load_adapter

    try:
        source = load_adapter(settings.adapter)(settings.name, settings.options)
        try:
            answer.update(runs=sum(1 for _ in source.runs()), error=None)
        finally:
            source.close()
    # An adapter may be somebody else's code; whatever it raises is what's wrong with this source.
    except Exception as error:
        answer.update(runs=None, error=masked(str(error)) or type(error).__name__)


def _result(settings: Settings, sources: list[dict[str, Any]]) -> dict[str, Any]:
    from wtwin_watch.plugins import load_notifier
    from wtwin_watch.store import database
    from wtwin_watch.store.status import find_budget

    budget = find_budget(settings.state)
    receivers = []
    for receiver in settings.receivers:
        notifier = load_notifier(receiver.notifier)(receiver.name, receiver.options)
        receivers.append(
            {
                "name": receiver.name,
                "notifier": receiver.notifier,
                "from": receiver.origin,
                "goes_to": notifier.describe(),
                "severity": receiver.recipient.least.value,
            }
        )
        notifier.close()
    return {
        "ok": all(source["error"] is None for source in sources),
        "file": None if settings.file is None else str(settings.file),
        "state": database.shown(database.database_url(settings.state)),
        "sources": sources,
        "receivers": receivers,
        "digests": [
            {"receiver": digest.receiver, "when": str(digest.schedule)}
            for digest in settings.digests
        ],
        "maintenance": [
            {
                "matchers": window.what or "everything",
                "when": str(window),
                "comment": window.comment,
            }
            for window in settings.maintenance
        ],
        "notes": [
            *settings.notes,
            *([] if budget is None else [str(budget)]),
            *(
                f"{source.name}: {source.options.no_runs}"
                for source, seen in zip(settings.sources, sources, strict=True)
                if seen["runs"] == 0
            ),
        ],
        "mistakes": [],
    }


def _shown(result: dict[str, Any]) -> list[str]:
    from wtwin_watch.settings.durations import shown_duration

    lines = [f"settings: {result['file'] or 'flags and environment alone'}"]
    lines += [f"state: {result['state']}", "", "watched:"]
    lines += table(
        (
            source["name"],
            source["adapter"],
            f"every {shown_duration(source['interval_s'])}",
            f"{source['runs']} run{'' if source['runs'] == 1 else 's'} now"
            if source["error"] is None
            else source["error"],
        )
        for source in result["sources"]
    )
    lines += ["", "told:"]
    lines += table(
        (r["name"], r["notifier"], r["goes_to"], _from(r["severity"])) for r in result["receivers"]
    )
    if result["digests"]:
        lines += ["", "digests:", *table((d["receiver"], d["when"]) for d in result["digests"])]
    if result["maintenance"]:
        quiet = ((w["matchers"], w["when"], w["comment"]) for w in result["maintenance"])
        lines += ["", "maintenance:", *table(quiet)]
    notes = [f"note: {one_line(note)}" for note in result["notes"]]
    return [*lines, "", *notes] if notes else lines


def _from(severity: str) -> str:
    """What a receiver hears of; nothing is said of one that hears of everything."""
    return "" if severity == "info" else f"from {severity} on"
