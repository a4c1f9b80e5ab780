"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "owner",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("holder_json", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("heartbeat_at", sa.Double, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
    )
    op.create_table(
        "sources",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("adapter", sa.String(100), nullable=False),
        sa.Column("seen_at", sa.Double),
        sa.Column("error", sa.Text),
        sa.Column("down_since", sa.Double),
    )
    op.create_table(
        "runs",
        sa.Column("source", sa.String(200), primary_key=True),
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("run_json", sa.Text, nullable=False),
        sa.Column("cursor_json", sa.Text),
        sa.Column("monitor_json", sa.Text),
        sa.Column("position", sa.Text),
        sa.Column("backlog", sa.Boolean, nullable=False),
        sa.Column("skipped_json", sa.Text, nullable=False),
        sa.Column("roles_json", sa.Text, nullable=False),
        sa.Column("step_name", sa.Text),
        sa.Column("points", sa.BigInteger, nullable=False),
        sa.Column("last_step", sa.Double),
        sa.Column("last_loss", sa.String(40)),
        sa.Column("judging", sa.Text, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("first_seen_at", sa.Double, nullable=False),
        sa.Column("saved_at", sa.Double, nullable=False),
    )
    op.create_table(
        "alerts",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("family", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("severity", sa.String(20), nullable=False),
        sa.Column("fingerprint", sa.String(16), nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("quiet", sa.Boolean, nullable=False),
        sa.Column("alert_json", sa.Text, nullable=False),
    )
    op.create_index("alerts_by_run", "alerts", ["source", "run", "family", "started_at"])
    op.create_index("alerts_by_state", "alerts", ["state"])
    op.create_table(
        "transitions",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("alert_id", sa.String(40), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.String(60), nullable=False),
        sa.Column("event", sa.String(20)),
        sa.Column("summary", sa.Text, nullable=False),
    )
    op.create_index("ix_transitions_alert_id", "transitions", ["alert_id"])
    op.create_table(
        "outbox",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("seq", _serial, nullable=False),
        sa.Column("receiver", sa.String(200), nullable=False),
        sa.Column("alert_id", sa.String(40), nullable=False),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("body_json", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("done_at", sa.Double),
    )
    op.create_index("outbox_waiting", "outbox", ["receiver", "state", "seq"])
    op.create_table(
        "receipts",
        sa.Column("receiver", sa.String(200), primary_key=True),
        sa.Column("alert_id", sa.String(40), primary_key=True),
        sa.Column("receipt_json", sa.Text, nullable=False),
    )
