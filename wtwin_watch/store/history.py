"""The alerts there were, for a person: how each went, why, and who was told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from wtwin_watch.alerting.silences import Silence
from wtwin_watch.errors import UsageError
from wtwin_watch.model import Alert, AlertState, Run
from wtwin_watch.store import codec, database, silences, tables


@dataclass(frozen=True, slots=True)
class Change:
    """One change of an alert and its reason. ``event`` is what people were told of it, None: nothing."""

    at: float
    state: str
    reason: str
    event: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision about telling people of an alert, and why. ``receiver`` empty: all of them."""

    at: float
    receiver: str
    decision: str
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """One notification about an alert: waiting, sent, parked or dropped. Times in unix seconds."""

    receiver: str
    event: str
    state: str
    created_at: float
    done_at: float | None
    attempts: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Story:
    """An alert with all that is known of it."""

    alert: Alert
    run: Run | None
    """As it was last listed; None where it is forgotten."""
    changes: tuple[Change, ...]
    told: tuple[Told, ...]
    silence: Silence | None
    """What silences it now."""
    decisions: tuple[Decided, ...] = ()


def read_alerts(
    state: str, now: float, *, open_only: bool, most: int, also: Sequence[Silence] = ()
) -> list[Story]:
    """The latest alerts, newest first, without their changes. Raises `StoreError` without a state.

    ``also``: silences that are kept elsewhere.
    """
    t = tables.alerts.c
    query = sa.select(t.alert_json).order_by(t.started_at.desc()).limit(most)
    if open_only:
        query = query.where(t.state != AlertState.RESOLVED.value)
    with database.visited(state) as connection:
        alerts = [codec.load_alert(text) for text in connection.execute(query).scalars()]
        runs = [_run(connection, alert) for alert in alerts]
        silenced = _silenced(connection, zip(alerts, runs, strict=True), now, also)
        return [
            Story(alert, run, (), (), silenced.get(alert.id))
            for alert, run in zip(alerts, runs, strict=True)
        ]


def read_story(state: str, now: float, id_: str, also: Sequence[Silence] = ()) -> Story:
    """All about the alert whose id begins with ``id_``. Raises `UsageError` where that is none or several.

    ``also``: silences that are kept elsewhere.
    """
    with database.visited(state) as connection:
        alert = find_alert(connection, id_)
        run = _run(connection, alert)
        silence = _silenced(connection, [(alert, run)], now, also).get(alert.id)
        changes, told = _changes(connection, alert), _told(connection, alert)
        decided = _decided(connection, alert)
        return Story(alert, run, changes, told, silence, decided)


def find_alert(connection: sa.Connection, id_: str) -> Alert:
    """The alert whose id begins with ``id_``. Raises `UsageError` where that is none or several."""
    t = tables.alerts.c
    query = sa.select(t.alert_json).where(t.id.startswith(id_, autoescape=True)).limit(2)
    found = list(connection.execute(query).scalars())
    if len(found) != 1:
        why = "more than one alert begins so" if found else "no such alert"
        raise UsageError(f"{id_}: {why}; 'wtwin-watch alerts' lists them")
    return codec.load_alert(found[0])


def _silenced(
    connection: sa.Connection,
    about: Iterable[tuple[Alert, Run | None]],
    now: float,
    also: Sequence[Silence],
) -> dict[str, Silence]:
    # An alert about a source is about no run, and a run may be forgotten.
    known = [(alert, run or Run(alert.run, alert.run.source)) for alert, run in about]
    return silences.covering_now(connection, known, now, also)


def _run(connection: sa.Connection, alert: Alert) -> Run | None:
    t = tables.runs.c
    query = sa.select(t.run_json).where(t.source == alert.run.source, t.run == alert.run.run)
    text = connection.execute(query).scalar_one_or_none()
    return None if text is None else codec.load_run(text)


def _changes(connection: sa.Connection, alert: Alert) -> tuple[Change, ...]:
    t = tables.transitions.c
    query = sa.select(t.at, t.state, t.reason, t.event, t.summary).order_by(t.seq)
    rows = connection.execute(query.where(t.alert_id == alert.id))
    return tuple(Change(*row) for row in rows)


def _decided(connection: sa.Connection, alert: Alert) -> tuple[Decided, ...]:
    t = tables.decisions.c
    query = sa.select(t.at, t.receiver, t.decision, t.text).order_by(t.seq)
    rows = connection.execute(query.where(t.alert_id == alert.id))
    return tuple(Decided(*row) for row in rows)


def _told(connection: sa.Connection, alert: Alert) -> tuple[Told, ...]:
    t = tables.outbox.c
    query = sa.select(
        t.receiver, t.event, t.state, t.created_at, t.done_at, t.attempts, t.error
    ).order_by(t.seq)
    rows = connection.execute(query.where(t.alert_id == alert.id))
    return tuple(Told(*row) for row in rows)
