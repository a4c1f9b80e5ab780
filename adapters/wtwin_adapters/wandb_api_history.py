"""Reads on in one run's history: new rows by requests of our own, exported ones through the client.

W&B keeps the rows of a live run where they can be asked for by step, and moves them to export files some
time after its end. Rows are only ever appended, but for a rewind, which takes the last ones away.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from wtwin_adapters.naming import usable
from wtwin_adapters.pools import TooLarge
from wtwin_adapters.wandb_api_host import Host
from wtwin_adapters.wandb_api_http import BadShape
from wtwin_adapters.wandb_api_queries import Head, Page, RunPath, ask_head, ask_page
from wtwin_adapters.wandb_api_rows import Gatherer, Row, Taken, rows_of
from wtwin_watch.errors import SourceError
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Restart

FETCH_S = 30.0
"""A fetch brings what it has after so long."""
_VERSION = 1
_SCAN_ROWS = 5_000
_WIDEST = 1_000_000
_SPARSE = 8
"""A page that is filled to less than this part makes the next one wider, by as much."""
_MOST_ROWS = 20_000
_OLDER_S = 60.0
"""Rows so much older than their run were copied from the one it was forked from."""

_UNKNOWN = "?"

COPIED = "row older than the run, copied by a fork"


class Asking(Protocol):
    """How history is asked for; `Remote` asks W&B."""

    def head(self) -> Head:
        """Ask what there is."""
        ...

    def page(self, min_step: int, width: int, skipped: Counter[str]) -> Page:
        """Ask for rows that are not exported."""
        ...

    def scan(self, min_step: int, count: int, skipped: Counter[str]) -> tuple[list[Row], bool]:
        """Ask the client for rows, exported or not; with whether there are more."""
        ...

    def leave(self, first: bool) -> bool:
        """Whether another request may be sent now. Raises `SourceError` if not even the ``first`` may."""
        ...


class Remote:
    """Asks W&B about one run, within `FETCH_S`."""

    def __init__(self, host: Host, path: RunPath) -> None:
        self._host = host
        self._path = path
        self._until = time.monotonic() + FETCH_S

    def head(self) -> Head:
        """Ask what there is; where this server can't say, everything is taken for exported."""
        if not self._host.budget.take(self._until):
            raise self._host.resting()
        try:
            return ask_head(self._host.graphql(), self._path)
        except BadShape:
            return Head("", -1, (), exported=True)

    def page(self, min_step: int, width: int, skipped: Counter[str]) -> Page:
        """Ask for rows that are not exported. Raises `BadShape` or `TooLarge` too."""
        return ask_page(self._host.graphql(), self._path, min_step, width, skipped)

    def scan(self, min_step: int, count: int, skipped: Counter[str]) -> tuple[list[Row], bool]:
        """Ask the client for rows, exported or not."""
        answer = self._host.ask(
            "scan",
            max(1.0, self._until + 10.0 - time.monotonic()),
            project=self._path.in_project,
            run=self._path.run,
            min_step=min_step,
            rows=count,
        )
        return rows_of(answer["rows"], skipped), bool(answer["more"])

    def leave(self, first: bool) -> bool:
        """Whether another request may be sent now: there is time, and the budget has one."""
        leave = self._host.budget.take(self._until)
        if first and not leave:
            raise self._host.resting()
        return leave


@dataclass(slots=True)
class Place:
    """Where reading goes on in a run's history. ``dump`` and ``load`` are its JSON form."""

    created: str = ""
    """Of the run that was read; another one under the same id is read anew."""
    next: int = 0
    """All rows below this step were read."""
    exported: bool = False
    """The client reads on, up to the end of what is exported."""
    copied_below: int = 0
    """Rows below this step that are older than the run are passed over."""
    taken: Taken = field(default_factory=Taken)

    def dump(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "v": _VERSION,
            "created": self.created,
            "next": self.next,
            "exported": self.exported,
            "copied_below": self.copied_below,
            **self.taken.dump(),
        }

    @classmethod
    def load(cls, form: Mapping[str, Any]) -> Place:
        """Read the JSON form."""
        return cls(
            form["created"],
            form["next"],
            form["exported"],
            form["copied_below"],
            Taken.load(form),
        )

    def begin_again(self) -> None:
        """Read the run from its start on."""
        self.created, self.next, self.exported = "", 0, False
        self.taken.last, self.taken.part = None, 0


class Reader:
    """One fetch of one run."""

    def __init__(self, asking: Asking, names: Names, limit: int, running: bool) -> None:
        self._asking = asking
        self._names = names
        self._limit = limit
        self._running = running

    def read(self, cursor: Mapping[str, Any] | None) -> Batch:
        """Bring the rows after ``cursor``, at most as many as ``limit`` points hold."""
        place = Place.load(cursor) if cursor is not None else Place()
        self._place = place
        self._sink = Gatherer(place.taken, self._names, self._limit)
        self._metrics = max(1, len(place.taken.seen))
        if not place.created or not place.next:
            self._begin()
        self._width = min(_MOST_ROWS, self._limit // self._metrics + 2)
        more = self._read_exported() if place.exported else self._read_live()
        return self._batch(more)

    def _batch(self, more: bool) -> Batch:
        place, sink = self._place, self._sink
        last = place.taken.last
        return Batch(
            sink.points,
            place.dump(),
            more=more,
            restart=sink.restart,
            skipped=dict(sink.skipped),
            position=None if last is None else f"step {last[0]:.10g}",
            step_name=place.taken.step_name,
        )

    def _begin(self) -> None:
        head = self._asking.head()
        self._place.created = head.created or _UNKNOWN
        self._place.exported = head.exported
        self._place.copied_below = head.last_step + 1
        self._metrics = max(1, sum(usable(key, self._names) for key in head.keys))

    # -- rows that are not exported --------------------------------------------------------------

    def _read_live(self) -> bool:
        """Take rows up to the end or the limit; returns whether there are more."""
        place = self._place
        read, first = 0, True
        while self._asking.leave(first):
            last = place.taken.last
            # The row taken last is asked for again: it shows whether the history goes on from it.
            overlaps = first and last is not None and place.next == math.floor(last[0]) + 1
            low = place.next - overlaps
            page = self._page(low)
            if page is None:
                return self._read_exported()
            first = False
            if place.created not in (page.head.created, _UNKNOWN):
                self._start_anew()
                return True
            if last is not None and not self._follows(last, page, overlaps):
                if self._is_exported(last, page.head):
                    return self._read_exported()
                self._go_back(page.head.last_step, last[1])
                return True
            more = self._take_page(page, low)
            read += len(page.rows)
            if more is not None or read > _MOST_ROWS:
                return more is not False
        return True

    def _page(self, low: int) -> Page | None:
        """Ask for the rows from ``low`` on; None where this server answers in a form unknown here."""
        while True:
            try:
                return self._asking.page(low, self._width, self._sink.skipped)
            except BadShape:
                return None
            except TooLarge:
                if self._width == 1:
                    raise SourceError(
                        f"the row at step {low} is too large to be read; log media apart from metrics"
                    ) from None
                self._width = max(1, self._width // _SPARSE)

    def _take_page(self, page: Page, low: int) -> bool | None:
        """Take the rows of a page; whether there are more, or None where the next page has to be asked."""
        place, last_step = self._place, page.head.last_step
        for row in page.rows:
            if not self._take(row):
                place.next = math.floor(row.step)
                return True
        place.next = min(low + self._width, last_step + 1)
        if place.next > last_step:
            return self._ended(last_step)
        if len(page.rows) * _SPARSE < self._width:
            self._width = min(_WIDEST, self._width * _SPARSE)
        return None

    def _follows(self, last: tuple[float, float | None, str], page: Page, overlaps: bool) -> bool:
        """Whether the row taken last is still where it was."""
        if page.head.last_step < math.floor(last[0]):
            return False
        if not overlaps:
            return True
        return any(row.step == last[0] and row.digest(self._names) == last[2] for row in page.rows)

    def _is_exported(self, last: tuple[float, float | None, str], head: Head) -> bool:
        """Whether the row taken last is not among the live ones because it was exported since."""
        if head.last_step < math.floor(last[0]):
            return False
        rows, _ = self._asking.scan(math.floor(last[0]), 1, Counter())
        return any(row.step == last[0] and row.digest(self._names) == last[2] for row in rows)

    def _go_back(self, last_step: int, stamp: float | None) -> None:
        """Go on after the newest row that is not newer than ``stamp``, the time of the row taken last.

        Such a row was there before, and those after it are not the ones that were read. Looks backwards
        from the end, so it costs what is new. Where rows don't say their time, all are read again.
        """
        place = self._place
        place.taken.rewound = True
        high, width = last_step + 1, 1_000
        while stamp is not None and high > 0 and self._asking.leave(False):
            low = max(0, high - width)
            for row in reversed(self._rows_between(low, high)):
                if row.stamp is not None and row.stamp <= stamp:
                    place.taken.last = (row.step, row.stamp, row.digest(self._names))
                    place.taken.part, place.next = 0, math.floor(row.step) + 1
                    return
            high, width = low, min(_MOST_ROWS, 2 * width)
        place.begin_again()

    def _rows_between(self, low: int, high: int) -> list[Row]:
        try:
            return self._asking.page(low, high - low, Counter()).rows
        except (BadShape, TooLarge):
            return []

    def _ended(self, last_step: int) -> bool:
        """At the end of the live rows: where the last step was not among them, the client may have it."""
        place = self._place
        last = place.taken.last
        reached = -1 if last is None else math.floor(last[0])
        if reached >= last_step:
            return False
        place.next = reached + 1
        return self._read_exported()

    def _start_anew(self) -> None:
        self._sink.restart = Restart("another run was logged under the same id")
        self._place.begin_again()
        self._place.taken.seen.clear()
        self._place.taken.step_name = None

    # -- rows that the client reads --------------------------------------------------------------

    def _read_exported(self) -> bool:
        place = self._place
        count = min(_SCAN_ROWS, self._limit // self._metrics + 1)
        rows, more = self._asking.scan(place.next, count, self._sink.skipped)
        for row in rows:
            if not self._take(row):
                place.next, place.exported = math.floor(row.step), True
                return True
            place.next = math.floor(row.step) + 1
        place.exported = more
        return more

    # -- rows --------------------------------------------------------------------------------------

    def _take(self, row: Row) -> bool:
        place = self._place
        if row.step < place.copied_below:
            begun = place.taken.last is not None
            if self._is_copied(row) and (begun or self._is_fork(place.copied_below - 1)):
                place.taken.last = (row.step, row.stamp, row.digest(self._names))
                self._sink.skipped[COPIED] += 1
                return True
            place.copied_below = 0
        return self._sink.offer(row)

    def _is_fork(self, last_step: int) -> bool:
        """Whether a run that begins with older rows is a fork, and not an offline run sent later.

        A fork goes on: it is running, or has rows of its own.
        """
        if self._running:
            return True
        rows = self._rows_between(last_step, last_step + 1)
        if not rows:
            rows, _ = self._asking.scan(last_step, 1, Counter())
        return bool(rows) and not self._is_copied(rows[-1])

    def _is_copied(self, row: Row) -> bool:
        created = unix_time(self._place.created)
        return row.stamp is not None and created is not None and row.stamp < created - _OLDER_S


def unix_time(text: Any) -> float | None:
    """Read a time as W&B writes it, in UTC; None where it is none."""
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    if when.tzinfo is None:
        when = datetime.fromisoformat(f"{text}+00:00")
    return when.timestamp()
