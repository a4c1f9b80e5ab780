"""The tables. Times are unix seconds; a column ending in ``_json`` holds JSON text of a versioned form."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
)

metadata = MetaData()

_serial = BigInteger().with_variant(Integer, "sqlite")

# Which daemon owns this database: one row.
owner = Table(
    "owner",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("token", String(64), nullable=False),
    Column("holder_json", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("heartbeat_at", Double, nullable=False),
    Column("status", Text, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("adapter", String(100), nullable=False),
    Column("seen_at", Double),
    Column("error", Text),
    Column("down_since", Double),
)

# Where each run stands: the cursor and the monitor's state that belong together.
runs = Table(
    "runs",
    metadata,
    Column("source", String(200), primary_key=True),
    Column("run", Text, primary_key=True),
    Column("run_json", Text, nullable=False),
    Column("cursor_json", Text),
    Column("monitor_json", Text),
    Column("position", Text),
    Column("backlog", Boolean, nullable=False),
    Column("skipped_json", Text, nullable=False),
    Column("roles_json", Text, nullable=False),
    Column("step_name", Text),
    Column("points", BigInteger, nullable=False),
    Column("last_step", Double),
    Column("last_loss", String(40)),  # as text, since a database may turn NaN into NULL
    Column("judging", Text, nullable=False),
    Column("error", Text),
    Column("first_seen_at", Double, nullable=False),
    Column("saved_at", Double, nullable=False),
    Column("attempt", Integer, nullable=False, server_default="1"),
    Column("gone_since", Double),
    Column("resting", Boolean, nullable=False, server_default=false()),
    Index("runs_gone", "gone_since"),
)

# What happened to runs besides their alerts: attempts, and changes of their status.
timeline = Table(
    "timeline",
    metadata,
    Column("seq", _serial, primary_key=True, autoincrement=True),
    Column("source", String(200), nullable=False),
    Column("run", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("text", Text, nullable=False),
    Column("step", Double),
    Index("timeline_by_run", "source", "run"),
)

alerts = Table(
    "alerts",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("source", String(200), nullable=False),
    Column("run", Text, nullable=False),
    Column("family", String(20), nullable=False),
    Column("state", String(20), nullable=False),
    Column("severity", String(20), nullable=False),
    Column("fingerprint", String(16), nullable=False),
    Column("started_at", Double, nullable=False),
    Column("quiet", Boolean, nullable=False),
    Column("alert_json", Text, nullable=False),
    Index("alerts_by_run", "source", "run", "family", "started_at"),
    Index("alerts_by_state", "state"),
)

# Every change of an alert and the reason for it, told or not.
transitions = Table(
    "transitions",
    metadata,
    Column("seq", _serial, primary_key=True, autoincrement=True),
    Column("alert_id", String(40), nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", String(60), nullable=False),
    Column("event", String(20)),
    Column("summary", Text, nullable=False),
)

# Notifications not yet delivered, and those that were: the idempotency key is the primary key.
outbox = Table(
    "outbox",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("seq", _serial, nullable=False),
    Column("receiver", String(200), nullable=False),
    Column("alert_id", String(40), nullable=False),
    Column("event", String(20), nullable=False),
    Column("body_json", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("state", String(20), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("error", Text),
    Column("done_at", Double),
    Index("outbox_waiting", "receiver", "state", "seq"),
)

# What a receiver answered to the first message about an alert, so that later ones can edit it.
receipts = Table(
    "receipts",
    metadata,
    Column("receiver", String(200), primary_key=True),
    Column("alert_id", String(40), primary_key=True),
    Column("receipt_json", Text, nullable=False),
)

# What was decided about telling people of an alert: told, held back and why, told together with another.
decisions = Table(
    "decisions",
    metadata,
    Column("seq", _serial, primary_key=True, autoincrement=True),
    Column("alert_id", String(40), nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("receiver", String(200), nullable=False),  # empty: all of them
    Column("decision", String(40), nullable=False),
    Column("text", Text, nullable=False),
)

# Alerts that one receiver is told of together, while one of them is open; named after the first of them.
groups = Table(
    "groups",
    metadata,
    Column("receiver", String(200), primary_key=True),
    Column("id", String(40), primary_key=True),
    Column("group_json", Text, nullable=False),
)

silences = Table(
    "silences",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("matchers", Text, nullable=False),
    Column("starts_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("author", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

# What the daemon says of itself, under a name.
facts = Table(
    "facts",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("at", Double, nullable=False),
    Column("fact_json", Text, nullable=False),
)

# What people ask of the daemon about an alert, and what it answered.
requests = Table(
    "requests",
    metadata,
    Column("seq", _serial, primary_key=True, autoincrement=True),
    Column("verb", String(20), nullable=False),
    Column("alert_id", String(40), nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("until", Double),
    Column("comment", Text, nullable=False),
    Column("done_at", Double, index=True),
    Column("outcome", Text),
    Column("refused", Boolean, nullable=False, server_default=false()),
)
