"""``wtwin-watch monitor``: judge a finished log by the published W-Twin method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.classic import (
    Judged,
    classic_options,
    finish,
    judge,
    print_json_line,
    whole,
    write_scores,
)
from wtwin_watch.cli.output import number, one_line

if TYPE_CHECKING:
    from wtwin_watch.model import Detection


@click.command("monitor")
@classic_options
def command(log: Path, output: Path | None, as_json: bool, **asked: Any) -> int:
    """Judge a finished log, or every log in a folder, by the published W-Twin method.

    The loss and the step are found by their usual names. A log too short to judge is said to be so.

    \b
    Example:
      wtwin-watch monitor run.csv --loss-col train_loss --output scores.csv

    Exit code 0: no alert, 1: an alert was found, 2: asked wrongly or unreadable.
    """
    judged, problems = judge(log, **asked)
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
    return finish(judged, problems)


def _alerts(detections: list[Detection]) -> list[dict[str, Any]]:
    """One dict an alert, in the order of their beginnings."""
    alerts: list[dict[str, Any]] = []
    open_ones: dict[str, dict[str, Any]] = {}
    for found in detections:
        if found.active:
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
            open_ones.pop(found.family)["resolved_step"] = whole(found.step)
    return alerts


def _shown(one: Judged) -> list[str]:
    label = one_line(one.label)
    if one.first_alert_step is None:
        return [f"{label}: {one.no_alert}"]
    begun = [found for found in one.detections if found.active]
    count = "1 alert" if len(begun) == 1 else f"{len(begun)} alerts"
    lines = [f"{label}: {count}, the first at step {number(one.first_alert_step)}"]
    for found in one.detections:
        what = found.severity.value.upper() if found.active else "resolved"
        lines.append(f"  step {number(found.step)}  {what}  {found.kind}: {found.summary}")
    if one.monitor.status != "judging":
        lines.append(f"  {one.monitor.status}")
    return lines
