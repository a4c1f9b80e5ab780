"""Reading on in one metric of an MLflow server at the least cost that its version allows.

- From 3.12 on by *windows* of steps, which cost what is in them. An answer that may be a sample is asked for
  again in halves. A window can't tell where steps go back or stand still; there pages are read.
- From 3.4 on by *pages*: the server sorts the whole metric by time and passes over what was read, at some
  0.1 to 0.5 s a page. The page begins a few rows early, so that rows logged late are noticed.
- Before that the server gives the *whole* history every time.
- Databricks gives pages with *tokens* of its own, the last of which is read again.

`Track` is how far a metric was read, `History` reads on from there.
"""

from __future__ import annotations

import base64
import bisect
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from wtwin_adapters.mlflow_http import REQUEST_S, WHOLE_S, Server
from wtwin_adapters.mlflow_rows import Course, Row, row_of
from wtwin_adapters.mlflow_search import API
from wtwin_adapters.mlflow_ways import Way
from wtwin_watch.errors import SourceError

OVERLAP = 32
"""So many rows are read again, to notice late ones."""
SAMPLED = 2500
"""The most rows a window gives; with as many it may be a sample."""
_LEAST = 8
_WANTED = 2000
_FIRST = 1000
_WIDEN = 8

_API = API + "metrics/"
Fingerprint = list[Any]
"""The latest row of a metric as a list: a change of it means that something was logged."""


class Replaced(Exception):
    """The history on the server isn't the one that was read before."""


@dataclass(slots=True)
class Track:
    """How far one metric was read."""

    course: Course = field(default_factory=Course)
    offset: int = 0
    """How many rows there are up to the newest one that was read, in the order of their time."""
    recent: list[Row] = field(default_factory=list)
    """The last rows by time, and those of the highest steps, in the order of their time."""
    floor: int | None = None
    """Of the steps above this, all rows that were read are among ``recent``."""
    by_time: bool = False
    """The log went back: up to its end it is read by time, so that nothing below is left out."""
    token: str | None = None
    """Databricks: the page that is being read; ``offset`` counts its rows then."""
    settled: Fingerprint | None = None
    """What the metric's latest row was when reading last came to its end."""

    def dump(self) -> dict[str, Any]:
        """Give the JSON form."""
        self._forget(OVERLAP)
        return {
            "course": self.course.dump(),
            "offset": self.offset,
            "recent": [list(row) for row in self.recent],
            "floor": self.floor,
            "by_time": self.by_time,
            "token": self.token,
            "settled": self.settled,
        }

    @classmethod
    def load(cls, form: Mapping[str, Any]) -> Track:
        """Read the JSON form."""
        return cls(
            Course(*form["course"]),
            form["offset"],
            [Row(*row) for row in form["recent"]],
            form["floor"],
            form["by_time"],
            form["token"],
            form["settled"],
        )

    def note(self, row: Row) -> None:
        """Count a row in that became a point."""
        self.offset += 1
        bisect.insort(self.recent, row, key=lambda r: r.rank)
        self._forget(8 * OVERLAP)

    def _forget(self, most: int) -> None:
        if len(self.recent) <= most:
            return
        by_step = sorted(self.recent, key=lambda row: (row.step, *row.rank))
        kept = Counter(self.recent[-OVERLAP:]) | Counter(by_step[-OVERLAP:])
        dropped = Counter(self.recent) - kept
        if dropped:
            highest = max(row.step for row in dropped)
            self.floor = highest if self.floor is None else max(self.floor, highest)
            self.recent = sorted(kept.elements(), key=lambda row: row.rank)


class History:
    """The rows of one metric behind ``track``, a `wtwin_adapters.mlflow_rows.Stream`.

    ``latest`` is the metric's latest row as the list of runs had it, ``wanted`` how many rows are needed.
    ``late`` counts rows that were logged with a time so old that they can't be told from those read.
    """

    def __init__(
        self,
        server: Server,
        way: Way,
        run: str,
        name: str,
        track: Track,
        latest: Fingerprint,
        wanted: int,
    ) -> None:
        self.name = name
        self.track = track
        self.course = track.course
        self.latest = latest
        self.late = 0
        self._server = server
        self._way = way
        self._run = run
        self._wanted = min(max(wanted, _LEAST), _WANTED)
        self._rows: deque[Row] = deque()
        self._ended = False
        self._next: str | None = None

    @property
    def counted(self) -> bool:
        """Whether no steps were given: then the highest one is 0, and every other too."""
        row = self._rows[0] if self._rows else None
        return self.latest[1] == 0 and row is not None and not row.step and not self.course.top

    def peek(self) -> Row | None:
        """The next row, or None at the end; asks the server when none is at hand."""
        while not self._rows and not self._ended:
            self._rows.extend(self._more())
        return self._rows[0] if self._rows else None

    def pop(self) -> None:
        """Take that row."""
        self.track.note(self._rows.popleft())

    @property
    def read_out(self) -> bool:
        """Whether the end was reached and every row taken."""
        return self._ended and not self._rows

    # -- reading -----------------------------------------------------------------------------------

    def _more(self) -> Sequence[Row]:
        if self._way is Way.TOKENS:
            return self._token_page()
        beyond: list[Row] = []
        if self._way is Way.WINDOWS and self._may_use_windows():
            rows, ended = self._window()
            if rows is not None and self._in_order(rows):
                self._ended = ended
                return rows
            beyond = self._hidden(rows or ())
            self.track.by_time = rows is not None and not beyond
        page, deep = self._page()
        self.track.by_time &= not self._ended
        if not deep:
            return page
        if beyond:
            self._ended = False
            return beyond
        self.late += deep
        self.track.offset += deep
        return page

    def _may_use_windows(self) -> bool:
        track, top = self.track, self.course.top
        return (
            top is not None
            and not self.course.behind
            and not track.by_time
            and (track.floor is None or track.floor < top)
            and self.latest[1] >= top
            and self.latest[1] != 0
        )

    def _in_order(self, rows: Sequence[Row]) -> bool:
        """Whether rows in the order of their steps are in that of their time too, behind those read."""
        time, step = self.course.newest or 0, self.course.top or 0
        for row in rows:
            if row.timestamp < time or row.step < step:
                return False
            time, step = row.timestamp, row.step
        return True

    def _hidden(self, rows: Sequence[Row]) -> list[Row]:
        """Rows of a window that lie behind those read by step, but among them by time.

        The clock of a writer that went on was behind.
        """
        time, step = self.course.newest or 0, self.course.top or 0
        return [row for row in rows if row.step > step and row.timestamp < time]

    def _window(self) -> tuple[list[Row] | None, bool]:
        """Read the next rows by their steps: these and whether the latest step was reached.

        None where a single step holds more rows than a window can give.
        """
        track, last = self.track, int(self.latest[1])
        top = self.course.top or 0
        low = min(row.step for row in track.recent) if track.floor is None else track.floor + 1
        known = [row for row in track.recent if row.step >= low]
        per_row = (top - low + 1) / max(1, len(known))
        high = min(last, top + math.ceil(per_row * self._wanted))
        reached, too_high = top, None
        while True:
            rows = self._ask_window(low, high)
            if len(rows) >= SAMPLED:
                too_high = high
            else:
                new = _without(rows, known)
                if high >= last:
                    return new, True
                # Whether the log goes back to the last of these steps, only what follows can tell.
                if inner := [row for row in new if row.step < new[-1].step]:
                    return inner, False
                reached = high
            if too_high is None:
                high = min(last, high + _WIDEN * (high - low + 1))
            elif too_high - reached > 1:
                high = (reached + too_high) // 2
            else:
                return None, False

    def _page(self) -> tuple[list[Row], int]:
        """Read the next rows by their time: these, and how many lie too deep among those read before."""
        track = self.track
        tail = track.recent[-OVERLAP:]
        begin = track.offset - len(tail)
        count = len(tail) + (self._wanted if track.offset else min(self._wanted, _FIRST))
        rows = self._ask_page(begin, count)
        self._ended = len(rows) != count or self._way is Way.WHOLE
        if not tail:
            return rows, 0
        if tail[0] not in rows:
            raise Replaced
        deep = rows.index(tail[0])
        return _without(rows[deep:], track.recent), deep

    def _token_page(self) -> list[Row]:
        if self._next is not None:
            self.track.token, self.track.offset, self._next = self._next, 0, None
        answer = self._ask(
            "get-history",
            {
                "run_id": self._run,
                "metric_key": self.name,
                "max_results": 25_000,
                **({"page_token": self.track.token} if self.track.token else {}),
            },
        )
        rows = self._rows_of(answer)
        following = answer.get("next_page_token") or None
        if following is not None and (following == self.track.token or not rows):
            raise SourceError(
                f"the server gives the same page of metric {self.name!r} again and again;"
                " it is tried again later"
            )
        self._next, self._ended = following, following is None
        return rows[self.track.offset :]

    # -- asking ------------------------------------------------------------------------------------

    def _ask_window(self, low: int, high: int) -> list[Row]:
        answer = self._ask(
            "get-history-bulk-interval",
            {
                "run_ids": self._run,
                "metric_key": self.name,
                "start_step": low,
                "end_step": high,
                "max_results": SAMPLED,
            },
        )
        return self._rows_of(answer)

    def _ask_page(self, begin: int, count: int) -> list[Row]:
        query: dict[str, Any] = {"run_id": self._run, "metric_key": self.name}
        if self._way is Way.WHOLE:
            return self._rest_of(self._ask("get-history", query, WHOLE_S), begin)
        query["max_results"] = count
        if begin:
            query["page_token"] = _token(begin)
        answer = self._ask("get-history", query)
        rows = self._rows_of(answer)
        if len(rows) > count:
            return self._rest_of(answer, begin)  # it doesn't know pages, and gave all there is
        if not rows and answer.get("next_page_token"):
            raise SourceError(
                f"the server says there is more of metric {self.name!r}, but gives none of it;"
                " it is tried again later"
            )
        return rows

    def _rest_of(self, whole: Mapping[str, Any], begin: int) -> list[Row]:
        return sorted(self._rows_of(whole), key=lambda row: row.rank)[begin:]

    def _ask(self, what: str, query: Mapping[str, Any], within_s: float = REQUEST_S) -> Any:
        return self._server.get(_API + what, query, within_s)

    def _rows_of(self, answer: Mapping[str, Any]) -> list[Row]:
        try:
            return [row_of(metric) for metric in answer.get("metrics", ())]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise SourceError(
                f"the server's history of metric {self.name!r} has a form that isn't known;"
                " check that the source's uri names an MLflow server"
            ) from error


def fingerprint(metric: Mapping[str, Any]) -> Fingerprint:
    """What is compared to see that something was logged: time, step and value of the latest row."""
    return list(row_of(metric))


def _without(rows: Sequence[Row], known: Sequence[Row]) -> list[Row]:
    """``rows`` less those that are ``known``, each as often as it is."""
    left, new = Counter(known), []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
        else:
            new.append(row)
    return new


def _token(offset: int) -> str:
    """The token of a page that begins after ``offset`` rows, as MLflow's servers make it."""
    return base64.b64encode(orjson.dumps({"offset": offset})).decode()
