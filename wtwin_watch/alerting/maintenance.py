"""Maintenance windows: silences that come again on certain days, in somebody's time zone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from wtwin_watch.alerting.digest import WEEKDAYS
from wtwin_watch.alerting.matching import Matcher
from wtwin_watch.alerting.silences import Silence

AUTHOR = "settings"


@dataclass(frozen=True, slots=True)
class Window:
    """What is kept quiet from ``start`` to ``end``, which may be past midnight, and why.

    It begins on the ``days``, weekdays (0: Monday) and dates; none: on every day. If ``end`` isn't after
    ``start`` it means the next day.
    """

    matchers: tuple[Matcher, ...]
    start: time
    end: time
    comment: str
    zone: tzinfo = UTC
    days: frozenset[int | date] = frozenset()

    def __str__(self) -> str:
        weekdays = sorted(day for day in self.days if isinstance(day, int))
        names = [f"{WEEKDAYS[day]}s" for day in weekdays] + [str(day) for day in self._dates]
        when = f"on {', '.join(names)}" if names else "every day"
        return f"{when} from {self.start:%H:%M} to {self.end:%H:%M} {self.zone}"

    @property
    def what(self) -> str:
        """Its matchers as they are written."""
        return " ".join(map(str, self.matchers))

    @property
    def endless(self) -> bool:
        """Whether each time ends when the next one begins, for ever."""
        return self.start == self.end and (not self.days or self.days.issuperset(range(7)))

    def begins_on(self, day: date) -> bool:
        """Whether a time of it begins on ``day``."""
        return not self.days or day in self.days or day.weekday() in self.days

    @property
    def _dates(self) -> list[date]:
        return sorted(day for day in self.days if isinstance(day, date))

    def _days_from(self, day: date) -> Iterator[date]:
        """The days on which it begins from ``day`` on; of those by weekday the ones of a week or more."""
        near = [day + timedelta(days=ahead) for ahead in range(9)]
        yield from (one for one in near if self.begins_on(one))
        yield from (one for one in self._dates if one > near[-1])


def holding(windows: Iterable[Window], now: float) -> list[Silence]:
    """The silences that windows are at ``now`` (unix seconds)."""
    found = (next_silence(window, now) for window in windows)
    return [silence for silence in found if silence is not None and silence.active(now)]


def next_silence(window: Window, now: float) -> Silence | None:
    """The silence that a window is at ``now``, else its next one; None if all of its dates are over."""
    today = datetime.fromtimestamp(now, window.zone).date()
    coming = (_silence(window, day) for day in window._days_from(today - timedelta(days=1)))
    return next((silence for silence in coming if silence.ends_at > now), None)


def _silence(window: Window, day: date) -> Silence:
    """The silence that begins on ``day``.

    A time that the clocks skip is as long after midnight as on other days (RFC 5545); of one that comes
    twice the start is the first and the end the last.
    """
    starts = datetime.combine(day, window.start, window.zone)
    ends = datetime.combine(day, window.end, window.zone)
    if window.end <= window.start:
        ends += timedelta(days=1)
    starts_at = starts.timestamp()
    ends_at = max(ends.timestamp(), ends.replace(fold=1).timestamp())
    if (
        ends_at <= starts_at
    ):  # the clocks skip its start, and so far that it would begin after its end
        ends_at = (
            starts_at + (ends.replace(tzinfo=None) - starts.replace(tzinfo=None)).total_seconds()
        )
    id_ = hashlib.sha256(f"{window.what} {starts_at} {ends_at}".encode()).hexdigest()[:32]
    return Silence(id_, window.matchers, starts_at, ends_at, AUTHOR, window.comment, starts_at)
