"""Which time a digest is about."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from wtwin_watch.alerting.digest import Schedule, last_period

BERLIN = ZoneInfo("Europe/Berlin")


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def period(schedule, now):
    found = last_period(schedule, utc(now))
    start, end = (datetime.fromtimestamp(t, UTC) for t in (found.start, found.end))
    return f"{start:%m-%d %H:%M}", f"{end:%m-%d %H:%M}", found.name


# 1 December 2026 is a Tuesday.
@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-12-01 08:59:59", ("11-29 09:00", "11-30 09:00", "day 2026-11-30")),
        ("2026-12-01 09:00:00", ("11-30 09:00", "12-01 09:00", "day 2026-12-01")),
        ("2026-12-01 23:59:00", ("11-30 09:00", "12-01 09:00", "day 2026-12-01")),
        ("2026-12-02 00:00:00", ("11-30 09:00", "12-01 09:00", "day 2026-12-01")),
    ],
)
def test_a_daily_digest_is_about_the_day_before_its_time(now, expected):
    assert period(Schedule("day", time(9)), now) == expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-12-01 12:00:00", ("11-23 09:00", "11-30 09:00", "week 2026-11-30")),
        ("2026-11-30 08:59:00", ("11-16 09:00", "11-23 09:00", "week 2026-11-23")),
        ("2026-11-30 09:00:00", ("11-23 09:00", "11-30 09:00", "week 2026-11-30")),
        ("2026-12-06 23:00:00", ("11-23 09:00", "11-30 09:00", "week 2026-11-30")),
    ],
)
def test_a_weekly_digest_is_about_the_week_before_its_day(now, expected):
    assert period(Schedule("week", time(9), weekday=0), now) == expected


def test_the_day_of_a_weekly_digest_can_be_chosen():
    friday = Schedule("week", time(17, 30), weekday=4)

    assert period(friday, "2026-12-01 12:00:00") == (
        "11-20 17:30",
        "11-27 17:30",
        "week 2026-11-27",
    )


def test_the_time_of_day_is_that_of_the_time_zone():
    morning = Schedule("day", time(9), BERLIN)

    # 9:00 is 8:00 UTC in winter and 7:00 UTC in summer.
    assert period(morning, "2026-12-01 07:59:00")[1] == "11-30 08:00"
    assert period(morning, "2026-12-01 08:00:00")[1] == "12-01 08:00"
    assert period(morning, "2026-07-01 07:00:00")[1] == "07-01 07:00"


def test_the_day_on_which_clocks_change_is_an_hour_longer_or_shorter():
    morning = Schedule("day", time(9), BERLIN)

    autumn = last_period(morning, utc("2026-10-25 12:00:00"))
    spring = last_period(morning, utc("2026-03-29 12:00:00"))

    assert (autumn.end - autumn.start) / 3600 == 25
    assert (spring.end - spring.start) / 3600 == 23


def test_periods_follow_each_other_without_a_gap():
    at_night = Schedule("day", time(2, 30), BERLIN)  # an hour that doesn't exist on 29 March

    ends = [last_period(at_night, utc(f"2026-03-{day} 12:00:00")) for day in (28, 29, 30, 31)]

    assert [one.start for one in ends[1:]] == [one.end for one in ends[:-1]]
