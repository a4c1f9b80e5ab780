"""Logs that are one JSON document, written whole again and again: its list of rows, and where it lies in it.

`trainer_state.json` of Hugging Face's Trainer keeps its rows under ``log_history``; Chainer's LogReport
and others write a bare list of objects.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import islice
from operator import itemgetter
from typing import Any

import orjson

from wtwin_adapters.files import digest
from wtwin_adapters.jsonrows import JsonRows, flatten
from wtwin_adapters.sink import Progress, Sink
from wtwin_watch.errors import SourceError
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Restart

MAX_BYTES = 1 << 28
"""A larger document isn't read."""
_VERSION = 1


def rows_of(data: bytes) -> list[dict[str, Any]] | None:
    """Give the rows of a whole document, or None where it holds none. Raises ValueError if it isn't whole."""
    whole = _parsed(data)
    found = whole.get("log_history") if isinstance(whole, dict) else whole
    if not isinstance(found, list):
        return None
    # The Trainer's last entry is a summary: its train_loss is the mean of the whole run.
    return [flatten(row) for row in found if isinstance(row, dict) and "train_runtime" not in row]


def is_trainer_state(head: bytes) -> bool:
    """Whether a document begins as ``trainer_state.json`` does."""
    return head.lstrip().startswith(b"{") and b'"log_history"' in head


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:  # NaN and Infinity are not JSON but common
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_document(
    fd: int, cursor: Mapping[str, Any] | None, limit: int, names: Names, *, at_rest: bool
) -> Batch:
    """Read on in the rows of a document; like `wtwin_adapters.tail.Tail.read`.

    A document that isn't whole is being written, unless it is ``at_rest``: then it is a `SourceError`.
    Costs the whole document each time, in time and memory.
    """
    size = os.fstat(fd).st_size
    if size > MAX_BYTES:
        raise SourceError(f"the document has {size:,} bytes, and {MAX_BYTES:,} are read at most")
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        data = file.read()
    rows: list[dict[str, Any]] | None = None
    try:
        rows = rows_of(data)
    except ValueError as error:
        if at_rest and data.strip(b"\0 \r\n\t"):
            raise SourceError("the document is no whole JSON; it was cut or is damaged") from error
    old = cursor if cursor is not None and cursor.get("v") == _VERSION else _start()
    if rows is None:
        return Batch([], old)
    restart = None
    if cursor is not None and (old is not cursor or not _goes_on(old, rows)):
        restart, old = Restart("the log was replaced or cut"), _start()
    progress = Progress.load(old["progress"])
    reader = JsonRows(names, old["rows"])
    sink = Sink(progress, max(limit, 1))
    sink.restart = restart
    at = old["at"]
    for row in islice(rows, at, None):
        if sink.full or not reader.take_object(row, sink):
            break
        at += 1
    sink.close()
    now = {
        "v": _VERSION,
        "format": "document",
        "rows": reader.dump(),
        "progress": progress.dump(),
        "at": at,
        "ends": [_said(rows[0]), _said(rows[at - 1])] if at else [],
    }
    return Batch(
        sink.points,
        now,
        at < len(rows),
        sink.restart,
        dict(sink.skipped),
        f"row {at}",
        reader.step_name,
    )


def _start() -> dict[str, Any]:
    return {
        "v": _VERSION,
        "format": "document",
        "rows": {},
        "progress": Progress().dump(),
        "at": 0,
        "ends": [],
    }


def _goes_on(old: Mapping[str, Any], rows: list[dict[str, Any]]) -> bool:
    at: int = old["at"]
    return not at or (at <= len(rows) and old["ends"] == [_said(rows[0]), _said(rows[at - 1])])


def _said(row: dict[str, Any]) -> str:
    return digest(repr(sorted(row.items(), key=itemgetter(0))).encode("utf-8", "surrogatepass"))
