"""Everything the watcher knows, in one database: where each run stands, alerts, and the outbox."""

from wtwin_watch.store.records import (
    Answer,
    Checkpoint,
    Happening,
    OutboxEntry,
    Progress,
    Request,
    RunRecord,
    SourceRecord,
    Verb,
)
from wtwin_watch.store.status import RunStatus, Status, read_status
from wtwin_watch.store.store import Store

__all__ = [
    "Answer",
    "Checkpoint",
    "Happening",
    "OutboxEntry",
    "Progress",
    "Request",
    "RunRecord",
    "RunStatus",
    "SourceRecord",
    "Status",
    "Store",
    "Verb",
    "read_status",
]
