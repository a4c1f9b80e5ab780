"""``wtwin-watch monitor``: judge a finished log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli import plotting
from wtwin_watch.cli.judging import (
    STAGNATION,
    Judged,
    finish,
    judge,
    judging_options,
    print_json_line,
    whole,
    write_scores,
)
from wtwin_watch.cli.output import number, one_line

if TYPE_CHECKING:
    from wtwin_watch.model import Detection
    from wtwin_watch.settings import Flags


@click.command("monitor")
@judging_options
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the loss as a PNG."
)
def command(
    log: Path,
    plot: Path | None,
    flags: Flags,
    loss_col: str | None,
    step_col: str | None,
    pattern: str | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Judge a finished log, or every log in a folder, as the daemon does while it grows.

    The loss and the step are found by their usual names. A log too short to judge is said to be so. The
    published W-Twin method is --detector classic; its options select it too.

    \b
    Example:
      wtwin-watch monitor run.csv --loss-col train_loss --output scores.csv

    Exit code 0: no alert, 1: an alert was found, 2: asked wrongly or unreadable.
    """
    if plot is not None:
        plotting.check(plot)
    judged, problems = judge(log, flags, loss_col, step_col, pattern, keep_curves=plot is not None)
    for one in judged:
        alerts = _alerts(one.detections)
        if as_json:
            print_json_line(
                {**one.facts, "first_alert_step": one.first_alert_step, "alerts": alerts}
            )
        else:
            click.echo("\n".join(_shown(one)))
    if output is not None:
        write_scores(output, judged)
    if plot is not None:
        plotting.write(plot, judged)
    return finish(judged, problems)


def _alerts(detections: list[Detection]) -> list[dict[str, Any]]:
    """One dict an alert, in the order of their beginnings; kind and onset are what they became."""
    alerts: list[dict[str, Any]] = []
    open_ones: dict[str, dict[str, Any]] = {}
    for found in detections:
        alert = open_ones.get(found.family)
        if not found.active:
            if alert is not None:
                open_ones.pop(found.family)["resolved_step"] = whole(found.step)
            continue
        if alert is None:
            alert = {
                "kind": found.kind,
                "severity": found.severity.value,
                "alert_step": whole(found.step),
                "onset_step": whole(found.onset_step),
                "resolved_step": None,
                "W": found.score,
            }
            open_ones[found.family] = alert
            alerts.append(alert)
        else:
            alert["kind"], alert["severity"] = found.kind, found.severity.value
            alert["onset_step"] = whole(found.onset_step)
    return alerts


def _shown(one: Judged) -> list[str]:
    label = one_line(one.label)
    lines = []
    if one.first_alert_step is None:
        lines.append(f"{label}: {one.no_alert}")
    else:
        begun = [alert for alert in _alerts(one.detections) if alert["kind"] != STAGNATION]
        count = "1 alert" if len(begun) == 1 else f"{len(begun)} alerts"
        lines.append(f"{label}: {count}, the first at step {number(one.first_alert_step)}")
    for found in one.detections:
        what = found.severity.value.upper() if found.active else "resolved"
        lines.append(f"  step {number(found.step)}  {what}  {found.kind}: {found.summary}")
        lines += [f"    {text}" for text in found.evidence]
    if one.first_alert_step is not None and one.monitor.status != "judging":
        lines.append(f"  {one.monitor.status}")
    return lines
