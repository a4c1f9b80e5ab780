"""Everything the watcher knows, in one database: where each run stands, alerts, and the outbox."""

from wtwin_watch.store.status import RunStatus, Status, read_status
from wtwin_watch.store.store import (
    Checkpoint,
    OutboxEntry,
    RunRecord,
    SourceRecord,
    Store,
)

__all__ = [
    "Checkpoint",
    "OutboxEntry",
    "RunRecord",
    "RunStatus",
    "SourceRecord",
    "Status",
    "Store",
    "read_status",
]
