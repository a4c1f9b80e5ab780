"""``wtwin-watch status``: what a running daemon sees, read from its state."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.marks import maintenance_now, marks, silence_as_json
from wtwin_watch.cli.options import json_option, place_options
from wtwin_watch.cli.output import counted, moment, number, print_json, table
from wtwin_watch.model import AlertState, RunStatus

if TYPE_CHECKING:
    from wtwin_watch.alerting.budget import Budget
    from wtwin_watch.settings import Flags
    from wtwin_watch.store.status import Status

FIRING, UNKNOWN = 1, 69


@click.command("status")
@place_options
@json_option
def command(flags: Flags, as_json: bool) -> int:
    """Show what a running daemon sees: sources, runs, open alerts, what isn't delivered yet.

    \b
    Example:
      wtwin-watch status --json

    Exit code 0 nothing is firing, 1 something is, 69 no daemon is running or there is no state.
    """
    from wtwin_watch.settings import load_state
    from wtwin_watch.store.status import read_status

    now = time.time()
    status = read_status(load_state(flags, os.environ), now, maintenance_now(flags, now))
    if as_json:
        print_json(_plain(status))
    else:
        click.echo("\n".join(_shown(status, now)))
    if not status.running:
        return UNKNOWN
    return FIRING if any(alert.state is AlertState.FIRING for alert in status.alerts) else 0


def _plain(status: Status) -> dict[str, Any]:
    return {
        "state": status.state,
        "running": status.running,
        "heartbeat_at": status.heartbeat_at,
        "status": status.line,
        "sources": [
            {
                "name": source.name,
                "adapter": source.adapter,
                "seen_at": source.seen_at,
                "error": source.error,
                "down_since": source.down_since,
            }
            for source in status.sources
        ],
        "runs": [
            {
                "source": run.run.key.source,
                "id": run.run.key.run,
                "name": run.run.name,
                "project": run.run.project,
                "points": run.points,
                "last_step": run.last_step,
                "last_loss": run.last_loss,
                "step": run.step_name,
                "position": run.position,
                "metrics": run.roles,
                "judging": run.judging,
                "skipped": run.skipped,
                "backlog": run.backlog,
                "error": run.error,
                "first_seen_at": run.first_seen_at,
                "saved_at": run.saved_at,
                "status": run.run.status.value,
                "attempt": run.attempt,
                "gone_since": run.gone_since,
            }
            for run in status.runs
        ],
        "alerts": [
            {
                "id": alert.id,
                "fingerprint": alert.fingerprint,
                "source": alert.run.source,
                "run": alert.run.run,
                "family": alert.family.value,
                "kind": alert.kind,
                "severity": alert.severity.value,
                "state": alert.state.value,
                "summary": alert.detection.summary,
                "step": alert.detection.step,
                "onset_step": alert.detection.onset_step,
                "observed": alert.detection.observed,
                "expected": alert.detection.expected,
                "started_at": alert.started_at,
                "fired_at": alert.fired_at,
                "held_until": alert.held_until,
                "acknowledged": None if alert.acknowledged is None else asdict(alert.acknowledged),
                "silenced": silence_as_json(status.silenced.get(alert.id)),
            }
            for alert in status.alerts
        ],
        "budget": None if status.budget is None else _budget(status.budget),
        "timeline": [
            {
                "source": one.run.source,
                "run": one.run.run,
                "at": one.at,
                "kind": one.kind,
                "text": one.text,
                "step": one.step,
            }
            for one in status.timeline
        ],
        "outbox": status.outbox,
        "undelivered": [
            {"receiver": receiver, "state": state, "attempts": attempts, "error": error}
            for receiver, state, attempts, error in status.undelivered
        ],
    }


def _budget(budget: Budget) -> dict[str, Any]:
    return {
        "runs": budget.runs,
        "losses_a_second": budget.points,
        "far": budget.far,
        "far_to_tell": budget.far_to_tell,
        "verified": budget.verified,
        "found_a_week": budget.found_a_week,
        "told_a_week": budget.told_a_week,
    }


def _shown(status: Status, now: float) -> list[str]:
    names = {run.run.key: run.run.name for run in status.runs}
    if status.running:
        lines = [f"running: {status.line or 'starting'}"]
    else:
        heard = status.heartbeat_at
        lines = ["no daemon is running" + (f"; last heard of {moment(heard)}" if heard else "")]
    lines.append(f"state: {status.state}")
    if status.budget is not None:
        lines.append(str(status.budget))
    lines += ["", f"sources ({len(status.sources)})"]
    lines += table(
        (source.name, source.adapter, source.error or f"read {moment(source.seen_at)}")
        for source in status.sources
    )
    lines += ["", f"runs ({len(status.runs)})"]
    lines += table(
        (
            run.run.key.source,
            run.run.name,
            f"step {number(run.last_step)}",
            f"loss {number(run.last_loss)}",
            f"{run.points} points",
            run.error or ("gone" if run.gone_since else run.judging),
            "" if run.run.status is RunStatus.UNKNOWN else run.run.status.value,
            f"attempt {run.attempt}" if run.attempt > 1 else "",
            f"skipped {counted(run.skipped)}" if run.skipped else "",
        )
        for run in status.runs
    )
    lines += ["", f"open alerts ({len(status.alerts)})"]
    lines += table(
        (
            alert.id[:8],
            ", ".join([alert.state.value, *marks(alert, status.silenced.get(alert.id), now)]),
            alert.severity.value,
            names.get(alert.run, str(alert.run)),
            f"since {moment(alert.started_at)}"
            + (f", waits until {moment(alert.held_until)}" if alert.held_until else ""),
            alert.detection.summary,
        )
        for alert in status.alerts
    )
    if status.timeline:
        lines += ["", "lately"]
        lines += table(
            (moment(one.at), names.get(one.run, str(one.run)), one.text) for one in status.timeline
        )
    lines += ["", f"notifications: {counted(status.outbox) or 'none'}"]
    lines += table(
        (receiver, state, f"{attempts} attempts", error)
        for receiver, state, attempts, error in status.undelivered
    )
    return lines
