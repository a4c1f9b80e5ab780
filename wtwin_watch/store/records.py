"""The records that the store keeps, as the parts around it see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from wtwin_watch.alerting.lifecycle import Transition
from wtwin_watch.alerting.telling import Decision, GroupChange
from wtwin_watch.model import Alert, Companion, Cursor, Event, Message, Run, RunKey


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Where a run stands: what belongs together in one checkpoint."""

    run: Run
    cursor: Cursor | None
    monitor: Mapping[str, Any] | None
    backlog: bool
    """Its history isn't read to the end yet, so nobody is told about what is found."""
    first_seen_at: float
    position: str | None = None
    step_name: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    points: int = 0
    last_step: float | None = None
    last_loss: float | None = None
    judging: str = ""
    """What its monitor can say now, and if nothing, why."""
    error: str | None = None
    attempt: int = 1
    gone_since: float | None = None
    """When its source was first found to list it no longer, unix seconds."""
    resting: bool = False
    """Nothing is expected of it, so it isn't kept in memory."""


@dataclass(frozen=True, slots=True)
class Happening:
    """An entry in a run's timeline: ``kind`` is ``attempt`` or ``status``."""

    run: RunKey
    at: float
    kind: str
    text: str
    step: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come since its last checkpoint: for those who look, not for going on."""

    run: RunKey
    points: int
    last_step: float | None
    last_loss: float | None
    judging: str


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A notification to deliver: ``id`` is its idempotency key, ``attempts`` those made so far."""

    id: str
    receiver: str
    event: Event
    alert: Alert
    run: Run
    created_at: float
    attempts: int = 0
    next_at: float = 0.0
    others: tuple[Companion, ...] = ()
    size: int = 1
    message: Message | None = None
    """Its words, where they don't follow from the alert."""


class Verb(StrEnum):
    """What can be asked about an alert."""

    ACKNOWLEDGE = "acknowledge"
    UNACKNOWLEDGE = "unacknowledge"
    ACCEPT = "accept"


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks of the daemon about an alert. Unix seconds; ``until`` ends an acknowledgement."""

    seq: int
    verb: Verb
    alert_id: str
    by: str
    at: float
    until: float | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of the request ``seq``, in words; ``refused`` where nothing was changed."""

    seq: int
    outcome: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is written together: one run (or none), its transitions, and what is told because of them."""

    record: RunRecord | None = None
    transitions: Sequence[Transition] = ()
    notifications: Sequence[OutboxEntry] = ()
    happened: Sequence[Happening] = ()
    answers: Sequence[Answer] = ()
    decisions: Sequence[Decision] = ()
    groups: Sequence[GroupChange] = ()


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """How a source is doing. Times in unix seconds; ``down_since`` None means it answers."""

    name: str
    adapter: str
    seen_at: float | None = None
    error: str | None = None
    down_since: float | None = None
