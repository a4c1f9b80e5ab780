"""``wtwin-watch suggest``: what kind of failure a finished log shows. Experimental and advisory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wtwin_watch.cli.judging import (
    finish,
    judge,
    judging_options,
    print_json_line,
    write_scores,
)
from wtwin_watch.cli.output import one_line

if TYPE_CHECKING:
    from wtwin_watch.settings import Flags


@click.command("suggest")
@judging_options
def command(
    log: Path,
    flags: Flags,
    loss_col: str | None,
    step_col: str | None,
    pattern: str | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Say what kind of failure the first alert of a finished log looks like. Experimental, advisory.

    \b
    Example:
      wtwin-watch suggest run.csv

    Exit code 0: no alert, 1: an alert was found, 2: asked wrongly or unreadable.
    """
    from wtwin_watch.monitor.suggest import from_detection, suggest

    judged, problems = judge(log, flags, loss_col, step_col, pattern)
    for one in judged:
        said = suggest(one.monitor.loss_monitor)
        if not said.alert and one.first_alert is not None:
            said = from_detection(one.first_alert)
        if as_json:
            print_json_line(
                {**one.facts, **said.as_dict(), "first_alert_step": one.first_alert_step}
            )
        else:
            click.echo(f"{one_line(one.label)}: {said if said.alert else one.no_alert}")
    if output is not None:
        write_scores(output, judged)
    return finish(judged, problems)
