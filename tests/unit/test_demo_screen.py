import io

import pytest

from wtwin_watch.demo.screen import Screen, sparkline


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_says_who_speaks():
    stream = io.StringIO()

    Screen(stream, {}).say("watcher", "run found")

    assert stream.getvalue() == " 0.0 s  watcher   run found\n"


def test_away_from_a_terminal_nothing_is_coloured_drawn_over_or_broken():
    stream = io.StringIO()
    screen = Screen(stream, {})

    screen.live("training", "step 10")
    screen.say("receiver", "word " * 80, good=False)
    screen.end_live()

    assert "step 10" not in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_on_a_terminal_the_moving_line_stays_last(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    screen = Screen(stream, {"NO_COLOR": "1"})

    screen.live("training", "step 10")
    screen.say("watcher", "run found")

    clock, width = "        ", "training  step 10"
    assert stream.getvalue() == (
        f"{clock}{width}\r\x1b[K 0.0 s  watcher   run found\n{clock}{width}"
    )


def test_on_a_terminal_a_moving_line_never_breaks_and_a_lasting_one_breaks_between_words(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    screen = Screen(stream, {"NO_COLOR": "1"})

    screen.say("demo", "one two three four five six seven eight nine ten")
    screen.live("training", "x" * 100)

    *lasting, moving = stream.getvalue().split("\n")
    assert [line[18:] for line in lasting] == [
        "one two three four",
        "five six seven eight",
        "nine ten",
    ]
    assert len(moving) < 40


@pytest.mark.parametrize("environ", [{}, {"TERM": "xterm"}])
def test_a_terminal_shows_colour(environ: dict[str, str]):
    stream = Terminal()

    Screen(stream, environ).say("demo", "as it should be", good=True)

    assert "\x1b[32mas it should be\x1b[0m" in stream.getvalue()


def test_a_terminal_that_can_nothing_is_treated_as_none():
    stream = Terminal()
    screen = Screen(stream, {"TERM": "dumb"})

    screen.live("training", "step 10")

    assert not screen.lively
    assert stream.getvalue() == ""


def test_a_terminal_without_the_signs_of_the_curve_is_treated_as_none():
    class Latin(Terminal):
        encoding = "iso-8859-1"

    assert not Screen(Latin(), {}).lively


@pytest.mark.parametrize(
    ("values", "width", "bars"),
    [
        ([], 5, ""),
        ([0.0, 0.0], 5, "▁▁"),
        ([1.0], 5, "█"),
        ([8.0, 4.0, 1.0, 0.0], 4, "█▅▂▁"),
        ([8.0, 8.0, 4.0, 4.0], 2, "█▅"),
        ([2.0, 1.0, 0.0, 1.0, 2.0], 2, "█▆"),
    ],
)
def test_a_curve_is_drawn_from_zero_up_to_its_highest_mean(
    values: list[float], width: int, bars: str
):
    assert sparkline(values, width) == bars
