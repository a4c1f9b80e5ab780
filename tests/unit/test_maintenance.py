"""Maintenance windows: when they hold, over midnight and over changes of the clocks."""

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest

from tests.support.memory import World
from wtwin_watch.alerting.maintenance import Window, holding, next_silence
from wtwin_watch.alerting.matching import parse

BERLIN = ZoneInfo("Europe/Berlin")
TUESDAY, THURSDAY = 1, 3


def window(start, end, days=(), zone=BERLIN, match="project=llm"):
    return Window(
        parse(match),
        time.fromisoformat(start),
        time.fromisoformat(end),
        "the cluster is moved",
        zone,
        frozenset(days),
    )


def at(text):
    return datetime.fromisoformat(text).timestamp()


def when(silence):
    return silence.starts_at, silence.ends_at


# 2026-12-01 is a Tuesday. In Berlin it is UTC+1 in winter; the clocks go back on 2026-10-25 at 03:00
# to 02:00, and forward on 2027-03-28 at 02:00 to 03:00.
@pytest.mark.parametrize(
    ("window", "now", "starts", "ends"),
    [
        pytest.param(
            window("09:00", "10:00"), "2026-12-01T08:59+01:00",
            "2026-12-01T08:00Z", "2026-12-01T09:00Z", id="later today",
        ),
        pytest.param(
            window("09:00", "10:00"), "2026-12-01T10:00+01:00",
            "2026-12-02T08:00Z", "2026-12-02T09:00Z", id="over for today",
        ),
        pytest.param(
            window("22:00", "02:00", {TUESDAY, THURSDAY}), "2026-12-02T01:59+01:00",
            "2026-12-01T21:00Z", "2026-12-02T01:00Z", id="begun yesterday",
        ),
        pytest.param(
            window("22:00", "02:00", {TUESDAY, THURSDAY}), "2026-12-02T02:00+01:00",
            "2026-12-03T21:00Z", "2026-12-04T01:00Z", id="the next of its days",
        ),
        pytest.param(
            window("09:00", "10:00", {TUESDAY}), "2026-12-01T10:00+01:00",
            "2026-12-08T08:00Z", "2026-12-08T09:00Z", id="a week later",
        ),
        pytest.param(
            window("08:00", "08:00", {date(2027, 12, 24), date(2026, 12, 24)}),
            "2026-12-01T00:00Z", "2026-12-24T07:00Z", "2026-12-25T07:00Z", id="a whole day, far ahead",
        ),
        pytest.param(
            window("00:30", "01:30", {TUESDAY}, ZoneInfo("Asia/Tokyo")), "2026-11-30T16:00Z",
            "2026-11-30T15:30Z", "2026-11-30T16:30Z", id="Tuesday there, Monday in UTC",
        ),
        pytest.param(
            window("22:00", "06:00"), "2026-10-25T00:00+02:00",
            "2026-10-24T20:00Z", "2026-10-25T05:00Z", id="clocks go back: nine hours",
        ),
        pytest.param(
            window("22:00", "06:00"), "2027-03-28T00:00+01:00",
            "2027-03-27T21:00Z", "2027-03-28T04:00Z", id="clocks go forward: seven hours",
        ),
        pytest.param(
            window("02:15", "02:45"), "2026-10-25T01:00Z",
            "2026-10-25T00:15Z", "2026-10-25T01:45Z", id="comes twice: from the first to the last",
        ),
        pytest.param(
            window("02:00", "04:00"), "2027-03-28T00:00Z",
            "2027-03-28T01:00Z", "2027-03-28T02:00Z", id="skipped start: three o'clock",
        ),
        pytest.param(
            window("01:00", "02:30"), "2027-03-28T00:30Z",
            "2027-03-28T00:00Z", "2027-03-28T01:30Z", id="skipped end: as long as ever",
        ),
        pytest.param(
            window("02:30", "03:15"), "2027-03-28T00:30Z",
            "2027-03-28T01:30Z", "2027-03-28T02:15Z", id="skipped start, end before it: as long as ever",
        ),
    ],
)  # fmt: skip
def test_a_window_holds_by_the_clocks_of_its_zone(window, now, starts, ends):
    assert when(next_silence(window, at(now))) == (at(starts), at(ends))


@pytest.mark.parametrize("change", ["2026-10-25", "2027-03-28"])
def test_a_window_over_a_change_of_the_clocks_holds_all_night(change):
    night = window("22:00", "06:00")
    six = datetime.combine(date.fromisoformat(change), time(6), BERLIN).timestamp()
    ten = datetime.combine(date.fromisoformat(change), time(22), BERLIN).timestamp()

    assert [bool(holding([night], now)) for now in (six - 1, six, ten - 1, ten)] == [
        True, False, False, True,
    ]  # fmt: skip


def test_a_window_whose_dates_are_over_is_none():
    christmas = window("00:00", "12:00", {date(2026, 12, 24)}, UTC)

    assert next_silence(christmas, at("2026-12-24T12:00Z")) is None
    assert holding([christmas], at("2026-12-24T12:00Z")) == []


def test_each_time_of_a_window_is_one_silence_with_an_id_of_its_own():
    nightly = window("22:00", "02:00")
    moments = ["2026-12-01T22:00+01:00", "2026-12-02T01:59+01:00", "2026-12-02T22:00+01:00"]

    first, same, second = (holding([nightly], at(moment))[0] for moment in moments)

    assert first == same
    assert (first.author, first.comment) == ("settings", "the cluster is moved")
    assert first.what == "project=llm"
    other = holding([window("22:00", "02:00", match="project=vision")], at(moments[0]))[0]
    assert len({first.id, second.id, other.id}) == 3


def test_a_window_says_when_it_is():
    assert str(window("22:00", "02:00", {THURSDAY, TUESDAY, date(2026, 12, 24)})) == (
        "on Tuesdays, Thursdays, 2026-12-24 from 22:00 to 02:00 Europe/Berlin"
    )
    assert str(window("22:00", "02:00", zone=UTC)) == "every day from 22:00 to 02:00 UTC"


def test_what_fires_still_when_a_window_ends_is_told_then(tmp_path):
    # The world begins on 1970-01-12 at 13:46:40 UTC.
    quiet = window("13:00", "14:00", zone=UTC, match="run=a")
    world = World(tmp_path, maintenance=[quiet])
    for run in ("a", "b"):
        world.source.log(run, [2.0] * 20)
    world.settle()

    for run in ("a", "b"):
        world.source.log(run, [float("nan")])
    world.settle(2.0)
    world.clock.now = at("1970-01-12T13:59:58Z")
    world.settle()
    before = world.outbox()
    world.clock.now = at("1970-01-12T14:00:00Z")
    world.settle(1.0)

    assert before == [("firing", "b", "nonfinite")]
    assert world.outbox() == [*before, ("firing", "a", "nonfinite")]
    world.store.close()
