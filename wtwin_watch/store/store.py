"""The store: what the daemon asks of its database, one method a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from wtwin_watch.alerting.budget import Budget
from wtwin_watch.alerting.dispatch import Remembered
from wtwin_watch.alerting.silences import Silence
from wtwin_watch.model import Alert, AlertState, Family, Run, RunKey
from wtwin_watch.store import codec, requests, silences, tables, writing
from wtwin_watch.store.digest import Facts, read_facts, watched_before
from wtwin_watch.store.outbox import Outbox
from wtwin_watch.store.records import (
    Checkpoint,
    Happening,
    Progress,
    Request,
    RunRecord,
    SourceRecord,
)
from wtwin_watch.store.remembering import read_remembered
from wtwin_watch.store.status import read_timeline


class Store(Outbox):
    """All that is known of runs, their alerts and what people ask, besides what is owed to receivers.

    Reads come from any thread, writes go through one.
    """

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

    def curve(self, run: RunKey) -> Mapping[str, Any] | None:
        """What the last checkpoint of a run has kept of its loss, for a picture; None for nothing."""
        t = tables.runs.c
        query = sa.select(t.monitor_json).where(t.source == run.source, t.run == run.run)
        with self._reading() as connection:
            text = connection.execute(query).scalar_one_or_none()
        monitor = codec.loads(text) if text is not None else None
        found: Mapping[str, Any] | None = (monitor or {}).get("curve")
        return found

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
