"""The terminal: a readable block for each event on standard output."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import ClassVar, TextIO

from wtwin_notifiers import text
from wtwin_notifiers.answers import reason
from wtwin_notifiers.deadline import Deadline
from wtwin_watch import protocols
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Notification, Receipt, Severity

_CHARS = 2000
_RED, _YELLOW, _GREEN, _CYAN = "31", "33", "32", "36"
_COLOURS = {Severity.CRITICAL: _RED, Severity.WARNING: _YELLOW, Severity.INFO: _CYAN}


class TerminalOptions(protocols.Options):
    """There is nothing to set."""


class TerminalNotifier:
    """Prints to whatever standard output is when it is called."""

    Options: ClassVar[type[protocols.Options]] = TerminalOptions

    min_interval_s = 0.0

    def __init__(self, name: str, options: TerminalOptions) -> None:
        self._name = name
        self._options = options
        # A terminal stopped with ctrl-S, or a full pipe, blocks the writer for as long as it likes.
        self._deadline = Deadline(self.describe())

    def send(self, notification: Notification) -> Receipt:
        """Print and flush. A closed output, or a reader that went away, is permanent."""
        return self._deadline.run(lambda: _print(notification))

    def describe(self) -> str:
        """Say where it goes."""
        return "standard output"

    def close(self) -> None:
        """Nothing to let go of: standard output is the program's."""


def _print(notification: Notification) -> Receipt:
    out = sys.stdout
    if out is None or out.closed:
        raise DeliveryError("standard output is closed", permanent=True)
    printed = layout(notification, colour=_colourful(out)) + "\n"
    encoding = out.encoding or "utf-8"
    try:
        out.write(printed.encode(encoding, "replace").decode(encoding))
        out.flush()
    except BrokenPipeError:
        raise DeliveryError("nobody reads standard output any more", permanent=True) from None
    except (OSError, ValueError) as error:
        # ValueError: closed between the look and the write.
        raise DeliveryError(
            f"standard output can't be written: {reason(error)}", permanent=out.closed
        ) from None
    return Receipt()


def _colourful(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def layout(notification: Notification, *, colour: bool) -> str:
    """Lay out an event for a terminal: a headline, then indented what there is to say about it.

    Control characters of what a run supplied are shown as U+FFFD; long texts are cut.
    """
    words = notification.message
    event = str(notification.event).upper()
    headline = f"{_time(notification.created_at)}  {event}  {_line(words.title)}"
    if colour:
        headline = f"\x1b[1;{_colour(notification)}m{headline}\x1b[0m"
    lines = [headline]
    lines += text.shorten(text.block(words.summary), _CHARS).splitlines()
    width = max((len(_line(label)) for label, _ in words.facts), default=0)
    for label, value in words.facts:
        lines.append(f"{_line(label):<{width}}  {_line(value)}")
    if words.link:
        lines.append(_line(words.link))
    return "\n    ".join(lines)


def _line(raw: str) -> str:
    return text.shorten(text.line(raw), _CHARS)


def _colour(notification: Notification) -> str:
    if notification.event is Event.RESOLVED:
        return _GREEN
    if notification.event in {Event.TEST, Event.DIGEST}:
        return _CYAN
    return _COLOURS[notification.alert.severity]


def _time(seconds: float) -> str:
    """The local time, written as in the log beside it."""
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "(no time)"
