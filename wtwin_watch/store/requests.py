"""What people ask of the daemon about alerts: a command writes it down, the daemon answers.

Only the daemon changes an alert, since it holds the monitor that the alert came from. A request is one row,
so that it is neither lost nor done twice, whichever of the two ends in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from wtwin_watch.errors import UsageError
from wtwin_watch.model import Alert
from wtwin_watch.store import database, tables
from wtwin_watch.store.history import find_alert
from wtwin_watch.store.records import Answer, Request, Verb
from wtwin_watch.store.status import is_watched


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests that were written down. ``watched``: a daemon runs that will take them up at once."""

    requests: tuple[Request, ...]
    watched: bool


def ask(
    state: str,
    verb: Verb,
    ids: Sequence[str],
    *,
    by: str,
    now: float,
    until: float | None = None,
    comment: str = "",
) -> Asked:
    """Ask for ``verb`` on the alerts whose ids begin with ``ids``: all of them, or none.

    Raises `UsageError` for an id of no alert, of several, or of one that is resolved, and `StoreError`
    without a state.
    """
    with database.visited(state, writes=True) as connection:
        alerts = [_open_alert(connection, id_) for id_ in ids]
        asked = tuple(
            _written(connection, verb, alert, by=by, now=now, until=until, comment=comment)
            for alert in alerts
        )
        return Asked(asked, is_watched(connection, now))


def answers(state: str, requests: Sequence[Request]) -> dict[int, Answer]:
    """The answers there are by now, by the number of the request."""
    t = tables.requests.c
    query = sa.select(t.seq, t.outcome, t.refused).where(
        t.seq.in_([request.seq for request in requests]), t.done_at.is_not(None)
    )
    with database.visited(state) as connection:
        return {row.seq: Answer(*row) for row in connection.execute(query)}


def unanswered(connection: sa.Connection) -> list[Request]:
    """What the daemon has still to answer, oldest first."""
    t = tables.requests.c
    query = (
        sa.select(t.seq, t.verb, t.alert_id, t.by, t.at, t.until, t.comment)
        .where(t.done_at.is_(None))
        .order_by(t.seq)
    )
    return [
        Request(row.seq, Verb(row.verb), row.alert_id, row.by, row.at, row.until, row.comment)
        for row in connection.execute(query)
    ]


def _open_alert(connection: sa.Connection, id_: str) -> Alert:
    alert = find_alert(connection, id_)
    if not alert.open:
        raise UsageError(f"{id_}: the alert is resolved already: {alert.outcome}")
    return alert


def _written(
    connection: sa.Connection,
    verb: Verb,
    alert: Alert,
    *,
    by: str,
    now: float,
    until: float | None,
    comment: str,
) -> Request:
    result = connection.execute(
        sa.insert(tables.requests).values(
            verb=verb.value, alert_id=alert.id, by=by, at=now, until=until, comment=comment
        )
    )
    (seq,) = result.inserted_primary_key or (0,)
    return Request(seq, verb, alert.id, by, now, until, comment)
