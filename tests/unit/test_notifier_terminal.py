"""What an event looks like on a terminal."""

import io
import os
import re
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.notifications import HOSTILE_NAMES, notification
from wtwin_notifiers import terminal
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.terminal import TerminalNotifier, TerminalOptions
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Message


class Tty(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def notifier():
    return TerminalNotifier("screen", TerminalOptions())


@pytest.fixture
def on(monkeypatch):
    """Make ``out`` standard output until the test ends, then close it."""
    outs = []

    def on(out):
        # In the test's own call: pytest puts its capture back between a fixture and the test.
        monkeypatch.setattr(sys, "stdout", out)
        outs.append(out)
        return out

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    yield on
    for out in outs:
        with suppress(OSError):
            out.close()


def test_an_event_is_a_headline_and_what_there_is_to_say(notifier, capsys):
    notifier.send(notification())

    first, *rest = capsys.readouterr().out.splitlines()
    assert first.endswith("  FIRING  Critical: loss drifts up (gpt-small-lr3e4)")
    assert re.match(r"2025-10-\d\d \d\d:\d\d:20  FIRING", first)
    assert rest == [
        "    loss is 0.31 above what this run's own trend expects",
        "    Run       gpt-small-lr3e4",
        "    Observed  2.81",
        "    Expected  2.5",
        "    https://tracker.example/run/a1?tab=charts&x=1",
    ]


@pytest.mark.parametrize("event", Event)
def test_the_headline_names_the_event(event, notifier, capsys):
    notifier.send(notification(event))

    assert f"  {event.upper()}  " in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_no_name_steers_the_terminal_or_fakes_another_event(name, notifier, on):
    tty = on(Tty())
    words = Message(name, name, ((name, name),), name)

    notifier.send(notification(name=name, message=words))

    printed = tty.getvalue().replace("\x1b[1;31m", "").replace("\x1b[0m", "")
    assert all(char == "\n" or char.isprintable() for char in printed)
    headlines = [line for line in printed.splitlines() if not line.startswith("    ")]
    assert len(headlines) == 1
    assert len(printed) < 20_000


@pytest.mark.parametrize(
    ("event", "colour"),
    [(Event.FIRING, "31"), (Event.RESOLVED, "32"), (Event.TEST, "36"), (Event.DIGEST, "36")],
)
def test_a_terminal_gets_colour(event, colour, notifier, on):
    tty = on(Tty())

    notifier.send(notification(event))

    assert tty.getvalue().startswith(f"\x1b[1;{colour}m")


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_can_decline_colour(variable, value, notifier, on, monkeypatch):
    tty = on(Tty())
    monkeypatch.setenv(variable, value)

    notifier.send(notification())

    assert "\x1b" not in tty.getvalue()


def test_an_empty_no_color_declines_nothing(notifier, on, monkeypatch):
    tty = on(Tty())
    monkeypatch.setenv("NO_COLOR", "")

    notifier.send(notification())

    assert "\x1b[1;31m" in tty.getvalue()


def test_a_file_or_pipe_gets_no_colour(notifier, capsys):
    notifier.send(notification())

    assert "\x1b" not in capsys.readouterr().out


def test_an_output_of_another_encoding_gets_what_it_can_show(notifier, on):
    raw = io.BytesIO()
    on(io.TextIOWrapper(raw, encoding="ascii"))

    notifier.send(notification(name="größe-🔥"))

    assert b"gr??e-?" in raw.getvalue()


def test_each_event_is_flushed(notifier, on):
    raw = io.BytesIO()
    on(io.TextIOWrapper(raw, encoding="utf-8"))

    notifier.send(notification())

    assert raw.getvalue().endswith(b"charts&x=1\n")


@pytest.mark.parametrize("closed", [None, "closed"])
def test_a_closed_output_is_permanent(closed, notifier, monkeypatch):
    out = io.StringIO()
    out.close()
    monkeypatch.setattr(sys, "stdout", out if closed else None)

    with pytest.raises(DeliveryError, match="standard output is closed") as caught:
        notifier.send(notification())
    assert caught.value.permanent


def test_a_reader_that_went_away_is_permanent(notifier, on):
    read, write = os.pipe()
    os.close(read)
    on(os.fdopen(write, "w"))

    with pytest.raises(DeliveryError, match="nobody reads") as caught:
        notifier.send(notification())
    assert caught.value.permanent


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_tried_again(notifier, on):
    on(os.fdopen(os.open("/dev/full", os.O_WRONLY), "w"))

    with pytest.raises(DeliveryError, match="No space left") as caught:
        notifier.send(notification())
    assert not caught.value.permanent


def test_a_reader_that_stops_reading_holds_nobody_up(notifier, on, monkeypatch):
    read, write = os.pipe()
    os.set_blocking(write, False)
    while True:
        try:
            os.write(write, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(write, True)
    on(os.fdopen(write, "w"))
    monkeypatch.setattr(notifier, "_deadline", Deadline("standard output", 0.05))

    with pytest.raises(DeliveryError, match="no whole answer") as caught:
        notifier.send(notification())

    assert not caught.value.permanent
    drained = threading.Thread(
        target=lambda: [None for _ in iter(lambda: os.read(read, 65536), b"")]
    )
    drained.start()
    for thread in threading.enumerate():
        if thread.name == "deliver to standard output":
            thread.join(5)
    sys.stdout.close()
    drained.join(5)
    os.close(read)


def test_a_time_that_is_no_date_is_said_so():
    given = notification()
    odd = replace(given, created_at=float("nan"))

    assert terminal.layout(odd, colour=False).startswith("(no time)  FIRING")
