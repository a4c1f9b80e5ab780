"""What the database says about the watcher, for those who only look: read-only, owned by nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from wtwin_watch.alerting.budget import Budget
from wtwin_watch.alerting.silences import Silence
from wtwin_watch.errors import StoreError
from wtwin_watch.model import Alert, AlertState, Run, RunKey
from wtwin_watch.store import codec, database, owner, silences, tables
from wtwin_watch.store.records import Happening, SourceRecord

TIMELINE = 20
"""So many entries of the timeline are shown."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Where one run stands. Times in unix seconds."""

    run: Run
    position: str | None
    step_name: str | None
    roles: Mapping[str, str]
    points: int
    last_step: float | None
    last_loss: float | None
    judging: str
    """What its monitor can say now, and if nothing, why."""
    skipped: Mapping[str, int]
    backlog: bool
    error: str | None
    first_seen_at: float
    saved_at: float
    attempt: int
    gone_since: float | None
    """When its source was first found to list it no longer."""


@dataclass(frozen=True, slots=True)
class Status:
    """Everything there is to see. ``running`` says whether a daemon owns the database now."""

    state: str
    running: bool
    holder: Mapping[str, object] | None
    heartbeat_at: float | None
    line: str
    """What the daemon last said of itself."""
    sources: tuple[SourceRecord, ...] = ()
    runs: tuple[RunStatus, ...] = ()
    alerts: tuple[Alert, ...] = ()
    """Those that are open and told, newest first."""
    silenced: Mapping[str, Silence] = field(default_factory=dict)
    """What silences alerts now, by their ids."""
    outbox: Mapping[str, int] = field(default_factory=dict)
    """State (waiting, sent, parked) → how many notifications."""
    timeline: tuple[Happening, ...] = ()
    """What happened to runs besides their alerts, newest first."""
    budget: Budget | None = None
    """What the budget of false alarms comes to; None where there is none."""
    undelivered: tuple[tuple[str, str, int, str], ...] = ()
    """(receiver, state, attempts, last error) of what waits after a failure, or is parked."""


def read_status(state: str, now: float, also: Sequence[Silence] = ()) -> Status:
    """Read the state at ``state`` (a path or URL). Raises `StoreError` where there is none to read.

    ``also``: silences that are kept elsewhere.
    """
    with database.visited(state) as connection:
        return _read(connection, database.shown(database.database_url(state)), now, also)


def read_budget(connection: sa.Connection) -> Budget | None:
    """Read what the budget of false alarms came to when that was last noted."""
    query = sa.select(tables.facts.c.fact_json).where(tables.facts.c.name == "budget")
    fact = codec.loads(connection.execute(query).scalar_one_or_none())
    return None if fact is None else Budget(**fact)


def find_budget(state: str) -> Budget | None:
    """What the budget of false alarms came to for the daemon with this state; None where that isn't known."""
    try:
        with database.visited(state) as connection:
            return read_budget(connection)
    except StoreError:
        return None


def read_timeline(connection: sa.Connection, most: int) -> list[Happening]:
    """Read the latest entries of all runs' timelines, newest first."""
    t = tables.timeline
    rows = connection.execute(sa.select(t).order_by(t.c.seq.desc()).limit(most))
    return [
        Happening(RunKey(row.source, row.run), row.at, row.kind, row.text, row.step) for row in rows
    ]


def is_watched(connection: sa.Connection, now: float) -> bool:
    """Whether a daemon owns the database now."""
    row = connection.execute(sa.select(tables.owner)).one_or_none()
    return row is not None and owner.is_alive(
        codec.loads(row.holder_json) or {},
        row.heartbeat_at,
        now,
        owner.this_process(),
        owner.process_start,
    )


def _read(connection: sa.Connection, state: str, now: float, also: Sequence[Silence]) -> Status:
    t = tables
    holder_row = connection.execute(sa.select(t.owner)).one_or_none()
    holder = None if holder_row is None else codec.loads(holder_row.holder_json)
    sources = [
        SourceRecord(row.name, row.adapter, row.seen_at, row.error, row.down_since)
        for row in connection.execute(sa.select(t.sources).order_by(t.sources.c.name))
    ]
    runs = [
        RunStatus(
            run=codec.load_run(row.run_json),
            position=row.position,
            step_name=row.step_name,
            roles=codec.loads(row.roles_json),
            points=row.points,
            last_step=row.last_step,
            last_loss=codec.load_number(row.last_loss),
            judging=row.judging,
            skipped=codec.loads(row.skipped_json),
            backlog=row.backlog,
            error=row.error,
            first_seen_at=row.first_seen_at,
            saved_at=row.saved_at,
            attempt=row.attempt,
            gone_since=row.gone_since,
        )
        for row in connection.execute(sa.select(t.runs).order_by(t.runs.c.source, t.runs.c.run))
    ]
    open_ = (
        sa.select(t.alerts.c.alert_json)
        .where(t.alerts.c.state != AlertState.RESOLVED.value, t.alerts.c.quiet.is_(False))
        .order_by(t.alerts.c.started_at.desc())
    )
    alerts = [codec.load_alert(text) for text in connection.execute(open_).scalars()]
    known = {run.run.key: run.run for run in runs}
    about = [(alert, known.get(alert.run, Run(alert.run, alert.run.source))) for alert in alerts]
    counts = connection.execute(
        sa.select(t.outbox.c.state, sa.func.count()).group_by(t.outbox.c.state)
    )
    failed = (
        sa.select(t.outbox.c.receiver, t.outbox.c.state, t.outbox.c.attempts, t.outbox.c.error)
        .where(t.outbox.c.state != "sent", t.outbox.c.error.is_not(None))
        .order_by(t.outbox.c.seq)
    )
    return Status(
        state=state,
        running=is_watched(connection, now),
        holder=holder,
        heartbeat_at=None if holder_row is None else holder_row.heartbeat_at,
        line="" if holder_row is None else holder_row.status,
        sources=tuple(sources),
        runs=tuple(runs),
        alerts=tuple(alerts),
        silenced=silences.covering_now(connection, about, now, also),
        timeline=tuple(read_timeline(connection, TIMELINE)),
        outbox={row[0]: row[1] for row in counts},
        budget=read_budget(connection),
        undelivered=tuple(tuple(row) for row in connection.execute(failed)),
    )
