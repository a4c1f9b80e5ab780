"""Groups, decisions about telling people, silences, and what people ask of the daemon."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "decisions",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("alert_id", sa.String(40), nullable=False, index=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("receiver", sa.String(200), nullable=False),
        sa.Column("decision", sa.String(40), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_table(
        "groups",
        sa.Column("receiver", sa.String(200), primary_key=True),
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("group_json", sa.Text, nullable=False),
    )
    op.create_table(
        "silences",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("matchers", sa.Text, nullable=False),
        sa.Column("starts_at", sa.Double, nullable=False),
        sa.Column("ends_at", sa.Double, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("fact_json", sa.Text, nullable=False),
    )
    op.create_table(
        "requests",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("verb", sa.String(20), nullable=False),
        sa.Column("alert_id", sa.String(40), nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("until", sa.Double),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("done_at", sa.Double, index=True),
        sa.Column("outcome", sa.Text),
        sa.Column("refused", sa.Boolean, nullable=False, server_default=sa.false()),
    )
