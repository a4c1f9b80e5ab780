"""``wtwin-watch ack``: say that somebody has seen an alert, which stops its repeats."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from wtwin_watch.cli.asking import ask
from wtwin_watch.cli.options import json_option, place_options
from wtwin_watch.cli.people import saying_options, until_options, until_when, who, why
from wtwin_watch.errors import UsageError

if TYPE_CHECKING:
    from wtwin_watch.settings import Flags


@click.command("ack")
@click.argument("ids", nargs=-1, required=True, metavar="ALERT...")
@until_options
@saying_options(comment="What there is to say about it.")
@click.option("--undo", is_flag=True, help="Take it back: the alert is repeated again.")
@place_options
@json_option
def command(
    flags: Flags,
    ids: tuple[str, ...],
    lasting: float | None,
    until: float | None,
    by: str | None,
    comment: str | None,
    undo: bool,
    as_json: bool,
) -> int:
    """Say that you have seen an alert. It isn't repeated any more; nothing else changes.

    With --for or --until it is repeated again from then on, if it still fires. An ALERT may be cut to its
    first characters.

    \b
    Examples:
      wtwin-watch ack 3f2a
      wtwin-watch ack 3f2a --for 2h --comment 'looking into the data loader'
      wtwin-watch ack 3f2a --undo

    Exit code 0 done, or noted for the daemon's next start; 2 refused, or no such open alert; 69 the daemon
    has not answered, or there is no state.
    """
    from wtwin_watch.settings import load_state
    from wtwin_watch.settings.durations import LONGEST_S
    from wtwin_watch.store.records import Verb

    now = time.time()
    if undo and not (lasting is None and until is None and comment is None):
        raise UsageError("--undo takes no --for, --until or --comment")
    ends = until_when(lasting, until, now)
    if ends is not None and not now < ends <= now + LONGEST_S:
        raise UsageError("--until should lie within the next 366 days")
    return ask(
        load_state(flags, os.environ),
        Verb.UNACKNOWLEDGE if undo else Verb.ACKNOWLEDGE,
        ids,
        by=who(by),
        until=ends,
        comment="" if comment is None else why(comment),
        as_json=as_json,
    )
