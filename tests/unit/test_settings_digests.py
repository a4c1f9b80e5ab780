"""Who gets a digest and when, as the settings say it."""

from datetime import UTC, time
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest

from wtwin_watch.alerting.digest import Digest, Schedule
from wtwin_watch.errors import SettingsError
from wtwin_watch.settings import Flags, load_settings

RECEIVERS = """\
[[receiver]]
name = "team"
notifier = "terminal"
[[receiver]]
name = "pager"
notifier = "alertmanager"
url = "http://127.0.0.1:9093"
"""
LINES = len(RECEIVERS.splitlines())


@pytest.fixture
def load(tmp_path: Path):
    def loaded(text):
        path = tmp_path / "config.toml"
        path.write_text(RECEIVERS + text)
        return load_settings(Flags(config=path), {}, needs_sources=False)

    return loaded


@pytest.fixture
def mistakes(load, tmp_path: Path):
    def told(text):
        with pytest.raises(SettingsError) as caught:
            load(text)
        return [line.removeprefix(f"{tmp_path}/config.toml:") for line in caught.value.mistakes]

    return told


def test_without_a_table_there_is_no_digest(load):
    assert load("").digests == ()


def test_a_digest_comes_every_day_at_nine_unless_something_else_is_said(load):
    assert load('[[digest]]\nreceiver = "team"\n').digests == (
        Digest("team", Schedule("day", time(9), UTC, 0)),
    )


def test_digests_are_read_as_they_are_written(load):
    settings = load(
        """
        [[digest]]
        receiver = "team"
        every = "week"
        weekday = "friday"
        at = "17:30"
        timezone = "Europe/Berlin"
        [[digest]]
        receiver = "team"
        at = 7:05:00
        """.replace("7:05:00", "07:05:00")
    )

    assert settings.digests == (
        Digest("team", Schedule("week", time(17, 30), ZoneInfo("Europe/Berlin"), 4)),
        Digest("team", Schedule("day", time(7, 5))),
    )


def test_every_mistake_in_digests_is_told_with_its_line(mistakes):
    told = mistakes(
        """\
[[digest]]
receiver = "teem"
every = "hour"
at = "9 o'clock"
timezone = "Europe/Berln"
weekday = "monday"
[[digest]]
recever = "team"
[[digest]]
receiver = "pager"
every = "week"
weekday = "sonntag"
timezone = 1
at = "24:00"
"""
    )

    assert told == [
        f"{LINES + 2}: digest.receiver: no receiver is called 'teem'; did you mean 'team'?",
        f"{LINES + 3}: digest.every: should be 'day' or 'week'",
        f'{LINES + 4}: digest.at: should be a time of day such as "09:00"',
        f"{LINES + 5}: digest.timezone: no time zone is called 'Europe/Berln'; did you mean"
        " 'Europe/Berlin'?",
        f"{LINES + 6}: digest.weekday: counts for a weekly digest; remove it, or write"
        ' every = "week"',
        f"{LINES + 7}: digest.receiver: is missing; add it",
        f"{LINES + 8}: digest.recever: unknown key; did you mean 'receiver'?",
        f"{LINES + 10}: digest.receiver: 'pager' can't have a digest: it takes alerts alone, which"
        " begin and end",
        f"{LINES + 12}: digest.weekday: should be 'monday', 'tuesday', 'wednesday', 'thursday',"
        " 'friday', 'saturday' or 'sunday'",
        f"{LINES + 13}: digest.timezone: should be the name of a time zone, such as"
        ' "Europe/Berlin"',
        f'{LINES + 14}: digest.at: should be a time of day such as "09:00"',
    ]


@pytest.mark.parametrize(
    "name", ["", "../etc/passwd", "/etc/passwd", "Europe", "Mars/Olympus", "\\u0000"]
)
def test_what_is_no_time_zone_is_a_mistake(mistakes, name):
    [told] = mistakes(f'[[digest]]\nreceiver = "team"\ntimezone = "{name}"\n')

    assert told.startswith(f"{LINES + 3}: digest.timezone: no time zone is called ")


def test_a_machine_without_time_zones_is_told_what_to_install(mistakes, monkeypatch):
    monkeypatch.setattr("wtwin_watch.settings.times.available_timezones", set)
    monkeypatch.setattr("wtwin_watch.settings.times.ZoneInfo", _absent)

    [told] = mistakes('[[digest]]\nreceiver = "team"\ntimezone = "Europe/Berlin"\n')

    assert told.endswith(
        "this machine has no time zones; install the package tzdata, or leave it out"
    )


def test_utc_needs_no_time_zones(load, monkeypatch):
    monkeypatch.setattr("wtwin_watch.settings.times.ZoneInfo", _absent)

    [digest] = load('[[digest]]\nreceiver = "team"\ntimezone = "UTC"\n').digests

    assert digest.schedule.zone is UTC


def test_a_receiver_that_gets_a_digest_alone_is_no_oversight(load):
    settings = load('[alerts]\nreceivers = ["pager"]\n[[digest]]\nreceiver = "team"\n')

    assert settings.notes == ()
    assert len(load('[alerts]\nreceivers = ["pager"]\n').notes) == 1


def test_webhooks_in_alertmanager_s_format_take_no_digest(mistakes, load):
    hook = '[[receiver]]\nname = "hook"\nnotifier = "webhook"\nurl = "http://127.0.0.1:9/"\n'
    digest = '[[digest]]\nreceiver = "hook"\n'

    assert len(load(hook + digest).digests) == 1
    [told] = mistakes(hook + 'format = "alertmanager"\n' + digest)
    assert "'hook' can't have a digest: it takes alerts alone" in told


def _absent(name):
    raise ZoneInfoNotFoundError(name)
