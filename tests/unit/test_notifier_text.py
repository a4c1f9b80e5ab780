"""Text of a run made safe to hand on."""

import pytest

from tests.support.notifications import HOSTILE_NAMES
from wtwin_notifiers import text


def test_control_characters_are_shown_not_obeyed():
    assert text.line("\x1b[31mred\x07 \x9b2J") == "\ufffd[31mred\ufffd \ufffd2J"


def test_marks_that_reverse_the_writing_are_shown():
    assert text.line("\u202egnp.exe") == "\ufffdgnp.exe"


def test_a_line_has_no_breaks_and_a_block_keeps_them():
    assert text.line(" a\r\n  b\tc\n") == "a b c"
    assert text.block("a\r\nb\tc\n") == "a\nb c"
    assert text.line("a\u2028b\x85c\rd") == "a\ufffdb\ufffdc\ufffdd"


def test_ordinary_writing_of_any_language_stays_as_it_is():
    for ordinary in ("naïve-größe_2", "実験-α/β", "עברית", "👩‍🔬 run", "a–b … 5 ± 2"):  # noqa: RUF001
        assert text.line(ordinary) == ordinary


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_whatever_the_name_the_result_is_printable_utf8(name):
    made = text.line(name)

    assert made.encode().decode() == made
    assert all(char.isprintable() or char.isspace() for char in made)
    assert "\n" not in made


def test_what_is_too_long_ends_in_an_ellipsis():
    assert text.shorten("abcd", 4) == "abcd"
    assert text.shorten("abcde", 4) == "abc…"


def test_only_lone_surrogates_can_not_be_encoded():
    assert text.encodable("caf\udce9 \x1b ok") == "caf\ufffd \x1b ok"
