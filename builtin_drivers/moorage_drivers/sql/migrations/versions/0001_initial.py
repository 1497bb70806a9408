"""The first revision: everything."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("roles", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
    )
    op.create_index("ix_api_keys_user", "api_keys", ["user_id"], unique=False)
    op.create_index(
        "uq_api_keys_live_name", "api_keys", ["name"], unique=True, **_where("revoked_at IS NULL")
    )
    op.create_table(
        "memos",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_memos")),
    )
    op.create_table(
        "replicas",
        sa.Column("replica_id", sa.Text(), nullable=False),
        sa.Column("alive_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("replica_id", name=op.f("pk_replicas")),
    )
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.String(length=64), nullable=False),
        sa.Column("task_name", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("assistant_id", sa.Text(), nullable=True),
        sa.Column("server_name", sa.String(length=128), nullable=False),
        sa.Column("driver", sa.Text(), nullable=False),
        sa.Column("binding", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("remote_id", sa.String(length=255), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("intent_until", sa.BigInteger(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_token", sa.String(length=64), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("next_poll_at", sa.BigInteger(), nullable=True),
        sa.Column("last_polled_at", sa.BigInteger(), nullable=True),
        sa.Column("poll_error_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_poll_error", sa.Text(), nullable=True),
        sa.Column("tracking_degraded", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("cancel_requested_at", sa.BigInteger(), nullable=True),
        sa.Column("next_cancel_at", sa.BigInteger(), nullable=True),
        sa.Column("cancel_attempt_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_cancel_error", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("result_preview", sa.Text(), nullable=True),
        sa.Column("result_truncated", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("result_artifact", sa.Text(), nullable=True),
        sa.Column("input_required", sa.Text(), nullable=True),
        sa.Column("event_version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("event_kind", sa.String(length=32), nullable=True),
        sa.Column("event_fingerprint", sa.Text(), nullable=True),
        sa.Column(
            "notification_status", sa.String(length=16), server_default=sa.text("'none'"), nullable=False
        ),
        sa.Column("notification_attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("notification_failure_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("notification_error", sa.Text(), nullable=True),
        sa.Column("notify_at", sa.BigInteger(), nullable=True),
        sa.Column("notify_owner", sa.Text(), nullable=True),
        sa.Column("notify_token", sa.String(length=64), nullable=True),
        sa.Column("notify_until", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("task_id", name=op.f("pk_tasks")),
        postgresql_with={
            "fillfactor": 70,
            "autovacuum_vacuum_scale_factor": 0,
            "autovacuum_vacuum_threshold": 5000,
            "autovacuum_vacuum_cost_delay": 0,
        },
    )
    op.create_index("ix_tasks_due", "tasks", ["due_at"], unique=False, **_where("due_at IS NOT NULL"))
    op.create_index(
        "ix_tasks_finished", "tasks", ["finished_at"], unique=False, **_where("finished_at IS NOT NULL")
    )
    op.create_index(
        "ix_tasks_intent", "tasks", ["intent_until"], unique=False, **_where("intent_until IS NOT NULL")
    )
    op.create_index(
        "ix_tasks_notify", "tasks", ["notify_at"], unique=False, **_where("notify_at IS NOT NULL")
    )
    op.create_index("ix_tasks_thread", "tasks", ["thread_id", "created_at"], unique=False)
    op.create_index("uq_tasks_remote", "tasks", ["user_id", "server_name", "remote_id"], unique=True)
    op.create_table(
        "threads",
        sa.Column("thread_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("last_assistant_id", sa.Text(), nullable=True),
        sa.Column("event_seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("thread_id", name=op.f("pk_threads")),
    )
    op.create_index("ix_threads_user", "threads", ["user_id", "created_at"], unique=False)
    op.create_table(
        "events",
        sa.Column("thread_id", sa.String(length=64), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=True),
        sa.Column("task_id", sa.String(length=64), nullable=True),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["threads.thread_id"], name=op.f("fk_events_thread_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("thread_id", "seq", name=op.f("pk_events")),
    )
    op.create_index("ix_events_run", "events", ["run_id", "seq"], unique=False)
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("thread_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("assistant_id", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("kwargs", sa.Text(), nullable=False),
        sa.Column("multitask_strategy", sa.String(length=16), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("internal", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["threads.thread_id"], name=op.f("fk_runs_thread_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
    )
    op.create_index(
        "ix_runs_lease", "runs", ["lease_until"], unique=False, **_where("lease_until IS NOT NULL")
    )
    op.create_index("ix_runs_thread", "runs", ["thread_id", "created_at"], unique=False)
    op.create_index("uq_runs_idempotency", "runs", ["thread_id", "idempotency_key"], unique=True)
    op.create_table(
        "task_answers",
        sa.Column("task_id", sa.String(length=64), nullable=False),
        sa.Column("answer_id", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("response", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.task_id"], name=op.f("fk_task_answers_task_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("task_id", "answer_id", name=op.f("pk_task_answers")),
    )
    op.create_table(
        "thread_metadata",
        sa.Column("thread_id", sa.String(length=64), nullable=False),
        sa.Column("entry", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["threads.thread_id"],
            name=op.f("fk_thread_metadata_thread_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("thread_id", "entry", name=op.f("pk_thread_metadata")),
    )
    op.create_index("ix_thread_metadata_entry", "thread_metadata", ["entry", "thread_id"], unique=False)


def downgrade() -> None:
    op.drop_table("thread_metadata")
    op.drop_table("task_answers")
    op.drop_table("runs")
    op.drop_table("events")
    op.drop_table("threads")
    op.drop_table("tasks")
    op.drop_table("replicas")
    op.drop_table("memos")
    op.drop_table("api_keys")
