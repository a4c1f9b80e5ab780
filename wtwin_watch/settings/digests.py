"""Digests: which receiver gets one, and when, from the tables ``[[digest]]``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from pydantic import Field

from wtwin_watch.alerting.digest import WEEKDAYS, Digest, Schedule
from wtwin_watch.settings.given import Entry
from wtwin_watch.settings.mistakes import Mistakes
from wtwin_watch.settings.model import ReceiverSettings, Section
from wtwin_watch.settings.routes import check_receivers
from wtwin_watch.settings.times import TimeOfDay, Zone

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class DigestTable(Section):
    """A table ``[[digest]]``: what fired and what didn't, told to a receiver every day or week."""

    receiver: str = Field(description="who gets it")
    every: Literal["day", "week"] = Field("day", description="how often it comes")
    at: TimeOfDay = Field(
        "09:00", validate_default=True, description="the time of day at which it comes"
    )
    timezone: Zone = Field("UTC", validate_default=True, description="whose time of day that is")
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
