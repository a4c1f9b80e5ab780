"""The statements that write: called by the writer thread, inside its transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from wtwin_watch.alerting.lifecycle import Transition
from wtwin_watch.alerting.telling import Decision, GroupChange
from wtwin_watch.model import RunKey
from wtwin_watch.store import codec, tables
from wtwin_watch.store.records import Checkpoint


def save_checkpoint(connection: sa.Connection, checkpoint: Checkpoint, now: float) -> None:
    """Write what belongs together."""
    if checkpoint.record is not None:
        record = checkpoint.record
        key = {"source": record.run.key.source, "run": record.run.key.run}
        values = {
            "run_json": codec.dump_record(record.run),
            "cursor_json": None if record.cursor is None else codec.dumps(dict(record.cursor)),
            "monitor_json": None if record.monitor is None else codec.dumps(dict(record.monitor)),
            "position": record.position,
            "backlog": record.backlog,
            "skipped_json": codec.dumps(dict(record.skipped)),
            "roles_json": codec.dumps(dict(record.roles)),
            "step_name": record.step_name,
            "points": record.points,
            "last_step": record.last_step,
            "last_loss": codec.dump_number(record.last_loss),
            "judging": record.judging,
            "error": record.error,
            "first_seen_at": record.first_seen_at,
            "saved_at": now,
            "attempt": record.attempt,
            "gone_since": record.gone_since,
            "resting": record.resting,
        }
        upsert(connection, tables.runs, key, values)
    for happening in checkpoint.happened:
        values = {"source": happening.run.source, "run": happening.run.run, "at": happening.at}
        values |= {"kind": happening.kind, "text": happening.text, "step": happening.step}
        connection.execute(sa.insert(tables.timeline).values(**values))
    for transition in checkpoint.transitions:
        _save_transition(connection, transition)
    for answer in checkpoint.answers:
        connection.execute(
            sa.update(tables.requests)
            .where(tables.requests.c.seq == answer.seq)
            .values(done_at=now, outcome=answer.outcome, refused=answer.refused)
        )
    for decision in checkpoint.decisions:
        _save_decision(connection, decision)
    for change in checkpoint.groups:
        _save_group(connection, change)
    for entry in checkpoint.notifications:
        known = sa.select(tables.outbox.c.id).where(tables.outbox.c.id == entry.id)
        if connection.execute(known).first() is not None:
            continue  # a write that was too slow to be waited for was done all the same
        seq = connection.execute(
            sa.select(sa.func.coalesce(sa.func.max(tables.outbox.c.seq), 0) + 1)
        ).scalar_one()
        connection.execute(
            sa.insert(tables.outbox).values(
                id=entry.id,
                seq=seq,
                receiver=entry.receiver,
                alert_id=entry.alert.id,
                event=entry.event.value,
                body_json=codec.dump_body(entry),
                created_at=entry.created_at,
                state="waiting",
                attempts=0,
                next_at=entry.next_at,
            )
        )


def _save_decision(connection: sa.Connection, decision: Decision) -> None:
    connection.execute(
        sa.insert(tables.decisions).values(
            alert_id=decision.alert_id,
            at=decision.at,
            receiver=decision.receiver,
            decision=decision.choice.value,
            text=decision.text,
        )
    )


def _save_group(connection: sa.Connection, change: GroupChange) -> None:
    t = tables.groups
    if change.state is None:
        query = sa.delete(t).where(t.c.receiver == change.receiver, t.c.id == change.id)
        connection.execute(query)
        return
    key = {"receiver": change.receiver, "id": change.id}
    upsert(connection, t, key, {"group_json": codec.dumps(dict(change.state))})


def _save_transition(connection: sa.Connection, transition: Transition) -> None:
    alert = transition.alert
    values = {
        "source": alert.run.source,
        "run": alert.run.run,
        "family": alert.family.value,
        "state": alert.state.value,
        "severity": alert.severity.value,
        "fingerprint": alert.fingerprint,
        "started_at": alert.started_at,
        "quiet": alert.quiet,
        "alert_json": codec.dump_record(alert),
    }
    upsert(connection, tables.alerts, {"id": alert.id}, values)
    connection.execute(
        sa.insert(tables.transitions).values(
            alert_id=alert.id,
            at=transition.at,
            state=alert.state.value,
            reason=transition.reason.value,
            event=transition.event.value if transition.event else None,
            summary=alert.outcome or alert.detection.summary,
        )
    )


def is_run(table: sa.Table, run: RunKey) -> sa.ColumnElement[bool]:
    """The rows of ``table`` that are about ``run``."""
    return sa.and_(table.c.source == run.source, table.c.run == run.run)


def settle(
    connection: sa.Connection, id_: str, state: str, now: float, *, attempts: int, error: str | None
) -> None:
    """Note how a notification ended: sent or parked."""
    connection.execute(
        sa.update(tables.outbox)
        .where(tables.outbox.c.id == id_)
        .values(state=state, attempts=attempts, error=error, done_at=now)
    )


def upsert(
    connection: sa.Connection, table: sa.Table, key: Mapping[str, Any], values: Mapping[str, Any]
) -> None:
    """Update the row of this key, or insert it."""
    where = sa.and_(*(table.c[name] == value for name, value in key.items()))
    if connection.execute(sa.update(table).where(where).values(**values)).rowcount == 0:
        connection.execute(sa.insert(table).values(**key, **values))
