"""``wtwin-watch accept``: take the present level of a run as the new normal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from wtwin_watch.cli.asking import ask
from wtwin_watch.cli.options import json_option, place_options
from wtwin_watch.cli.people import saying_options, who, why

if TYPE_CHECKING:
    from wtwin_watch.settings import Flags


@click.command("accept")
@click.argument("ids", nargs=-1, required=True, metavar="ALERT...")
@saying_options(comment="Why it is normal.")
@place_options
@json_option
def command(
    flags: Flags, ids: tuple[str, ...], by: str | None, comment: str | None, as_json: bool
) -> int:
    """Take the present level of a loss as the new normal: the alert is resolved, a further rise is a new one.

    For alerts about a level: a loss or a validation loss that has risen, a throughput that has dropped.
    Others, such as one about a NaN, are refused. An ALERT may be cut to its first characters.

    \b
    Example:
      wtwin-watch accept 3f2a --comment 'harder data from here on'

    Exit code 0 done, or noted for the daemon's next start; 2 refused, or no such open alert; 69 the daemon
    has not answered, or there is no state.
    """
    from wtwin_watch.settings import load_state
    from wtwin_watch.store.records import Verb

    return ask(
        load_state(flags, os.environ),
        Verb.ACCEPT,
        ids,
        by=who(by),
        until=None,
        comment="" if comment is None else why(comment),
        as_json=as_json,
    )
