"""``wtwin-watch digest``: what fired and what didn't in the last day or week."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.options import json_option, place_options
from wtwin_watch.cli.output import one_line, print_json, table

if TYPE_CHECKING:
    from wtwin_watch.alerting.telling import Choice
    from wtwin_watch.settings import Flags
    from wtwin_watch.store.digest import Facts

DAY_S = 86_400.0
PERIODS = {"day": DAY_S, "week": 7 * DAY_S}


@click.command("digest")
@click.option(
    "--period",
    type=click.Choice(list(PERIODS)),
    default="day",
    show_default=True,
    help="How far back it looks.",
)
@place_options
@json_option
def command(flags: Flags, period: str, as_json: bool) -> int:
    """Say what fired in the last day or week, what people weren't told, and what was watched.

    \b
    Example:
      wtwin-watch digest --period week

    Exit code 0, whatever fired; 69 without a state.
    """
    from wtwin_watch.notify.digest import compose
    from wtwin_watch.settings import load_state
    from wtwin_watch.store.digest import read_digest

    now = time.time()
    facts = read_digest(load_state(flags, os.environ), now - PERIODS[period], now)
    if as_json:
        print_json(_plain(facts))
        return 0
    words = compose(facts, datetime.now().astimezone().tzinfo or UTC)
    lines = [words.title, "", *words.summary.splitlines(), ""]
    click.echo("\n".join([*map(one_line, lines), *table(words.facts, indent="")]))
    return 0


def _plain(facts: Facts) -> dict[str, Any]:
    from wtwin_watch.notify.digest import expected

    return {
        "from": facts.start,
        "to": facts.end,
        "alerts": [
            {**asdict(alert), "name": name, "untold": _word(facts.untold.get(alert.id))}
            for alert, name in facts.alerts
        ],
        "not_told": {_word(choice): count for choice, count in facts.held.items()},
        "runs": facts.runs,
        "new_runs": facts.new_runs,
        "sources_down": list(facts.down),
        "false_alarms_expected": expected(facts),
    }


def _word(choice: Choice | None) -> str | None:
    return None if choice is None else choice.name.lower()
