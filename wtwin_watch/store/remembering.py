"""What people were being told of, for a new process to take it up: alerts that fire, and their groups."""

from __future__ import annotations

import sqlalchemy as sa

from wtwin_watch.alerting.dispatch import Remembered, Subject
from wtwin_watch.alerting.telling import GroupChange
from wtwin_watch.model import AlertState, Event, Run
from wtwin_watch.store import codec, tables


def read_remembered(connection: sa.Connection) -> Remembered:
    """Read the alerts that fire or are in a group, with their runs; the groups; and who was told."""
    kept = [
        GroupChange(row.receiver, row.id, codec.loads(row.group_json))
        for row in connection.execute(sa.select(tables.groups))
    ]
    grouped = {id_ for group in kept for id_ in (group.id, *(group.state or {}).get("members", ()))}
    a, runs = tables.alerts.c, tables.runs.c
    firing = sa.and_(a.state == AlertState.FIRING.value, a.quiet.is_(False))
    query = (
        sa.select(a.id, a.alert_json, runs.run_json)
        .join_from(
            tables.alerts,
            tables.runs,
            sa.and_(runs.source == a.source, runs.run == a.run),
            isouter=True,
        )
        .where(sa.or_(firing, a.id.in_(sorted(grouped))))
        .order_by(a.started_at, a.id)
    )
    subjects = []
    for _, alert_json, run_json in connection.execute(query):
        alert = codec.load_alert(alert_json)
        # An alert about a source is about no run.
        named = Run(alert.run, alert.run.run or alert.run.source)
        run = codec.load_run(run_json) if run_json else named
        subjects.append(Subject(alert, run))
    o = tables.outbox.c
    told = (
        sa.select(o.receiver, o.alert_id)
        .join_from(tables.outbox, tables.alerts, a.id == o.alert_id)
        .where(firing, o.event == Event.FIRING.value)
        .distinct()
    )
    return Remembered(subjects, kept, [(row[0], row[1]) for row in connection.execute(told)])
