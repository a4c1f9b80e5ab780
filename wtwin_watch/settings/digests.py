"""Digests: which receiver gets one, and when, from the tables ``[[digest]]``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, time, tzinfo
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import BeforeValidator, Field, InstanceOf, WithJsonSchema

from wtwin_watch.alerting.digest import WEEKDAYS, Digest, Schedule
from wtwin_watch.plugins import did_you_mean
from wtwin_watch.settings.given import Entry
from wtwin_watch.settings.mistakes import Mistakes
from wtwin_watch.settings.model import ReceiverSettings, Section
from wtwin_watch.settings.routes import check_receivers

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _read_time(value: Any) -> time:
    # A bare 09:00:00 is a time to TOML.
    if isinstance(value, time):
        return value.replace(tzinfo=None)
    found = (
        re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", value, re.ASCII)
        if isinstance(value, str)
        else None
    )
    if found is None:
        raise ValueError('should be a time of day such as "09:00"')
    return time(int(found[1]), int(found[2]))


def _read_zone(value: Any) -> tzinfo:
    if not isinstance(value, str):
        raise ValueError('should be the name of a time zone, such as "Europe/Berlin"')
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
    if not known:
        raise ValueError(
            "this machine has no time zones; install the package tzdata, or leave it out"
        )
    near = did_you_mean(value, known)
    raise ValueError(
        f"no time zone is called {value!r}{near or '; name one such as Europe/Berlin'}"
    )


class DigestTable(Section):
    """A table ``[[digest]]``: what fired and what didn't, told to a receiver every day or week."""

    receiver: str = Field(description="who gets it")
    every: Literal["day", "week"] = Field("day", description="how often it comes")
    at: Annotated[
        time,
        BeforeValidator(_read_time),
        WithJsonSchema({"type": "string", "examples": ["09:00"]}),
    ] = Field("09:00", validate_default=True, description="the time of day at which it comes")
    timezone: Annotated[
        InstanceOf[tzinfo],
        BeforeValidator(_read_zone),
        WithJsonSchema({"type": "string", "examples": ["Europe/Berlin"]}),
    ] = Field("UTC", validate_default=True, description="whose time of day that is")
    weekday: Weekday = Field("monday", description="the day on which a weekly one comes")


def read_digests(
    tables: Sequence[Entry],
    names: Collection[str],
    receivers: Iterable[ReceiverSettings],
    mistakes: Mistakes,
) -> list[Digest]:
    """Read the digests. ``receivers`` are those whose settings are right, ``names`` all of theirs."""
    refusals = {r.name: r.options.no_digest for r in receivers}
    digests = []
    for entry in tables:
        place = entry.where(("receiver",))
        receiver = entry.values.get("receiver")
        check_receivers(receiver, names, place, "digest.receiver", mistakes)
        if isinstance(receiver, str) and (why := refusals.get(receiver)):
            mistakes.add(place, f"{receiver!r} can't have a digest: {why}", "digest.receiver")
        if "weekday" in entry.values and entry.values.get("every") != "week":
            mistakes.add(
                entry.where(("weekday",)),
                'counts for a weekly digest; remove it, or write every = "week"',
                "digest.weekday",
            )
        table = mistakes.validate(DigestTable, entry.values, entry.where, "digest")
        if table is not None:
            weekday = WEEKDAYS.index(table.weekday.capitalize())
            schedule = Schedule(table.every, table.at, table.timezone, weekday)
            digests.append(Digest(table.receiver, schedule))
    return digests
