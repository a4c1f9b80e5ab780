"""``wtwin-watch run``: watch, and tell."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import click

from wtwin_watch.cli.options import watching_options

if TYPE_CHECKING:
    from wtwin_watch.settings import Flags


@click.command("run")
@watching_options
@click.option("--once", is_flag=True, help="Look once everywhere, deliver, and end.")
@click.option(
    "--fresh", is_flag=True, help="Forget the state of earlier runs of this program first."
)
@click.option("--dry-run", is_flag=True, help="Watch, but tell only this terminal.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How logs are written on stderr.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
@click.option("-q", "--quiet", is_flag=True, help="Log warnings and errors only.")
def command(
    flags: Flags,
    once: bool,
    fresh: bool,
    dry_run: bool,
    log_format: str,
    verbose: bool,
    quiet: bool,
) -> int:
    """Watch runs and tell people when one degrades, and when it is well again.

    Runs until it is stopped. What it knows is kept, so that after a restart nothing is told twice.

    \b
    Example:
      wtwin-watch run --csv 'runs/*.csv'

    With --once the exit code says how it is: 1 something is firing; if not, 69 a source could not be read
    or a receiver not be reached; else 0.
    """
    import structlog

    from wtwin_watch import logs
    from wtwin_watch.daemon import RunOptions, run
    from wtwin_watch.settings import load_settings

    if verbose and quiet:
        raise click.UsageError("--verbose and --quiet exclude each other")
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    logs.configure(log_format, level)
    settings = load_settings(flags, os.environ)
    for note in settings.notes:
        structlog.get_logger("wtwin_watch").info(note)
    return run(settings, RunOptions(once=once, fresh=fresh, dry_run=dry_run))
