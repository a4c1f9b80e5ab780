"""The records that travel from a source to a receiver: frozen values, in the order a point meets them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

Cursor = Mapping[str, Any]
"""Where reading goes on: JSON-able, written and read by its adapter alone."""


class RunStatus(StrEnum):
    """What the tracker says about a run; ``UNKNOWN`` where it can't say (a log file)."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CRASHED = "crashed"
    KILLED = "killed"
    PREEMPTED = "preempted"
    """Taken off its machine by the scheduler, which usually starts it again."""
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether the tracker says that the run is over, well or badly."""
        return self not in (RunStatus.RUNNING, RunStatus.UNKNOWN)


@dataclass(frozen=True, slots=True)
class RunKey:
    """Which run: the configured name of its source, and an id that is stable within that source."""

    source: str
    run: str

    def __str__(self) -> str:
        return f"{self.source}/{self.run}" if self.run else self.source


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its source lists it."""

    key: RunKey
    name: str
    project: str = ""
    status: RunStatus = RunStatus.UNKNOWN
    url: str | None = None
    last_activity: float | None = None
    """When the run last logged something, unix seconds."""
    version: str | None = None
    """Changes whenever there may be something to fetch; None means: always fetch."""
    group: str | None = None
    tags: tuple[str, ...] = ()
    exit_code: int | None = None
    """How its process ended, where the tracker knows."""


class Point(NamedTuple):
    """One value of one metric at one step.

    A named tuple, not a dataclass: a reader makes a million of them a second.
    """

    metric: str
    step: float
    value: float
    wall_time: float | None = None


ROW_LOGGED = ""
"""The metric of a point that says only that a row was logged at its step, without a value of ours in it.

A table writes a NaN as an empty cell: from such points a monitor sees that the loss is missing though the
run goes on. Their value is 0.
"""


@dataclass(frozen=True, slots=True)
class Restart:
    """The log goes on from an earlier step, or starts anew.

    ``step`` None: what was read before is gone (replaced or truncated file), the run starts anew.
    Otherwise the points from ``step`` on replace those read before.
    """

    reason: str
    step: float | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one fetch brought: at most ``limit`` points, oldest first, and the cursor after them."""

    points: Sequence[Point]
    cursor: Cursor
    more: bool = False
    """There is more to fetch at once."""
    restart: Restart | None = None
    """Applies before the points."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows or records passed over in this batch: reason → how many."""
    position: str | None = None
    """Where reading stands now, for a person: ``row 1204``."""
    step_name: str | None = None
    """What the steps were taken from: a column, or ``row number``."""


class Family(StrEnum):
    """What an alert is about. A run has at most one open alert a family; its kind may change."""

    LOSS = "loss"
    NONFINITE = "nonfinite"
    PROGRESS = "progress"
    STATE = "state"
    SOURCE = "source"
    RECEIVER = "receiver"


class Severity(StrEnum):
    """How much it matters: ``CRITICAL`` may wake somebody, ``INFO`` never does."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


WEIGHT = {Severity.INFO: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}
"""Severities in their order."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A detector's verdict at one step: something began, changed its kind, or ended (not ``active``).

    Values are in the metric's own unit; ``score`` is the detector's (W of the W-Twin method).
    """

    family: Family
    kind: str
    active: bool
    severity: Severity
    summary: str
    detector: str
    metric: str | None = None
    step: float | None = None
    onset_step: float | None = None
    last_healthy_step: float | None = None
    observed: float | None = None
    expected: float | None = None
    sigma: float | None = None
    score: float | None = None
    evidence: tuple[str, ...] = ()
    strength: float | None = None
    """Evidence against chance in nats: chance brings as much once in about exp(strength + 1.5) points.

    None where chance has no part in it."""
    patience_s: float = 0.0
    """Its alert waits this long before it fires, seconds, and is dropped if the detection ends before."""
    last_lines: tuple[str, ...] = ()
    """The end of the run's console output, oldest first."""


class AlertState(StrEnum):
    """Where an alert is in its life."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


def fingerprint(run: RunKey, family: Family) -> str:
    """Name what an alert is about, the same over restarts and episodes: 16 hex digits."""
    text = "\x00".join((run.source, run.run, family))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Somebody has seen an alert: it isn't repeated any more, and nothing else changes. Unix seconds."""

    by: str
    at: float
    until: float | None = None
    """It is repeated again from then on; None: until the alert is over."""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """One episode of one (run, family). Times are unix seconds."""

    id: str
    run: RunKey
    family: Family
    kind: str
    severity: Severity
    state: AlertState
    detection: Detection
    """The latest active detection: what is wrong, or was."""
    started_at: float
    fired_at: float | None = None
    resolved_at: float | None = None
    resolved_step: float | None = None
    outcome: str = ""
    """How it ended, in a sentence."""
    held_until: float | None = None
    """A pending alert in its cooldown fires at this time at the earliest."""
    quiet: bool = False
    """Nobody is told: it lies in the history that was there before the run was first seen."""
    acknowledged: Acknowledgement | None = None

    @property
    def fingerprint(self) -> str:
        """The same for every episode of this (run, family)."""
        return fingerprint(self.run, self.family)

    @property
    def open(self) -> bool:
        """Whether it is still pending or firing."""
        return self.state is not AlertState.RESOLVED


class Event(StrEnum):
    """What happened to an alert, as people are told."""

    FIRING = "firing"
    CHANGED = "changed"
    REPEATED = "repeated"
    """It fires still, and nobody has said that they have seen it."""
    ACKNOWLEDGED = "acknowledged"
    """Somebody has seen it; or that was taken back, and the alert says nothing of it any more."""
    RESOLVED = "resolved"
    TEST = "test"
    DIGEST = "digest"
    """What happened in some time: it is about no alert, and nobody is to be disturbed by it."""


@dataclass(frozen=True, slots=True)
class Companion:
    """An alert that is told together with another one, and its run."""

    alert: Alert
    run: Run


@dataclass(frozen=True, slots=True)
class Message:
    """A notification in words: plain text, unescaped, to be laid out by the notifier.

    ``facts`` are (label, value) pairs in the order of their weight.
    """

    title: str
    summary: str
    facts: tuple[tuple[str, str], ...] = ()
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """One event of one alert for one receiver. ``id`` is the idempotency key, stable over retries."""

    id: str
    receiver: str
    event: Event
    alert: Alert
    run: Run
    message: Message
    created_at: float
    attempt: int = 1
    previous: Mapping[str, Any] | None = None
    """The receipt of what this receiver was first sent about this alert."""
    others: tuple[Companion, ...] = ()
    """Alerts that are told together with it; ``alert`` then stands for all of them."""
    size: int = 1
    """How many alerts it is about, also where not all of them are listed."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the receiver answered; ``data`` is JSON-able and comes back as ``Notification.previous``."""

    data: Mapping[str, Any] = field(default_factory=dict)
