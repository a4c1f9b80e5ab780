"""``wtwin-watch outbox``: what isn't delivered yet, and what to do about it."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from wtwin_watch.cli.options import json_option, place_options
from wtwin_watch.cli.output import moment, print_json, table
from wtwin_watch.errors import UsageError

if TYPE_CHECKING:
    from wtwin_watch.settings import Flags
    from wtwin_watch.store.queue import Queued

_DONE = {"retry": "tried again", "drop": "dropped"}


@click.command("outbox")
@click.argument("action", type=click.Choice(["list", "retry", "drop"]), default="list")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--receiver", metavar="NAME", help="Only what is for this receiver.")
@place_options
@json_option
def command(
    flags: Flags, action: str, ids: tuple[str, ...], receiver: str | None, as_json: bool
) -> int:
    """List what isn't delivered; try parked notifications again, or drop some.

    A notification is parked when its receiver refused it for good, or for three days. An ID may be cut to
    its first characters. Without one, 'retry' takes all that is parked; 'drop' then wants --receiver.

    \b
    Examples:
      wtwin-watch outbox
      wtwin-watch outbox retry --receiver team
      wtwin-watch outbox drop 3f2a

    Exit code 0, also where there is nothing; 2 if there is no such notification; 69 without a state.
    """
    from wtwin_watch.settings import load_state
    from wtwin_watch.store import queue

    state, now = load_state(flags, os.environ), time.time()
    if action == "list":
        if ids:
            raise UsageError("list takes no ID; it shows all of them")
        entries = queue.read_outbox(state, receiver)
    elif action == "retry":
        entries = queue.retry(state, ids, receiver, now)
    elif ids or receiver is not None:
        entries = queue.drop(state, ids, receiver, now)
    else:
        raise UsageError("drop wants the ID of a notification, or --receiver NAME for all of one")
    if as_json:
        print_json([asdict(entry) for entry in entries])
    elif action == "list":
        click.echo("\n".join(_listed(entries)))
    else:
        click.echo(f"{len(entries)} {_DONE[action]}")
    return 0


def _listed(entries: list[Queued]) -> list[str]:
    if not entries:
        return ["everything is delivered"]
    return table(
        [
            (
                entry.id[:8],
                entry.receiver,
                entry.state,
                entry.event,
                entry.run,
                f"since {moment(entry.created_at)}",
                f"{entry.attempts} attempts",
                entry.error or "",
            )
            for entry in entries
        ],
        indent="",
    )
