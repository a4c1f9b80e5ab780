"""Everything the watcher knows, in one database: where each run stands, alerts, and the outbox."""

from wtwin_watch.store.records import (
    Checkpoint,
    Happening,
    OutboxEntry,
    Progress,
    RunRecord,
    SourceRecord,
)
from wtwin_watch.store.status import RunStatus, Status, read_status
from wtwin_watch.store.store import Store

__all__ = [
    "Checkpoint",
    "Happening",
    "OutboxEntry",
    "Progress",
    "RunRecord",
    "RunStatus",
    "SourceRecord",
    "Status",
    "Store",
    "read_status",
]
