"""Reading on in a text log: whole lines from where reading stopped, in a file that may be another now.

The cursor remembers digests of the file's beginning and of the bytes before the position. Where they no
longer fit, the log was replaced, cut, or written anew in place (Lightning's CSVLogger does that when a
new column appears). Which of these, the rows tell: if the first row and the row read last still say the
same, reading goes on behind them and nothing counts twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from wtwin_adapters.csvrows import CsvRows
from wtwin_adapters.files import digest
from wtwin_adapters.jsonrows import JsonRows
from wtwin_adapters.patterns import Pattern
from wtwin_adapters.sink import Progress, Sink
from wtwin_adapters.textrows import TextRows
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Restart

MAX_LINE = 1 << 20
"""A longer line is passed over, in bytes."""
AT_REST_S = 600.0
"""A last line without its end is taken when the file has not changed for this long, seconds."""
_CHUNK, _SMALL_CHUNK, _POINT_BYTES = 1 << 17, 1 << 14, 64
_COMPARED = 10_000
# A fetch that finds no points at all still ends, so that a worker isn't held for ever.
_MAX_BYTES = 1 << 26
_HEAD, _TAIL = 4096, 256
_SETTLE_S, _SETTLE_STEP_S, _SETTLE_MAX_S = 0.2, 0.05, 2.0
_VERSION = 1

# What is left out of a line: the rest of one that was too long, or of one that was taken before its end.
_REST, _CUT = "rest", "cut"


Rows = CsvRows | JsonRows | TextRows
_KINDS: dict[type[Rows], str] = {CsvRows: "csv", JsonRows: "jsonl", TextRows: "text"}


class _Outcome(Enum):
    SAME_ROWS = auto()
    OTHER_ROWS = auto()
    FEWER_ROWS = auto()
    NO_ROWS = auto()


@dataclass(slots=True)
class _State:
    """Where reading stands; `dump` is the cursor."""

    progress: Progress
    rows: Rows | None = None
    offset: int = 0
    leave_out: str | None = None
    """Set while the rest of the present line is passed over."""
    head: str = ""
    tail: str = ""

    @classmethod
    def load(cls, cursor: Mapping[str, Any], names: Names, own: Pattern | None) -> _State:
        kind, form = cursor["format"], cursor["rows"]
        rows: Rows | None = None
        if kind == "text":
            rows = TextRows(names, form, own)
        elif kind:
            rows = JsonRows(names, form) if kind == "jsonl" else CsvRows(names, form)
        return cls(
            Progress.load(cursor["progress"]),
            rows,
            cursor["offset"],
            cursor["leave_out"],
            cursor["head"],
            cursor["tail"],
        )

    def dump(self) -> dict[str, Any]:
        rows = self.rows
        return {
            "v": _VERSION,
            "format": None if rows is None else _KINDS[type(rows)],
            "rows": rows.dump() if rows else None,
            "progress": self.progress.dump(),
            "offset": self.offset,
            "leave_out": self.leave_out,
            "head": self.head,
            "tail": self.tail,
        }


class Tail:
    """One open log file, read on from a cursor.

    ``choose`` says how a log that begins here is read, or None where that can't be told yet. ``at_rest``:
    a last line without its end is taken, since nobody writes it any more. ``own`` is the user's pattern.
    """

    def __init__(
        self,
        fd: int,
        names: Names,
        choose: Callable[[], Rows | None],
        *,
        at_rest: bool,
        own: Pattern | None = None,
    ) -> None:
        self._fd = fd
        self._names = names
        self._choose = choose
        self._at_rest = at_rest
        self._own = own

    def read(self, cursor: Mapping[str, Any] | None, limit: int) -> Batch:
        """Read at most ``limit`` points after ``cursor``."""
        state, restart = _State(Progress()), None
        if cursor is not None:
            if cursor.get("v") == _VERSION:
                state = _State.load(cursor, self._names, self._own)
            else:
                restart = Restart("the position was stored by another version")
        if not self._is_same(state):
            outcome, moved = self._reread(state)
            if outcome is _Outcome.NO_ROWS:
                # Cut to nothing: whether it starts anew or is being rewritten, its rows will tell.
                return _batch(state, Sink(state.progress, 1), more=False)
            if outcome is not _Outcome.SAME_ROWS and state.progress.seen:
                restart = Restart("the log was replaced or cut")
            state = moved
        sink = Sink(state.progress, max(limit, 1))
        sink.restart = restart
        more = self._advance(state, sink, limit)
        sink.close()
        state.head, state.tail = self._digests(state.offset)
        return _batch(state, sink, more=more)

    def _advance(self, state: _State, sink: Sink, limit: int) -> bool:
        """Read chunk by chunk until ``sink`` is full or the file ends; say whether there is more."""
        state.rows = rows = state.rows or self._choose()
        if rows is None:
            return False
        usual = min(_CHUNK, max(_SMALL_CHUNK, limit * _POINT_BYTES))
        start, size = state.offset, usual
        while state.offset - start < _MAX_BYTES:
            chunk = os.pread(self._fd, size, state.offset)
            at_end = len(chunk) < size
            if isinstance(rows, TextRows):
                chunk = chunk.replace(b"\r", b"\n")  # progress bars begin anew with it
            if state.leave_out is not None:
                if not chunk:
                    return False
                state.offset += _leave_out(state, chunk, sink)
                continue
            if b"\n" in chunk:
                taken = self._take_lines(rows, chunk, sink, widest=at_end or size > MAX_LINE)
                if not taken and at_end:
                    return sink.full
                state.offset += taken
                size = usual if taken else MAX_LINE + 1
            elif len(chunk) > MAX_LINE:
                if self._not_written_yet(chunk):
                    return sink.full
                sink.skipped["line too long"] += 1
                state.leave_out = _REST
            elif not at_end:
                size = MAX_LINE + 1
            elif not self._take_last_line(state, rows, chunk, sink):
                return sink.full
            if sink.full:
                return True
        return True

    def _take_lines(self, rows: Rows, chunk: bytes, sink: Sink, *, widest: bool) -> int:
        """Take the whole lines of ``chunk``; returns the bytes, 0 if an open quote needs more of them.

        ``widest``: there is no more to be had, at least not within reason.
        """
        lines = chunk[: chunk.rfind(b"\n") + 1]
        taken = rows.take(lines, sink, last=False)
        waits_for_file = len(chunk) <= MAX_LINE and not self._at_rest
        if taken or sink.full or not widest or waits_for_file:
            return taken
        return rows.take(lines[: lines.find(b"\n") + 1], sink, last=True)

    def _take_last_line(self, state: _State, rows: Rows, line: bytes, sink: Sink) -> bool:
        """Take a line that has no end yet, if the file is at rest; whether that was so."""
        if not self._at_rest or not line.strip(b"\0 \t\r"):
            return False
        taken = rows.take(line, sink, last=True)
        state.offset += taken
        state.leave_out = _CUT if taken else None
        return taken > 0

    def _not_written_yet(self, line: bytes) -> bool:
        """Whether a line is only long by zeros that reach to the file's end: room set aside for rows.

        Zeros that a crash left are followed by rows sooner or later, and are passed over then.
        """
        last = os.pread(self._fd, 1, self._size() - 1) if line.endswith(b"\0") else b""
        return last == b"\0" and len(line.rstrip(b"\0")) <= MAX_LINE

    def _reread(self, old: _State) -> tuple[_Outcome, _State]:
        """Find out what happened to a file that isn't as it was left, and where to go on in it."""
        outcome, state = self._compare(old)
        if outcome in (_Outcome.FEWER_ROWS, _Outcome.NO_ROWS):
            # Perhaps it is being rewritten at this moment.
            self._settle()
            outcome, state = self._compare(old)
        return outcome, state if outcome is _Outcome.SAME_ROWS else _State(Progress())

    def _compare(self, old: _State) -> tuple[_Outcome, _State]:
        state, wanted = _State(Progress()), old.progress.row
        more = wanted > 0
        while more and state.progress.row < wanted:
            # The first row alone comes first: it tells most other logs apart.
            until = wanted if state.progress.row else 1
            sink = Sink(state.progress, _COMPARED, max_row=until)
            more = self._advance(state, sink, _COMPARED)
            sink.close()
            if state.progress.row and state.progress.first != old.progress.first:
                return _Outcome.OTHER_ROWS, state
        if state.progress.row < wanted:
            cut_to_nothing = not state.progress.row and self._size() < old.offset
            return _Outcome.NO_ROWS if cut_to_nothing else _Outcome.FEWER_ROWS, state
        state.progress.part = old.progress.part
        same = state.progress.last == old.progress.last
        return _Outcome.SAME_ROWS if same else _Outcome.OTHER_ROWS, state

    def _settle(self) -> None:
        """Wait until the file's size rests for a moment, but not long."""
        size, still_s, waited_s = self._size(), 0.0, 0.0
        while still_s < _SETTLE_S and waited_s < _SETTLE_MAX_S:
            time.sleep(_SETTLE_STEP_S)
            waited_s += _SETTLE_STEP_S
            before, size = size, self._size()
            still_s = still_s + _SETTLE_STEP_S if size == before else 0.0

    def _is_same(self, state: _State) -> bool:
        if state.offset == 0:
            return True
        return self._size() >= state.offset and self._digests(state.offset) == (
            state.head,
            state.tail,
        )

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def _digests(self, offset: int) -> tuple[str, str]:
        before = min(_TAIL, offset)
        head = os.pread(self._fd, min(_HEAD, offset), 0)
        return digest(head), digest(os.pread(self._fd, before, offset - before))


def _batch(state: _State, sink: Sink, *, more: bool) -> Batch:
    return Batch(
        sink.points,
        state.dump(),
        more,
        sink.restart,
        dict(sink.skipped),
        f"row {state.progress.row}",
        state.rows.step_name if state.rows else None,
    )


def _leave_out(state: _State, chunk: bytes, sink: Sink) -> int:
    """Pass over the rest of the present line; returns its bytes in ``chunk``."""
    end = chunk.find(b"\n")
    rest = chunk if end < 0 else chunk[:end]
    if state.leave_out == _CUT and rest.strip():
        sink.skipped["line was cut"] += 1
        state.leave_out = _REST
    if end < 0:
        return len(chunk)
    state.leave_out = None
    return end + 1
