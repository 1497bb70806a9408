"""Streams of runs for clients of other replicas."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "followers",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.run_id"], name=op.f("fk_followers_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_followers")),
        sa.UniqueConstraint("token", name=op.f("uq_followers_token")),
    )
    op.create_table(
        "stream_rows",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["token"], ["followers.token"], name=op.f("fk_stream_rows_token"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token", "number", name=op.f("pk_stream_rows")),
    )


def downgrade() -> None:
    op.drop_table("stream_rows")
    op.drop_table("followers")
