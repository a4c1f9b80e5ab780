"""``wtwin-watch inspect``: what a log is, and what would be read from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.options import json_option
from wtwin_watch.cli.output import counted, number, one_line, print_json, table
from wtwin_watch.errors import UsageError
from wtwin_watch.metrics import Names, Role, choose

if TYPE_CHECKING:
    from wtwin_watch.ingest.finished import FinishedRun, Log


@click.command("inspect")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@click.option("--step-col", metavar="NAME", help="Column that counts steps.")
@click.option("--loss-col", metavar="NAME", help="Column, tag or key of the loss.")
@click.option(
    "--pattern", metavar="REGEX", help="Read lines by this: 'it (?P<step>\\d+) (?P<loss>\\S+)'."
)
@json_option
def command(
    paths: tuple[Path, ...],
    step_col: str | None,
    loss_col: str | None,
    pattern: str | None,
    as_json: bool,
) -> int:
    """Say what a log file or folder is: its format, its runs, the step and the loss, what is skipped.

    \b
    Example:
      wtwin-watch inspect runs/

    Exit code 2 if a path can't be read, or nothing in it.
    """
    from wtwin_watch.ingest.finished import find_logs

    names = Names(step=step_col, loss=loss_col)
    found: list[dict[str, Any]] = []
    problems: list[str] = []
    for path in paths:
        try:
            here = [
                entry for log in find_logs(path, names, pattern) for entry in _inspected(log, names)
            ]
        except UsageError as error:
            problems.append(str(error))
            reason = str(error).removeprefix(f"{path}: ")
            found.append({"path": str(path), "format": None, "runs": [], "refused": reason})
            continue
        if not any(entry["runs"] for entry in here):
            problems += [f"{e['path']}: {e['refused'] or 'holds no run'}" for e in here]
        found += here
    if as_json:
        print_json(found)
    else:
        for log in found:
            if log["format"] is None:
                continue  # it is no log; the error says so
            click.echo("\n".join(_shown(log)))
    if problems:
        raise UsageError("\n".join(problems))
    return 0


def _inspected(log: Log, names: Names) -> list[dict[str, Any]]:
    """Describe a log, and apart from it each run in it that can't be read."""
    from wtwin_watch.ingest.finished import read_log

    runs: list[FinishedRun] = []
    refused = log.recognition.refused
    if refused is None:
        try:
            runs = read_log(log, names)
        except UsageError as error:
            refused = str(error).removeprefix(f"{log.path}: ")
    good = [_run(run, names) for run in runs if run.error is None]
    bad = [
        {
            "path": str(log.path / run.name),
            "format": log.recognition.format,
            "runs": [],
            "refused": run.error,
        }
        for run in runs
        if run.error is not None
    ]
    whole = {
        "path": str(log.path),
        "format": log.recognition.format,
        "runs": good,
        "refused": refused,
    }
    return [whole, *bad]


def _run(run: FinishedRun, names: Names) -> dict[str, Any]:
    roles = choose(dict.fromkeys(point.metric for point in run.points), names)
    loss = [point for point in run.points if point.metric == roles.get(Role.LOSS)]
    return {
        "name": run.name,
        "step": run.step_name,
        "loss": roles.get(Role.LOSS),
        "lr": roles.get(Role.LR),
        "grad_norm": roles.get(Role.GRAD_NORM),
        "points": len(loss),
        "skipped": run.skipped,
        "first_step": loss[0].step if loss else None,
        "last_step": loss[-1].step if loss else None,
        "last_loss": loss[-1].value if loss else None,
    }


def _shown(log: dict[str, Any]) -> list[str]:
    head = f"{one_line(log['path'])}: {log['format']}"
    if log["refused"] is not None:
        return [f"{head}, can't be read: {one_line(log['refused'])}"]
    lines = [head]
    for run in log["runs"]:
        steps = f"steps {number(run['first_step'])} to {number(run['last_step'])}"
        facts = [("run", run["name"]), ("step", run["step"] or "-")]
        if run["loss"] is None:
            facts.append(("loss", "none found; name it with --loss-col"))
        else:
            last = number(run["last_loss"])
            facts.append(("loss", f"{run['loss']}: {run['points']} points, {steps}, last {last}"))
        facts += [
            (label, run[key])
            for label, key in (("lr", "lr"), ("grad norm", "grad_norm"))
            if run[key]
        ]
        if run["skipped"]:
            facts.append(("skipped", counted(run["skipped"])))
        lines += [*([""] if len(lines) > 1 else []), *table(facts)]
    return lines
