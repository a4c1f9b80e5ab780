"""The store: what the daemon asks of its database, one method a question."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from wtwin_watch.alerting.budget import Budget
from wtwin_watch.alerting.dispatch import Remembered
from wtwin_watch.alerting.silences import Silence
from wtwin_watch.errors import OwnershipLost, StoreError
from wtwin_watch.model import Alert, AlertState, Event, Family, Receipt, Run, RunKey
from wtwin_watch.store import codec, database, owner, requests, silences, tables, writing
from wtwin_watch.store.digest import Facts, read_facts, watched_before
from wtwin_watch.store.queue import overtaken
from wtwin_watch.store.records import (
    Checkpoint,
    Happening,
    OutboxEntry,
    Progress,
    Request,
    RunRecord,
    SourceRecord,
)
from wtwin_watch.store.remembering import read_remembered
from wtwin_watch.store.status import read_timeline
from wtwin_watch.store.writer import Writer


class Store:
    """A database owned by this process. Reads come from any thread, writes go through one."""

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        self._token = uuid.uuid4().hex
        self._owned = False
        database.make_place(url)
        self._write_engine = database.connect(url, writes=True)
        database.migrate(self._write_engine)
        self._read_engine = database.connect(url, writes=False)
        self._writer = Writer(self._write_engine, self._check_ownership)

    def close(self) -> None:
        """Give the database up."""
        if self._owned:
            self._writer.submit(
                lambda c: c.execute(
                    sa.delete(tables.owner).where(tables.owner.c.token == self._token)
                )
            )
        self._writer.close()
        self._write_engine.dispose()
        self._read_engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            with self._read_engine.connect() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            raise StoreError(
                f"the state database {database.shown(self.url)} can't be read: {error.orig}"
            ) from None

    # -- ownership -------------------------------------------------------------------------------

    def claim(self, now: float) -> None:
        """Become the owner. Raises `StoreError` where another daemon is."""
        me = owner.this_process()

        def work(connection: sa.Connection) -> None:
            row = connection.execute(sa.select(tables.owner)).one_or_none()
            if row is not None:
                holder = codec.loads(row.holder_json)
                if owner.is_alive(holder, row.heartbeat_at, now, me, owner.process_start):
                    raise StoreError(
                        f"another daemon watches with the state {database.shown(self.url)}:"
                        f" process {holder['pid']} on {holder['host']}, last heard"
                        f" {max(0.0, now - row.heartbeat_at):.0f} s ago;"
                        " stop it, or give this one a place of its own with --state"
                    )
                connection.execute(sa.delete(tables.owner).where(tables.owner.c.token == row.token))
            connection.execute(
                sa.insert(tables.owner).values(
                    id=1,
                    token=self._token,
                    holder_json=codec.dumps(dict(me)),
                    started_at=now,
                    heartbeat_at=now,
                    status="starting",
                )
            )

        self._writer.write(work)
        self._owned = True

    def heartbeat(self, now: float, status: str) -> None:
        """Say that this daemon lives, and what it is doing."""
        self._writer.write(
            lambda c: c.execute(
                sa.update(tables.owner)
                .where(tables.owner.c.token == self._token)
                .values(heartbeat_at=now, status=status)
            )
        )

    def _check_ownership(self, connection: sa.Connection) -> None:
        if not self._owned:
            return
        token = connection.execute(sa.select(tables.owner.c.token)).scalar_one_or_none()
        if token != self._token:
            raise OwnershipLost("another daemon has taken over the state database; this one stops")

    def forget(self) -> None:
        """Delete all that is known, except who owns the database."""

        def work(connection: sa.Connection) -> None:
            for table in tables.metadata.sorted_tables:
                if table is not tables.owner:
                    connection.execute(sa.delete(table))

        self._writer.write(work)

    # -- runs and alerts -------------------------------------------------------------------------

    def save(self, checkpoints: Sequence[Checkpoint], now: float) -> None:
        """Write ``checkpoints`` in one transaction and return when they are on disk."""

        def work(connection: sa.Connection) -> None:
            for checkpoint in checkpoints:
                writing.save_checkpoint(connection, checkpoint, now)

        self._writer.write(work)

    def note_progress(self, runs: Sequence[Progress]) -> None:
        """Note how far runs have come, without a checkpoint: a crash still goes on from the last one."""
        t = tables.runs
        query = (
            sa.update(t)
            .where(t.c.source == sa.bindparam("in_source"), t.c.run == sa.bindparam("in_run"))
            .values(
                points=sa.bindparam("now_points"),
                last_step=sa.bindparam("now_step"),
                last_loss=sa.bindparam("now_loss"),
                judging=sa.bindparam("now_judging"),
            )
        )
        rows = [
            {
                "in_source": run.run.source,
                "in_run": run.run.run,
                "now_points": run.points,
                "now_step": run.last_step,
                "now_loss": codec.dump_number(run.last_loss),
                "now_judging": run.judging,
            }
            for run in runs
        ]
        if rows:
            self._writer.write(lambda c: c.execute(query, rows))

    def run_records(self, source: str, *, resting: bool = True) -> list[RunRecord]:
        """Every run of a source as it was last saved, with or without those at ``resting``."""
        t = tables.runs
        query = sa.select(t).where(t.c.source == source)
        if not resting:
            query = query.where(t.c.resting.is_(False))
        with self._reading() as connection:
            return [codec.load_run_record(row) for row in connection.execute(query)]

    def run_record(self, run: RunKey) -> RunRecord | None:
        """One run as it was last saved."""
        query = sa.select(tables.runs).where(writing.is_run(tables.runs, run))
        with self._reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else codec.load_run_record(row)

    def resting(self, source: str) -> list[tuple[Run, float | None]]:
        """The runs of a source that are at rest, and since when they are gone."""
        t = tables.runs.c
        query = sa.select(t.run_json, t.gone_since).where(t.source == source, t.resting.is_(True))
        with self._reading() as connection:
            return [(codec.load_run(text), gone) for text, gone in connection.execute(query)]

    def mark_gone(self, runs: Sequence[RunKey], now: float) -> None:
        """Note that runs at rest aren't listed any more."""

        def work(connection: sa.Connection) -> None:
            for run in runs:
                query = sa.update(tables.runs).where(writing.is_run(tables.runs, run))
                connection.execute(query.values(gone_since=now))

        self._writer.write(work)

    def forget_runs(self, runs: Sequence[RunKey]) -> None:
        """Delete what is known of these runs, besides their alerts, which are pruned by their age."""

        def work(connection: sa.Connection) -> None:
            for run in runs:
                for table in (tables.runs, tables.timeline):
                    connection.execute(sa.delete(table).where(writing.is_run(table, run)))

        self._writer.write(work)

    def timeline(self, most: int = 50) -> list[Happening]:
        """What happened to runs lately, newest first."""
        with self._reading() as connection:
            return read_timeline(connection, most)

    def source_names(self) -> list[str]:
        """The sources that are known here, whether they are watched or not."""
        with self._reading() as connection:
            return list(connection.execute(sa.select(tables.sources.c.name)).scalars())

    def leave_source(self, name: str, now: float) -> list[Run]:
        """Note that a source is watched no longer: its runs are gone. Returns them."""
        t = tables.runs

        def work(connection: sa.Connection) -> list[str]:
            connection.execute(sa.delete(tables.sources).where(tables.sources.c.name == name))
            connection.execute(
                sa.update(t)
                .where(t.c.source == name, t.c.gone_since.is_(None))
                .values(gone_since=now)
            )
            return list(
                connection.execute(sa.select(t.c.run_json).where(t.c.source == name)).scalars()
            )

        return [codec.load_run(text) for text in self._writer.write(work)]

    def latest_alerts(
        self, source: str, run: RunKey | None = None
    ) -> dict[RunKey, dict[Family, Alert]]:
        """The latest alert of each (run, family) of a source, or of one run of it, open or not."""
        t = tables.alerts.c
        about = t.source == source
        if run is not None:
            about = sa.and_(about, t.run == run.run)
        newest = (
            sa.select(t.run, t.family, sa.func.max(t.started_at).label("started_at"))
            .where(about)
            .group_by(t.run, t.family)
            .subquery()
        )
        # The clock may have been set back between two alerts: an open one is the latest in any case.
        query = (
            sa.select(t.alert_json)
            .join(newest, sa.and_(t.run == newest.c.run, t.family == newest.c.family))
            .where(
                about,
                sa.or_(t.started_at == newest.c.started_at, t.state != AlertState.RESOLVED.value),
            )
        )
        latest: dict[RunKey, dict[Family, Alert]] = {}
        with self._reading() as connection:
            for (text,) in connection.execute(query):
                alert = codec.load_alert(text)
                families = latest.setdefault(alert.run, {})
                known = families.get(alert.family)
                if known is None or alert.open or not known.open:
                    families[alert.family] = alert
        return latest

    def open_alerts(self, family: Family) -> list[Alert]:
        """The alerts of a family that are not resolved."""
        t = tables.alerts.c
        query = sa.select(t.alert_json).where(
            t.family == family.value, t.state != AlertState.RESOLVED.value
        )
        with self._reading() as connection:
            return [codec.load_alert(text) for (text,) in connection.execute(query)]

    def save_source(self, record: SourceRecord) -> None:
        """Note how a source is doing."""
        values = {
            "adapter": record.adapter,
            "seen_at": record.seen_at,
            "error": record.error,
            "down_since": record.down_since,
        }
        self._writer.write(
            lambda c: writing.upsert(c, tables.sources, {"name": record.name}, values)
        )

    def note_budget(self, budget: Budget, now: float) -> None:
        """Note what the budget of false alarms comes to now."""
        values = {"at": now, "fact_json": codec.dumps(asdict(budget))}
        self._writer.write(lambda c: writing.upsert(c, tables.facts, {"name": "budget"}, values))

    # -- what people ask -------------------------------------------------------------------------

    def requests(self) -> list[Request]:
        """What is asked and not answered yet, oldest first."""
        with self._reading() as connection:
            return requests.unanswered(connection)

    def silences(self, now: float) -> list[Silence]:
        """The silences that haven't ended at ``now``, begun or not."""
        with self._reading() as connection:
            return silences.load(connection, now)

    def alert(self, id_: str) -> Alert | None:
        """The alert with this id, as it was last saved."""
        query = sa.select(tables.alerts.c.alert_json).where(tables.alerts.c.id == id_)
        with self._reading() as connection:
            text = connection.execute(query).scalar_one_or_none()
        return None if text is None else codec.load_alert(text)

    def remembered(self) -> Remembered:
        """What people were being told of when the last process ended."""
        with self._reading() as connection:
            return read_remembered(connection)

    # -- outbox ----------------------------------------------------------------------------------

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

    def curve(self, run: RunKey) -> Mapping[str, Any] | None:
        """What the last checkpoint of a run has kept of its loss, for a picture; None for nothing."""
        t = tables.runs.c
        query = sa.select(t.monitor_json).where(t.source == run.source, t.run == run.run)
        with self._reading() as connection:
            text = connection.execute(query).scalar_one_or_none()
        monitor = codec.loads(text) if text is not None else None
        found: Mapping[str, Any] | None = (monitor or {}).get("curve")
        return found

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

    def prune(self, before: float, gone_before: float) -> None:
        """Delete what was delivered or dropped, and alerts that were resolved, before this time.

        Deleted as well: runs that were gone before another time, and what happened to runs long ago.
        """
        t = tables

        def work(connection: sa.Connection) -> None:
            connection.execute(
                sa.delete(t.outbox).where(
                    t.outbox.c.state.in_(["sent", "dropped"]), t.outbox.c.done_at < before
                )
            )
            old = (
                sa.select(t.alerts.c.id)
                .where(
                    t.alerts.c.state == AlertState.RESOLVED.value, t.alerts.c.started_at < before
                )
                .where(t.alerts.c.id.not_in(sa.select(t.outbox.c.alert_id)))
            )
            connection.execute(sa.delete(t.transitions).where(t.transitions.c.alert_id.in_(old)))
            connection.execute(sa.delete(t.decisions).where(t.decisions.c.alert_id.in_(old)))
            connection.execute(sa.delete(t.groups).where(t.groups.c.id.in_(old)))
            connection.execute(sa.delete(t.receipts).where(t.receipts.c.alert_id.in_(old)))
            connection.execute(sa.delete(t.alerts).where(t.alerts.c.id.in_(old)))
            connection.execute(sa.delete(t.runs).where(t.runs.c.gone_since < gone_before))
            connection.execute(sa.delete(t.timeline).where(t.timeline.c.at < before))
            connection.execute(sa.delete(t.silences).where(t.silences.c.ends_at < before))
            connection.execute(sa.delete(t.requests).where(t.requests.c.done_at < before))

        self._writer.write(work)

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

    def facts(self, start: float, end: float) -> Facts:
        """What happened in some time, for a digest."""
        with self._reading() as connection:
            return read_facts(connection, start, end)

    def watched_before(self, moment: float) -> bool:
        """Whether anything that is known was known before this time."""
        with self._reading() as connection:
            return watched_before(connection, moment)

    def firing(self) -> int:
        """How many alerts are firing that people are told about."""
        t = tables.alerts.c
        query = sa.select(sa.func.count()).where(
            t.state == AlertState.FIRING.value, t.quiet.is_(False)
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
