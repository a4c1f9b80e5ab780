"""Records to JSON text and back. NaN and infinities travel as strings, so the text is always JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import orjson
import sqlalchemy as sa
from pydantic import TypeAdapter

from wtwin_watch.model import Alert, Companion, Message, Run
from wtwin_watch.store.records import OutboxEntry, RunRecord

_alert = TypeAdapter(Alert)
_companions = TypeAdapter(tuple[Companion, ...])
_message = TypeAdapter(Message)
_run = TypeAdapter(Run)


def dumps(value: Any) -> str:
    """JSON text of plain data; a number that JSON lacks becomes ``"NaN"`` or ``"Infinity"``."""
    return orjson.dumps(_plain(value)).decode()


def loads(text: str | None) -> Any:
    """Plain data of JSON text; None stays None."""
    return None if text is None else orjson.loads(text)


def dump_record(record: Alert | Run) -> str:
    """JSON text of a record."""
    return dumps(asdict(record))


def load_alert(text: str) -> Alert:
    """The alert that `dump_record` wrote."""
    return _alert.validate_json(text)


def load_run(text: str) -> Run:
    """The run that `dump_record` wrote."""
    return _run.validate_json(text)


def dump_body(entry: OutboxEntry) -> str:
    """JSON text of what a notification is about."""
    body: dict[str, Any] = {"alert": asdict(entry.alert), "run": asdict(entry.run)}
    if entry.others:
        body |= {"others": [asdict(other) for other in entry.others], "size": entry.size}
    if entry.message is not None:
        body["message"] = asdict(entry.message)
    return dumps(body)


def load_others(body: dict[str, Any]) -> tuple[Companion, ...]:
    """The companions in what `dump_body` wrote."""
    return _companions.validate_python(body.get("others", []), strict=False)


def load_message(body: dict[str, Any]) -> Message | None:
    """The words in what `dump_body` wrote; None where they follow from the alert."""
    words = body.get("message")
    return None if words is None else _message.validate_python(words, strict=False)


def load_run_record(row: sa.Row[Any]) -> RunRecord:
    """The run that a row of the table of runs holds."""
    return RunRecord(
        run=load_run(row.run_json),
        cursor=loads(row.cursor_json),
        monitor=loads(row.monitor_json),
        backlog=row.backlog,
        first_seen_at=row.first_seen_at,
        position=row.position,
        step_name=row.step_name,
        skipped=loads(row.skipped_json),
        roles=loads(row.roles_json),
        points=row.points,
        last_step=row.last_step,
        last_loss=load_number(row.last_loss),
        judging=row.judging,
        error=row.error,
        attempt=row.attempt,
        gone_since=row.gone_since,
        resting=row.resting,
    )


def dump_number(number: float | None) -> str | None:
    """Text of a number that may be NaN."""
    return None if number is None else repr(number)


def load_number(text: str | None) -> float | None:
    """The number that `dump_number` wrote."""
    return None if text is None else float(text)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
