"""Maintenance windows: what is kept quiet at which times, from the tables ``[[maintenance]]``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from wtwin_watch.alerting.digest import WEEKDAYS
from wtwin_watch.alerting.maintenance import Window
from wtwin_watch.alerting.matching import Matcher, parse
from wtwin_watch.settings.given import Entry
from wtwin_watch.settings.mistakes import Mistakes
from wtwin_watch.settings.model import Section
from wtwin_watch.settings.times import TimeOfDay, Zone

EVERYTHING = "everything"
_NUMBERS = {name: i for i, day in enumerate(WEEKDAYS) for name in (day.lower(), day[:3].lower())}


def _read_match(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("should be a text such as 'project=myteam/llm severity!=critical'")
    if value.strip() == EVERYTHING:
        return ()
    if not value.strip():
        raise ValueError(f'would mean all alerts; write "{EVERYTHING}" if you want that')
    return parse(value)


def _read_days(value: Any) -> Any:
    days = value if isinstance(value, list) else [value]
    if not days:
        raise ValueError("should not be empty; leave it out for every day")
    return frozenset(_read_day(day) for day in days)


def _read_day(value: Any) -> int | date:
    # A bare 2026-12-24 is a date to TOML.
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str):
        if value.lower() in _NUMBERS:
            return _NUMBERS[value.lower()]
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise ValueError('should be weekdays and dates, such as ["tue", "thu"] or ["2026-12-24"]')


def _said(comment: str) -> str:
    comment = " ".join(comment.split())
    if not comment:
        raise ValueError("should say why it is quiet")
    return comment


class MaintenanceTable(Section):
    """A table ``[[maintenance]]``: a time that comes again, in which nobody hears first of some alerts."""

    match: Annotated[
        tuple[Matcher, ...], BeforeValidator(_read_match, json_schema_input_type=str)
    ] = Field(
        description="the alerts that are meant: label=value, set apart by spaces; 'everything' for all"
    )
    days: Annotated[
        frozenset[int | date],
        BeforeValidator(_read_days, json_schema_input_type=str | list[str]),
    ] = Field(
        default_factory=frozenset,
        description="weekdays and dates on which it begins; every day if left out",
        examples=[["tue", "thu"], ["2026-12-24"]],
    )
    start: TimeOfDay = Field(description="the time of day at which it begins")
    end: TimeOfDay = Field(
        description="the time of day at which it ends; of the next day if that isn't after the start"
    )
    timezone: Zone = Field("UTC", validate_default=True, description="whose time of day that is")
    comment: Annotated[str, Field(max_length=500), AfterValidator(_said)] = Field(
        description="why, for those who miss the alerts"
    )


def read_maintenance(tables: Sequence[Entry], mistakes: Mistakes) -> tuple[Window, ...]:
    """Read the windows in their order."""
    windows = []
    for entry in tables:
        table = mistakes.validate(MaintenanceTable, entry.values, entry.where, "maintenance")
        if table is None:
            continue
        window = Window(
            table.match, table.start, table.end, table.comment, table.timezone, table.days
        )
        if window.endless:
            text = (
                "is the start again, on every day, so that it never ends; name another end, or days"
            )
            mistakes.add(entry.where(("end",)), text, "maintenance.end")
        windows.append(window)
    return tuple(windows)
