"""The outbox as the daemon uses it: what is owed to receivers, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from wtwin_watch.model import Alert, AlertState, Event, Receipt, Run
from wtwin_watch.store import codec, tables, writing
from wtwin_watch.store.owned import OwnedDatabase
from wtwin_watch.store.queue import overtaken
from wtwin_watch.store.records import OutboxEntry


class Outbox(OwnedDatabase):
    """What is owed to receivers: each of them takes the next of its own, and notes what came of it."""

    def next_notification(self, receiver: str) -> OutboxEntry | None:
        """The notification that ``receiver`` should be sent next: the earliest due one.

        Within a run and family the order is kept: a later one waits for those before it, so that the
        last word about it is the last that happened.
        """
        t = tables.outbox.c
        query = (
            sa.select(tables.outbox)
            .where(
                t.receiver == receiver, t.state == "waiting", t.seq.in_(_next_in_line([receiver]))
            )
            .order_by(t.next_at, t.seq)
            .limit(1)
        )
        with self._reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _entry(row)

    def first_notifications(self, receiver: str, now: float, limit: int) -> list[OutboxEntry]:
        """What ``receiver`` could be sent now of alerts it was told nothing about, the earliest first."""
        t, r = tables.outbox.c, tables.receipts.c
        known = sa.select(r.alert_id).where(r.receiver == receiver)
        query = (
            sa.select(tables.outbox)
            .where(
                t.receiver == receiver,
                t.state == "waiting",
                t.event == Event.FIRING.value,
                t.next_at <= now,
                t.seq.in_(_next_in_line([receiver])),
                t.alert_id.not_in(known),
            )
            .order_by(t.next_at, t.seq)
            .limit(limit)
        )
        with self._reading() as connection:
            return [_entry(row) for row in connection.execute(query)]

    def knows_notification(self, id_: str) -> bool:
        """Whether a notification of this id is in the outbox, delivered or not."""
        query = sa.select(tables.outbox.c.id).where(tables.outbox.c.id == id_)
        with self._reading() as connection:
            return connection.execute(query).first() is not None

    def receipt(self, receiver: str, alert_id: str) -> Mapping[str, Any] | None:
        """What ``receiver`` answered to the first message about this alert."""
        t = tables.receipts.c
        query = sa.select(t.receipt_json).where(t.receiver == receiver, t.alert_id == alert_id)
        with self._reading() as connection:
            text = connection.execute(query).scalar_one_or_none()
        found: Mapping[str, Any] | None = codec.loads(text)
        return found

    def told_firing(self, receiver: str) -> list[tuple[Alert, Run, Mapping[str, Any]]]:
        """The alerts that fire and of which ``receiver`` was told, with their runs and its receipts."""
        a, r, runs = tables.alerts.c, tables.receipts.c, tables.runs.c
        query = (
            sa.select(a.alert_json, runs.run_json, r.receipt_json)
            .join_from(tables.alerts, tables.receipts, a.id == r.alert_id)
            .join(tables.runs, sa.and_(runs.source == a.source, runs.run == a.run), isouter=True)
            .where(r.receiver == receiver, a.state == AlertState.FIRING.value, a.quiet.is_(False))
            .order_by(a.started_at, a.id)
        )
        told = []
        with self._reading() as connection:
            for alert_json, run_json, receipt_json in connection.execute(query):
                alert = codec.load_alert(alert_json)
                # An alert about a source is about no run.
                run = codec.load_run(run_json) if run_json else Run(alert.run, alert.run.source)
                told.append((alert, run, codec.loads(receipt_json)))
        return told

    def mark_sent(
        self,
        entry: OutboxEntry,
        receipt: Receipt,
        now: float,
        others: Sequence[OutboxEntry] = (),
    ) -> None:
        """Note that ``entry`` was delivered, and ``others`` by the same message."""

        def work(connection: sa.Connection) -> None:
            for sent in (entry, *others):
                writing.settle(
                    connection, sent.id, "sent", now, attempts=sent.attempts + 1, error=None
                )
                if receipt.data:
                    writing.upsert(
                        connection,
                        tables.receipts,
                        {"receiver": sent.receiver, "alert_id": sent.alert.id},
                        {"receipt_json": codec.dumps(dict(receipt.data))},
                    )

        self._writer.write(work)

    def mark_failed(self, entry: OutboxEntry, error: str, next_at: float) -> None:
        """Note that ``entry`` is to be tried again at ``next_at``."""
        self._writer.write(
            lambda c: c.execute(
                sa.update(tables.outbox)
                .where(tables.outbox.c.id == entry.id)
                .values(attempts=entry.attempts + 1, next_at=next_at, error=error)
            )
        )

    def mark_parked(self, entry: OutboxEntry, error: str, now: float) -> None:
        """Note that ``entry`` can't be delivered until a person has changed something."""
        self._writer.write(
            lambda c: writing.settle(
                c, entry.id, "parked", now, attempts=entry.attempts + 1, error=error
            )
        )

    def hasten(self, receiver: str, now: float) -> None:
        """Let all that waits for ``receiver`` after a failure be tried at once."""
        t = tables.outbox.c
        query = sa.update(tables.outbox).where(
            t.receiver == receiver, t.state == "waiting", t.attempts > 0, t.next_at > now
        )
        self._writer.write(lambda c: c.execute(query.values(next_at=now)))

    def retry_parked(self, receivers: Iterable[str], made_after: float, now: float) -> int:
        """Let what was parked for these receivers be tried again; says how many.

        Left parked: what is older than ``made_after``, and what a later notification about the same run
        and family has overtaken, since the last word about it must stay the last.
        """
        t = tables.outbox.c

        def work(connection: sa.Connection) -> int:
            result = connection.execute(
                sa.update(tables.outbox)
                .where(
                    t.state == "parked",
                    t.receiver.in_(list(receivers)),
                    t.created_at >= made_after,
                    sa.not_(overtaken()),
                )
                .values(state="waiting", next_at=now, done_at=None)
            )
            return result.rowcount

        return self._writer.write(work)

    def park_strangers(self, receivers: Iterable[str], now: float) -> int:
        """Park what waits for receivers that are no longer configured; says how many."""
        t = tables.outbox.c

        def work(connection: sa.Connection) -> int:
            result = connection.execute(
                sa.update(tables.outbox)
                .where(t.state == "waiting", t.receiver.not_in(list(receivers)))
                .values(state="parked", error="the receiver is no longer configured", done_at=now)
            )
            return result.rowcount

        return self._writer.write(work)

    def due(self, receivers: Iterable[str], now: float) -> int:
        """How many notifications for ``receivers`` could be tried at once."""
        t = tables.outbox.c
        receivers = list(receivers)
        query = sa.select(sa.func.count()).where(
            t.state == "waiting",
            t.receiver.in_(receivers),
            t.next_at <= now,
            t.seq.in_(_next_in_line(receivers)),
        )
        with self._reading() as connection:
            return connection.execute(query).scalar_one()

    def waiting(self, receivers: Iterable[str]) -> int:
        """How many notifications wait to be delivered to ``receivers``."""
        t = tables.outbox.c
        query = sa.select(sa.func.count()).where(
            t.state == "waiting", t.receiver.in_(list(receivers))
        )
        with self._reading() as connection:
            return connection.execute(query).scalar_one()


def _entry(row: Any) -> OutboxEntry:
    body = codec.loads(row.body_json)
    return OutboxEntry(
        id=row.id,
        receiver=row.receiver,
        event=Event(row.event),
        alert=codec.load_alert(codec.dumps(body["alert"])),
        run=codec.load_run(codec.dumps(body["run"])),
        created_at=row.created_at,
        attempts=row.attempts,
        next_at=row.next_at,
        others=codec.load_others(body),
        size=body.get("size", 1),
        message=codec.load_message(body),
    )


def _next_in_line(receivers: Sequence[str]) -> sa.Select[tuple[int]]:
    """Number what waits for these receivers and has nothing before it for the same one, run and family.

    What others are owed is not looked at: one that is down for days must not slow the rest.
    """
    t = tables.outbox.c
    about = sa.func.coalesce(tables.alerts.c.fingerprint, t.alert_id)
    return (
        sa.select(sa.func.min(t.seq))
        .join_from(tables.outbox, tables.alerts, t.alert_id == tables.alerts.c.id, isouter=True)
        .where(t.receiver.in_(receivers), t.state == "waiting")
        .group_by(t.receiver, about)
    )
