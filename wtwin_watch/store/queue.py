"""The outbox for a person: what is in it, trying parked notifications again, dropping some.

It may be used while a daemon runs: each change is one short transaction on rows that wait or are parked,
and the daemon sees it the next time it looks for something to send.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from wtwin_watch.errors import UsageError
from wtwin_watch.store import codec, database, tables

DROPPED = "dropped by hand"
_OPEN = ("waiting", "parked")


@dataclass(frozen=True, slots=True)
class Queued:
    """A notification in the outbox. Times in unix seconds; ``next_at`` is when it is tried next."""

    id: str
    receiver: str
    state: str
    event: str
    run: str
    summary: str
    created_at: float
    next_at: float
    attempts: int
    error: str | None


def read_outbox(state: str, receiver: str | None = None) -> list[Queued]:
    """What waits or is parked, oldest first. Raises `StoreError` where there is no state to read."""
    with database.visited(state, writes=False) as connection:
        return _queued(connection, receiver)


def retry(state: str, ids: Sequence[str], receiver: str | None, now: float) -> list[Queued]:
    """Let parked notifications be tried again at once; those of the ids, else all. Returns them.

    Left parked is what a later notification about the same run and family has overtaken, since the last
    word about it must stay the last. Raises `UsageError` for an id that isn't there, or is overtaken.
    """
    with database.visited(state, writes=True) as connection:
        parked = [entry for entry in _queued(connection, receiver) if entry.state == "parked"]
        chosen = _chosen(parked, ids, "parked")
        old = set(
            connection.execute(
                sa.select(tables.outbox.c.id).where(tables.outbox.c.state == "parked", overtaken())
            ).scalars()
        )
        if ids and (stale := [entry.id for entry in chosen if entry.id in old]):
            raise UsageError(
                f"{stale[0]}: a later word about the same alert was delivered; drop this one"
            )
        chosen = [entry for entry in chosen if entry.id not in old]
        _change(connection, chosen, state="waiting", next_at=now, done_at=None)
        return chosen


def drop(state: str, ids: Sequence[str], receiver: str | None, now: float) -> list[Queued]:
    """Give up notifications that wait or are parked; those of the ids, else all. Returns them.

    Raises `UsageError` for an id that isn't there.
    """
    with database.visited(state, writes=True) as connection:
        chosen = _chosen(_queued(connection, receiver), ids, "waiting or parked")
        _change(connection, chosen, state="dropped", error=DROPPED, done_at=now)
        return chosen


def overtaken() -> sa.ColumnElement[bool]:
    """Whether a later notification about the same run and family was delivered to the same receiver."""
    t = tables.outbox.c
    later = tables.outbox.alias("later")
    own, other = tables.alerts.alias("own"), tables.alerts.alias("other")
    same = (
        sa.select(own.c.id)
        .where(own.c.id == t.alert_id, other.c.id == later.c.alert_id)
        .where(own.c.fingerprint == other.c.fingerprint)
        .correlate(tables.outbox, later)
        .exists()
    )
    return (
        sa.select(later.c.id)
        .where(
            later.c.receiver == t.receiver,
            sa.or_(later.c.alert_id == t.alert_id, same),
            later.c.seq > t.seq,
            later.c.state == "sent",
        )
        .correlate(tables.outbox)
        .exists()
    )


def _queued(connection: sa.Connection, receiver: str | None) -> list[Queued]:
    t = tables.outbox.c
    query = sa.select(tables.outbox).where(t.state.in_(_OPEN)).order_by(t.seq)
    if receiver is not None:
        query = query.where(t.receiver == receiver)
    found = []
    for row in connection.execute(query):
        body = codec.loads(row.body_json)
        found.append(
            Queued(
                id=row.id,
                receiver=row.receiver,
                state=row.state,
                event=row.event,
                run=body["run"]["name"],
                summary=body["alert"]["outcome"] or body["alert"]["detection"]["summary"],
                created_at=row.created_at,
                next_at=row.next_at,
                attempts=row.attempts,
                error=row.error,
            )
        )
    return found


def _chosen(entries: list[Queued], ids: Sequence[str], what: str) -> list[Queued]:
    if not ids:
        return entries
    chosen = []
    for id_ in ids:
        found = [entry for entry in entries if entry.id.startswith(id_)]
        if len(found) != 1:
            why = "more than one notification begins so" if found else f"no notification {what}"
            raise UsageError(f"{id_}: {why}; 'wtwin-watch outbox' lists them")
        chosen += found
    return chosen


def _change(connection: sa.Connection, entries: Sequence[Queued], **values: object) -> None:
    t = tables.outbox.c
    for entry in entries:
        # The daemon may have delivered it since it was read.
        where = sa.and_(t.id == entry.id, t.state == entry.state)
        connection.execute(sa.update(tables.outbox).where(where).values(**values))
