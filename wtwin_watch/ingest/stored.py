"""A watched run as a checkpoint keeps it, and as it is brought back from one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wtwin_watch.errors import SnapshotError
from wtwin_watch.ingest import stalls
from wtwin_watch.ingest.cadence import Cadence
from wtwin_watch.ingest.judging import Judging
from wtwin_watch.ingest.watched import WatchedRun
from wtwin_watch.model import Alert, Family, RunStatus
from wtwin_watch.monitor.curve import Curve
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.store import RunRecord


def record_of(run: WatchedRun) -> RunRecord:
    """What a checkpoint keeps of ``run``."""
    return RunRecord(
        run=run.run,
        cursor=run.cursor,
        monitor={
            "judging": run.judging.stored(),
            "state": run.monitor.snapshot(),
            "curve": run.curve.snapshot(),
            "progress": {
                "cadence": run.cadence.snapshot(),
                "step": run.step,
                "status": run.status,
                "status_since": run.status_since,
                "untold": run.untold,
                "newborn": run.newborn,
                "revived": run.revived,
            },
        },
        backlog=run.backlog,
        first_seen_at=run.first_seen_at,
        position=run.position,
        step_name=run.step_name,
        skipped=dict(run.skipped),
        roles={role.value: name for role, name in run.monitor.roles.items()},
        points=run.monitor.points,
        last_step=run.monitor.last_step,
        last_loss=run.monitor.last_loss,
        judging=run.monitor.status,
        error=run.trouble.shown,
        attempt=run.attempt,
        gone_since=run.gone_since,
    )


def restored(record: RunRecord, alerts: dict[Family, Alert], judging: Judging) -> WatchedRun:
    """A run as it was last saved.

    Raises `SnapshotError` where its monitor's state can't be read, or was made by other settings: its
    history then has to be read anew, so that what follows is what these settings say of the whole run.
    """
    monitor, seen = judging.new_monitor(), Curve()
    stored: Mapping[str, Any] = record.monitor or {}
    if record.monitor is not None:
        if stored.get("judging") != judging.stored():
            raise SnapshotError("the settings of its detector or the names of its metrics changed")
        monitor = RunMonitor.restore(stored["state"], judging.names, judging.detector)
        if "curve" in stored:
            seen = Curve.restore(stored["curve"])
    run = WatchedRun(
        run=record.run,
        judging=judging,
        monitor=monitor,
        first_seen_at=record.first_seen_at,
        backlog=record.backlog,
        cursor=record.cursor,
        alerts=alerts,
        position=record.position,
        step_name=record.step_name,
        skipped=dict(record.skipped),
        curve=seen,
        continued=record.cursor is not None,
        attempt=record.attempt,
        gone_since=record.gone_since,
    )
    _recall_progress(run, stored)
    return run


def begun_anew(record: RunRecord, alerts: dict[Family, Alert], judging: Judging) -> WatchedRun:
    """A run whose history has to be read anew, with its alerts, and with what time has taught of it."""
    run = WatchedRun(record.run, judging, judging.new_monitor(), record.first_seen_at)
    run.alerts = alerts
    run.anew = True
    _recall_progress(run, record.monitor or {})
    progress = alerts.get(Family.PROGRESS)
    if run.cadence.stalled and progress is not None:
        run.monitor.note(stalls.SIGNAL, progress.detection)
    return run


def _recall_progress(run: WatchedRun, stored: Mapping[str, Any]) -> None:
    progress = stored.get("progress")
    if progress is None:
        return
    run.cadence = Cadence.restore(progress["cadence"])
    run.step = progress["step"]
    run.status = None if progress["status"] is None else RunStatus(progress["status"])
    run.status_since = progress["status_since"]
    run.untold = progress["untold"]
    run.newborn = progress["newborn"]
    run.revived = progress["revived"]
