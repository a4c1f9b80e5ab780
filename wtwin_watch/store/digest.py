"""What a digest is about: what the database holds of the alerts and runs of some time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from wtwin_watch.alerting.budget import Budget
from wtwin_watch.alerting.telling import Choice
from wtwin_watch.model import Alert, AlertState
from wtwin_watch.store import codec, database, tables
from wtwin_watch.store.status import read_budget

HELD = (
    Choice.SILENCED,
    Choice.INHIBITED,
    Choice.WEAK,
    Choice.BELOW,
    Choice.NOBODY,
    Choice.BRIEF,
)
"""Decisions by which people aren't told of an alert."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What happened from ``start`` until before ``end``, unix seconds."""

    start: float
    end: float
    alerts: tuple[tuple[Alert, str], ...] = ()
    """Those that fired then or fired still, with the name of the run or source; the earliest first."""
    untold: Mapping[str, Choice] = field(default_factory=dict)
    """Ids of those of them that nobody was told of, and why not."""
    held: Mapping[Choice, int] = field(default_factory=dict)
    """Of how many alerts nobody was told, or not everybody, by the reason."""
    runs: int = 0
    """How many runs were watched."""
    new_runs: int = 0
    """How many of them were first seen then."""
    down: tuple[str, ...] = ()
    """Sources that can't be read now."""
    budget: Budget | None = None
    """What the budget of false alarms comes to now; None where there is none."""


def read_digest(state: str, start: float, end: float) -> Facts:
    """Read the facts from a state. Raises `StoreError` where there is none to read."""
    with database.visited(state) as connection:
        return read_facts(connection, start, end)


def read_facts(connection: sa.Connection, start: float, end: float) -> Facts:
    """Read the facts. Costs a look at all transitions that are kept."""
    alerts = _alerts(connection, start, end)
    runs, new_runs = _runs(connection, start, end)
    s = tables.sources.c
    down = sa.select(s.name).where(s.down_since.is_not(None)).order_by(s.name)
    return Facts(
        start=start,
        end=end,
        alerts=alerts,
        untold=_untold(connection, [alert.id for alert, _ in alerts]),
        held=_held(connection, start, end),
        runs=runs,
        new_runs=new_runs,
        down=tuple(connection.execute(down).scalars()),
        budget=read_budget(connection),
    )


def watched_before(connection: sa.Connection, moment: float) -> bool:
    """Whether a run or an alert that is kept is older than ``moment``."""
    r, a = tables.runs.c, tables.alerts.c
    older = (
        sa.select(r.first_seen_at).where(r.first_seen_at < moment),
        sa.select(a.started_at).where(a.started_at < moment),
    )
    return any(connection.execute(query.limit(1)).first() is not None for query in older)


def _alerts(connection: sa.Connection, start: float, end: float) -> tuple[tuple[Alert, str], ...]:
    a, t, runs = tables.alerts.c, tables.transitions.c, tables.runs.c
    changed = sa.select(t.alert_id).where(t.at >= start, t.at < end)
    query = (
        sa.select(a.alert_json, runs.run_json)
        .join_from(
            tables.alerts,
            tables.runs,
            sa.and_(runs.source == a.source, runs.run == a.run),
            isouter=True,
        )
        .where(a.quiet.is_(False), a.started_at < end)
        .where(sa.or_(a.state == AlertState.FIRING.value, a.id.in_(changed)))
        .order_by(a.started_at, a.id)
    )
    found = []
    for alert_json, run_json in connection.execute(query):
        alert = codec.load_alert(alert_json)
        fired, ended = alert.fired_at, alert.resolved_at
        if fired is not None and fired < end and (ended is None or ended >= start):
            name = codec.load_run(run_json).name if run_json else alert.run.run
            found.append((alert, name or alert.run.source))
    return tuple(found)


def _untold(connection: sa.Connection, ids: Sequence[str]) -> dict[str, Choice]:
    d = tables.decisions.c
    query = sa.select(d.alert_id, d.decision).where(d.alert_id.in_(ids)).order_by(d.seq)
    why: dict[str, Choice] = {}
    told = set()
    for id_, decision in connection.execute(query):
        if decision in {Choice.TOLD, Choice.GROUPED}:
            told.add(id_)
        elif decision in HELD:
            why[id_] = Choice(decision)
    return {id_: choice for id_, choice in why.items() if id_ not in told}


def _held(connection: sa.Connection, start: float, end: float) -> dict[Choice, int]:
    d = tables.decisions.c
    query = (
        sa.select(d.decision, sa.func.count(d.alert_id.distinct()))
        .where(d.at >= start, d.at < end, d.decision.in_([choice.value for choice in HELD]))
        .group_by(d.decision)
    )
    counts = {Choice(decision): count for decision, count in connection.execute(query)}
    return {choice: counts[choice] for choice in HELD if choice in counts}


def _runs(connection: sa.Connection, start: float, end: float) -> tuple[int, int]:
    r = tables.runs.c
    # A run that waits for its next step is watched as well, though nothing is saved of it.
    awake = sa.and_(r.resting.is_(False), r.gone_since.is_(None))
    query = sa.select(r.first_seen_at).where(
        r.first_seen_at < end, sa.or_(r.saved_at >= start, awake)
    )
    seen = list(connection.execute(query).scalars())
    return len(seen), sum(first >= start for first in seen)
