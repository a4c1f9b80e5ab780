"""When a digest is due: pure arithmetic of days and weeks, in somebody's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

DAY, WEEK = "day", "week"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LENGTHS = {DAY: timedelta(days=1), WEEK: timedelta(days=7)}


@dataclass(frozen=True, slots=True)
class Schedule:
    """Every day or week at a time of day; ``weekday`` (0: Monday) counts for weeks alone."""

    every: str = DAY
    at: time = time(9)
    zone: tzinfo = UTC
    weekday: int = 0

    def __str__(self) -> str:
        day = f"on {WEEKDAYS[self.weekday]}s" if self.every == WEEK else "every day"
        return f"{day} at {self.at:%H:%M} {self.zone}"


@dataclass(frozen=True, slots=True)
class Digest:
    """Which receiver is to have a digest, and when."""

    receiver: str
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Period:
    """The time that one digest is about, unix seconds, and its name among those of its schedule."""

    start: float
    end: float
    name: str


def last_period(schedule: Schedule, now: float) -> Period:
    """The latest period that is over at ``now``. One around a change of the clocks is an hour off."""
    length = _LENGTHS[schedule.every]
    day = datetime.fromtimestamp(now, schedule.zone).date()
    if schedule.every == WEEK:
        day -= timedelta(days=(day.weekday() - schedule.weekday) % 7)
    if _moment(schedule, day) > now:
        day -= length
    return Period(
        _moment(schedule, day - length), _moment(schedule, day), f"{schedule.every} {day}"
    )


def _moment(schedule: Schedule, day: date) -> float:
    return datetime.combine(day, schedule.at, schedule.zone).timestamp()
