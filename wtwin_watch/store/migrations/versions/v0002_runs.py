"""Attempts of runs, their timeline, and which of them are gone or at rest."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the columns and the table."""
    op.add_column("runs", sa.Column("attempt", sa.Integer, nullable=False, server_default="1"))
    op.add_column("runs", sa.Column("gone_since", sa.Double))
    op.add_column(
        "runs", sa.Column("resting", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.create_index("runs_gone", "runs", ["gone_since"])
    op.create_table(
        "timeline",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("step", sa.Double),
    )
    op.create_index("timeline_by_run", "timeline", ["source", "run"])
