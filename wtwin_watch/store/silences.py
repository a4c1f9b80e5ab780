"""Silences as they are kept: added, listed and ended by commands, and read by the daemon.

They need no daemon: each change is one short transaction, and the daemon looks for itself what holds now.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from wtwin_watch.alerting.matching import Matcher, all_hold, labels_of, parse
from wtwin_watch.alerting.silences import Silence, silencing
from wtwin_watch.errors import UsageError
from wtwin_watch.model import Alert, AlertState, Run
from wtwin_watch.store import codec, database, tables


@dataclass(frozen=True, slots=True)
class Covering:
    """A silence and the open alerts it is about, whether it holds now or not."""

    silence: Silence
    alerts: tuple[Alert, ...]


def add(
    state: str,
    matchers: Sequence[Matcher],
    *,
    starts_at: float,
    ends_at: float,
    author: str,
    comment: str,
    now: float,
) -> Covering:
    """Silence what ``matchers`` mean. Raises `StoreError` where there is no state."""
    silence = Silence(
        uuid.uuid4().hex, tuple(matchers), starts_at, ends_at, author, comment, created_at=now
    )
    with database.visited(state, writes=True) as connection:
        connection.execute(
            sa.insert(tables.silences).values(
                id=silence.id,
                matchers=silence.what,
                starts_at=starts_at,
                ends_at=ends_at,
                author=author,
                comment=comment,
                created_at=now,
            )
        )
        return _covering(connection, [silence])[0]


def read_silences(
    state: str, now: float, *, ended: bool, also: Sequence[Silence] = ()
) -> list[Covering]:
    """The silences that haven't ended, or all that are remembered, the one that ends last first.

    ``also``: silences that are kept elsewhere.
    """
    with database.visited(state) as connection:
        found = [*load(connection, None if ended else now), *also]
        found.sort(key=lambda silence: silence.ends_at, reverse=True)
        return _covering(connection, found)


def end(state: str, ids: Sequence[str], now: float) -> list[Covering]:
    """End silences now, those whose ids begin so. Raises `UsageError` for none, several, or an ended one."""
    with database.visited(state, writes=True) as connection:
        known = load(connection, None)
        chosen = [_found(known, id_, now) for id_ in ids]
        for silence in chosen:
            query = sa.update(tables.silences).where(tables.silences.c.id == silence.id)
            connection.execute(query.values(ends_at=now))
        return _covering(connection, [replace(silence, ends_at=now) for silence in chosen])


def load(connection: sa.Connection, not_ended_at: float | None) -> list[Silence]:
    """The silences that haven't ended at a time, or all (None); the one that ends last comes first."""
    t = tables.silences.c
    query = sa.select(tables.silences).order_by(t.ends_at.desc(), t.id)
    if not_ended_at is not None:
        query = query.where(t.ends_at > not_ended_at)
    return [
        Silence(
            row.id,
            parse(row.matchers),
            row.starts_at,
            row.ends_at,
            row.author,
            row.comment,
            row.created_at,
        )
        for row in connection.execute(query)
    ]


def covering_now(
    connection: sa.Connection,
    about: Sequence[tuple[Alert, Run]],
    now: float,
    also: Sequence[Silence] = (),
) -> dict[str, Silence]:
    """By the id of each alert that is open and silenced now: the silence that covers it.

    ``also``: silences that are kept elsewhere.
    """
    silences = [*load(connection, now), *also]
    covers = {
        alert.id: silencing(silences, labels_of(alert, run), now)
        for alert, run in about
        if alert.open and not alert.quiet
    }
    return {id_: silence for id_, silence in covers.items() if silence is not None}


def _found(known: Sequence[Silence], id_: str, now: float) -> Silence:
    found = [silence for silence in known if silence.id.startswith(id_)]
    if len(found) != 1:
        why = "more than one silence begins so" if found else "no such silence"
        raise UsageError(f"{id_}: {why}; 'wtwin-watch silence list' shows them")
    if found[0].ends_at <= now:
        raise UsageError(f"{id_}: the silence has ended already")
    return found[0]


def _covering(connection: sa.Connection, silences: Sequence[Silence]) -> list[Covering]:
    about = _open_alerts(connection) if silences else []
    return [
        Covering(
            silence,
            tuple(
                alert for alert, run in about if all_hold(silence.matchers, labels_of(alert, run))
            ),
        )
        for silence in silences
    ]


def _open_alerts(connection: sa.Connection) -> list[tuple[Alert, Run]]:
    """The open alerts that people are told of, with their runs; one about a source is about no run."""
    a, runs = tables.alerts.c, tables.runs.c
    query = (
        sa.select(a.alert_json, runs.run_json)
        .join_from(
            tables.alerts,
            tables.runs,
            sa.and_(runs.source == a.source, runs.run == a.run),
            isouter=True,
        )
        .where(a.state != AlertState.RESOLVED.value, a.quiet.is_(False))
        .order_by(a.started_at.desc())
    )
    found = []
    for alert_json, run_json in connection.execute(query):
        alert = codec.load_alert(alert_json)
        run = codec.load_run(run_json) if run_json else Run(alert.run, alert.run.source)
        found.append((alert, run))
    return found
