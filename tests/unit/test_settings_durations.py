import math

import pytest

from wtwin_watch.settings.durations import parse_duration, shown_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("5m", 300),
        ("2s", 2),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("2d", 172800),
        ("90", 90),
        ("0s", 0),
        (7, 7),
        (0.25, 0.25),
    ],
)
def test_a_duration_is_read_in_seconds(written, seconds):
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize("written", ["", "m", "5 minutes", "-5m", "5m!", True, None, [], "\u0661m"])
def test_what_is_no_duration_is_answered_with_how_to_write_one(written):
    with pytest.raises(ValueError, match='"30s", "5m" or "1h30m"'):
        parse_duration(written)


@pytest.mark.parametrize("written", [-1, math.nan, math.inf, "367d", 10**400, -(10**400), 10**9])
def test_a_duration_out_of_bounds_is_refused(written):
    with pytest.raises(ValueError, match="between 0 and 366 days"):
        parse_duration(written)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0s"), (90, "1m30s"), (0.25, "250ms"), (86400, "1d"), (600, "10m")]
)
def test_seconds_are_shown_as_a_person_writes_them(seconds, shown):
    assert shown_duration(seconds) == shown
    assert parse_duration(shown) == seconds
