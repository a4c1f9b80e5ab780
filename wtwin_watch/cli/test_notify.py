"""``wtwin-watch test-notify``: send a test notification to receivers, and say how it went."""

from __future__ import annotations

import os
import time
import uuid
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.options import json_option, receiver_options
from wtwin_watch.cli.output import print_json, table
from wtwin_watch.errors import DeliveryError, UsageError

if TYPE_CHECKING:
    from wtwin_watch.model import Notification
    from wtwin_watch.settings import Flags, ReceiverSettings

FAILED = 1


@click.command("test-notify")
@click.argument("names", nargs=-1, metavar="[RECEIVER]...")
@receiver_options
@json_option
def command(names: tuple[str, ...], flags: Flags, as_json: bool) -> int:
    """Send a test notification to every receiver, or to those that are named, and say how it went.

    \b
    Example:
      wtwin-watch test-notify

    Exit code 0 all were delivered, 1 one was not.
    """
    from wtwin_watch.plugins import did_you_mean
    from wtwin_watch.settings import load_settings

    settings = load_settings(flags, os.environ, needs_sources=False)
    known = [receiver.name for receiver in settings.receivers]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there is: {', '.join(known)}"
            raise UsageError(f"no receiver is called {name!r}{hint}")
    outcomes = [_sent(r) for r in settings.receivers if not names or r.name in names]
    if as_json:
        print_json(outcomes)
    else:
        click.echo("\n".join(table(map(_shown, outcomes), indent="")))
    return 0 if all(outcome["delivered"] for outcome in outcomes) else FAILED


def _sent(receiver: ReceiverSettings) -> dict[str, Any]:
    from wtwin_watch.logs import masked
    from wtwin_watch.plugins import load_notifier

    notifier = load_notifier(receiver.notifier)(receiver.name, receiver.options)
    error: str | None = None
    try:
        notifier.send(example(receiver.name, time.time()))
    except DeliveryError as refusal:
        error = masked(str(refusal))
    finally:
        notifier.close()
    return {
        "receiver": receiver.name,
        "notifier": receiver.notifier,
        "goes_to": notifier.describe(),
        "delivered": error is None,
        "error": error,
    }


def _shown(outcome: dict[str, Any]) -> tuple[str, str, str]:
    how = "delivered" if outcome["delivered"] else f"not delivered: {outcome['error']}"
    return outcome["receiver"], outcome["goes_to"], how


def example(receiver: str, now: float) -> Notification:
    """Make the notification of an alert that never was."""
    from wtwin_watch.model import (
        Alert,
        AlertState,
        Detection,
        Event,
        Family,
        Notification,
        Run,
        RunKey,
        Severity,
    )
    from wtwin_watch.notify.render import message

    run = Run(RunKey("test", "test"), name="test run")
    detection = Detection(
        family=Family.LOSS,
        kind="drift",
        active=True,
        severity=Severity.INFO,
        summary="This is a test; nothing is wrong.",
        detector="test",
        metric="loss",
        step=1200.0,
        onset_step=1150.0,
        observed=2.75,
        expected=2.5,
    )
    alert = Alert(
        id=f"test-{uuid.uuid4().hex[:12]}",
        run=run.key,
        family=Family.LOSS,
        kind="drift",
        severity=Severity.INFO,
        state=AlertState.FIRING,
        detection=detection,
        started_at=now,
        fired_at=now,
    )
    return Notification(
        id=str(uuid.uuid4()),
        receiver=receiver,
        event=Event.TEST,
        alert=alert,
        run=run,
        message=message(Event.TEST, alert, run),
        created_at=now,
    )
