"""What people say with a command: who they are, why, and until when. Checked here, at the edge."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from wtwin_watch.errors import UsageError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

LONGEST_NAME, LONGEST_COMMENT = 100, 500


def moment_option(name: str, help_text: str) -> Decorator:
    """Add an option that takes a time with its time zone and gives unix seconds."""
    return click.option(name, callback=_moment, metavar="WHEN", help=help_text)


def saying_options(*, comment: str) -> Decorator:
    """Add ``--by`` and ``--comment``; the command is called with ``by`` and ``comment``."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option("--comment", metavar="TEXT", help=comment)(command)
        by = click.option("--by", metavar="NAME", help="Who says so. [default: your login name]")
        return by(command)

    return decorate


def until_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--for`` and ``--until``; the command is called with ``lasting`` and ``until``."""
    command = moment_option("--until", "Until a time with its zone: 2027-03-01T18:00+01:00.")(
        command
    )
    lasting = click.option(
        "--for", "lasting", callback=_duration, metavar="DURATION", help="For so long, such as 2h."
    )
    return lasting(command)


def until_when(lasting: float | None, until: float | None, start: float) -> float | None:
    """Say when it ends, unix seconds; None where nothing was said. Raises `UsageError` for both."""
    if lasting is not None and until is not None:
        raise UsageError("--for and --until say the same thing; leave one of them out")
    return start + lasting if lasting is not None else until


def who(by: str | None) -> str:
    """Name who says it: ``by``, or the person who is logged in. Raises `UsageError` for nobody."""
    if by is None:
        try:
            by = os.environ.get("SUDO_USER") or getpass.getuser()
        except (KeyError, OSError, ImportError):
            by = ""
    return _text(by, "--by", LONGEST_NAME)


def why(comment: str | None) -> str:
    """Check a comment that has to be there. Raises `UsageError` where it is missing or too long."""
    return _text(comment or "", "--comment", LONGEST_COMMENT)


def _text(text: str, option: str, longest: int) -> str:
    short = " ".join(text.split())
    if not short:
        raise UsageError(f"{option} is missing or empty")
    if len(short) > longest:
        raise UsageError(f"{option} should have at most {longest} characters")
    return short


def _duration(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Turn a duration such as ``2h`` into seconds."""
    from wtwin_watch.settings.durations import parse_duration

    if value is None:
        return None
    try:
        seconds = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} {error}") from None
    if seconds <= 0.0:
        raise click.BadParameter(f"{value!r} should be longer than nothing")
    return seconds


def _moment(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Turn a time with its zone into unix seconds."""
    if value is None:
        return None
    how = "should be a time such as 2027-03-01T18:00+01:00 or 2027-03-01T17:00Z"
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} {how}") from None
    if moment.tzinfo is None:
        raise click.BadParameter(f"{value!r} {how}, with its time zone")
    return moment.timestamp()
