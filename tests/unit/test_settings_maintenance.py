"""Maintenance windows, as the settings say them."""

from datetime import UTC, date, time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from wtwin_watch.alerting.maintenance import Window
from wtwin_watch.alerting.matching import parse
from wtwin_watch.errors import SettingsError
from wtwin_watch.settings import Flags, load_maintenance, load_settings

REST = 'start = "22:00"\nend = "02:00"\ncomment = "backup"\n'


@pytest.fixture
def load(tmp_path: Path):
    def loaded(text):
        path = tmp_path / "config.toml"
        path.write_text(text)
        return load_settings(Flags(config=path), {}, needs_sources=False).maintenance

    return loaded


@pytest.fixture
def mistakes(load, tmp_path: Path):
    def told(text):
        with pytest.raises(SettingsError) as caught:
            load(text)
        return [line.removeprefix(f"{tmp_path}/config.toml:") for line in caught.value.mistakes]

    return told


def test_windows_are_read_as_they_are_written(load):
    windows = load(
        """
        [[maintenance]]
        match = 'project=llm severity!=critical'
        days = ["tue", "Thursday", "2026-12-24", 2026-12-31]
        start = "22:00"
        end = 02:00:00
        timezone = "Europe/Berlin"
        comment = " the cluster  is moved "
        [[maintenance]]
        match = "everything"
        start = "3:00"
        end = "03:30"
        comment = "backup"
        """
    )

    assert windows == (
        Window(
            parse("project=llm severity!=critical"),
            time(22),
            time(2),
            "the cluster is moved",
            ZoneInfo("Europe/Berlin"),
            frozenset({1, 3, date(2026, 12, 24), date(2026, 12, 31)}),
        ),
        Window((), time(3), time(3, 30), "backup", UTC, frozenset()),
    )


def test_every_mistake_in_windows_is_told_with_its_line(mistakes):
    assert mistakes(
        """\
[[maintenance]]
match = ""
days = []
start = "22"
end = "24:00"
timezone = "Europe/Berln"
comment = " "
[[maintenance]]
mach = "run=a"
days = ["tues"]
[[maintenance]]
match = "rum=a"
days = [2026-12-24T10:00:00]
start = "09:00"
end = "09:00"
timezone = 1
comment = 5
[[maintenance]]
match = "run=a"
start = "09:00"
end = "09:00"
comment = "for ever"
"""
    ) == [
        '2: maintenance.match: would mean all alerts; write "everything" if you want that',
        "3: maintenance.days: should not be empty; leave it out for every day",
        '4: maintenance.start: should be a time of day such as "09:00"',
        '5: maintenance.end: should be a time of day such as "09:00"',
        "6: maintenance.timezone: no time zone is called 'Europe/Berln'; did you mean"
        " 'Europe/Berlin'?",
        "7: maintenance.comment: should say why it is quiet",
        "8: maintenance.match: is missing; add it",
        "8: maintenance.start: is missing; add it",
        "8: maintenance.end: is missing; add it",
        "8: maintenance.comment: is missing; add it",
        "9: maintenance.mach: unknown key; did you mean 'match'?",
        '10: maintenance.days: should be weekdays and dates, such as ["tue", "thu"] or'
        ' ["2026-12-24"]',
        "12: maintenance.match: 'rum' is no label; there are source, project, run, group, tag,"
        " family, kind, severity",
        '13: maintenance.days: should be weekdays and dates, such as ["tue", "thu"] or'
        ' ["2026-12-24"]',
        '16: maintenance.timezone: should be the name of a time zone, such as "Europe/Berlin"',
        "17: maintenance.comment: should be a valid string",
        "21: maintenance.end: is the start again, on every day, so that it never ends; name another"
        " end, or days",
    ]


def test_one_table_with_single_brackets_is_a_mistake(mistakes):
    assert mistakes(f'[maintenance]\nmatch = "run=a"\n{REST}') == [
        "1: maintenance: should be tables; write [[maintenance]], with two brackets"
    ]


def test_windows_alone_are_read_whatever_else_is_wrong(tmp_path: Path):
    path = tmp_path / "config.toml"
    path.write_text(f'[alerts]\nfro = "1m"\n[[maintenance]]\nmatch = "run=a"\n{REST}')

    [window] = load_maintenance(Flags(config=path), {})

    assert window.what == "run=a"
