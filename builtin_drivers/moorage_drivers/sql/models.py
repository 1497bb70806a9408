"""The tables.

A migration and this module say the same; a test compares them. Rows of tasks are written by
`moorage_drivers.sql.tasks` in SQL text, since their statements are the hot ones.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    false,
    text,
)

from moorage_drivers.sql.jsontext import JsonText, PlainName, PlainText
from moorage_drivers.sql.times import Instant

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

REMOTE_KEY = "uq_tasks_remote"
"""The unique key whose violation means that another task owns the remote handle (TASK-5)."""


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


tasks = Table(
    "tasks",
    metadata,
    Column("task_id", PlainName(64), primary_key=True),
    Column("task_name", PlainName(255), nullable=False),
    Column("user_id", PlainText, nullable=False),
    Column("thread_id", PlainText),
    Column("run_id", PlainText),
    Column("assistant_id", PlainText),
    Column("server_name", PlainName(128), nullable=False),
    Column("driver", PlainText, nullable=False),
    Column("binding", Text, nullable=False),
    Column("holder", PlainText),
    Column("remote_id", PlainName(255)),
    Column("status", PlainName(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    # The intent's lease; NULL once the submission is over (TASK-22).
    Column("intent_until", BigInteger),
    # The earlier of next_poll_at and next_cancel_at; NULL for rows that are never claimed again.
    Column("due_at", BigInteger),
    Column("lease_owner", Text),
    Column("lease_token", PlainName(64)),
    Column("lease_until", BigInteger),
    Column("next_poll_at", BigInteger),
    Column("last_polled_at", BigInteger),
    _count("poll_error_count"),
    Column("last_poll_error", Text),
    Column("tracking_degraded", Boolean(create_constraint=False), nullable=False, server_default=false()),
    Column("cancel_requested_at", BigInteger),
    Column("next_cancel_at", BigInteger),
    _count("cancel_attempt_count"),
    Column("last_cancel_error", Text),
    Column("error", Text),
    Column("error_code", Text),
    Column("result", Text),
    Column("result_preview", Text),
    Column("result_truncated", Boolean(create_constraint=False), nullable=False, server_default=false()),
    Column("result_artifact", Text),
    Column("input_required", Text),
    _count("event_version"),
    Column("event_kind", PlainName(32)),
    Column("event_fingerprint", Text),
    Column("notification_status", PlainName(16), nullable=False, server_default=text("'none'")),
    _count("notification_attempt"),
    _count("notification_failure_count"),
    Column("notification_error", Text),
    Column("notify_at", BigInteger),
    Column("notify_owner", Text),
    Column("notify_token", PlainName(64)),
    Column("notify_until", BigInteger),
    # A batch rewrites these rows again and again: room for in-place updates, and vacuums that come often
    # enough to keep the index of due rows short.
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0,
        "autovacuum_vacuum_threshold": 5000,
        "autovacuum_vacuum_cost_delay": 0,
    },
)


def _partial(name: str, column: str) -> Index:
    """An index of only those rows where the column is set, so that finished rows cost nothing (TASK-21)."""
    where = text(f"{column} IS NOT NULL")
    return Index(name, tasks.c[column], sqlite_where=where, postgresql_where=where)


_partial("ix_tasks_due", "due_at")
_partial("ix_tasks_intent", "intent_until")
_partial("ix_tasks_notify", "notify_at")
_partial("ix_tasks_finished", "finished_at")
Index(REMOTE_KEY, tasks.c.user_id, tasks.c.server_name, tasks.c.remote_id, unique=True)
# A poll moves the row's entry in every index, so there are as few as can be: a listing across threads, which
# only the operator asks for, sorts.
Index("ix_tasks_thread", tasks.c.thread_id, tasks.c.created_at)

task_answers = Table(
    "task_answers",
    metadata,
    Column("task_id", PlainName(64), ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
    Column("answer_id", PlainName(255), primary_key=True),
    Column("state", PlainName(16), nullable=False),
    Column("response", Text, nullable=False),
    Column("error", PlainText),
    Column("created_at", Instant, nullable=False),
)

replicas = Table(
    "replicas",
    metadata,
    Column("replica_id", Text, primary_key=True),
    Column("alive_until", BigInteger, nullable=False),
)

threads = Table(
    "threads",
    metadata,
    Column("thread_id", PlainName(64), primary_key=True),
    Column("user_id", PlainText, nullable=False),
    Column("metadata", JsonText, nullable=False),
    Column("status", PlainName(16), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("last_assistant_id", PlainText),
    Column("event_seq", BigInteger, nullable=False, server_default=text("0")),
    Index("ix_threads_user", "user_id", "created_at"),
)

# The top-level keys of threads.metadata, so that a search by equality uses an index on every database.
thread_metadata = Table(
    "thread_metadata",
    metadata,
    Column("thread_id", PlainName(64), ForeignKey("threads.thread_id", ondelete="CASCADE"), primary_key=True),
    Column("entry", PlainName(64), primary_key=True),
    Index("ix_thread_metadata_entry", "entry", "thread_id"),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", PlainName(64), primary_key=True),
    Column("thread_id", PlainName(64), ForeignKey("threads.thread_id", ondelete="CASCADE"), nullable=False),
    Column("user_id", PlainText, nullable=False),
    Column("assistant_id", PlainText, nullable=False),
    Column("status", PlainName(16), nullable=False),
    Column("metadata", JsonText, nullable=False),
    Column("kwargs", JsonText, nullable=False),
    Column("multitask_strategy", PlainName(16), nullable=False),
    Column("idempotency_key", PlainText),
    Column("error", PlainText),
    Column("owner", PlainText),
    Column("lease_until", BigInteger),
    Column("internal", Boolean(create_constraint=False), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Index("ix_runs_thread", "thread_id", "created_at"),
    Index("uq_runs_idempotency", "thread_id", "idempotency_key", unique=True),
)
# NULL for runs that have ended.
_LEASED = text("lease_until IS NOT NULL")
Index("ix_runs_lease", runs.c.lease_until, sqlite_where=_LEASED, postgresql_where=_LEASED)

events = Table(
    "events",
    metadata,
    Column("thread_id", PlainName(64), ForeignKey("threads.thread_id", ondelete="CASCADE"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", PlainName(64)),
    Column("task_id", PlainName(64)),
    Column("event_type", PlainText, nullable=False),
    Column("metadata", JsonText, nullable=False),
    Column("payload", JsonText),
    Column("created_at", Instant, nullable=False),
    Index("ix_events_run", "run_id", "seq"),
)

# Streams that clients of other replicas follow. Without such a client there are no rows.
followers = Table(
    "followers",
    metadata,
    Column("run_id", PlainName(64), ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("token", PlainName(64), nullable=False, unique=True),
    Column("until", BigInteger, nullable=False),
)

stream_rows = Table(
    "stream_rows",
    metadata,
    Column("token", PlainName(64), ForeignKey("followers.token", ondelete="CASCADE"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("event", PlainText, nullable=False),
    Column("mode", PlainText),
    Column("data", Text, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", PlainName(64), primary_key=True),
    Column("name", PlainText, nullable=False),
    Column("user_id", PlainText, nullable=False),
    Column("roles", JsonText, nullable=False),
    Column("key_hash", PlainText, nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    Column("revoked_at", Instant),
    Index("ix_api_keys_user", "user_id"),
)
_LIVE = text("revoked_at IS NULL")
Index("uq_api_keys_live_name", api_keys.c.name, unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE)

memos = Table(
    "memos",
    metadata,
    Column("name", PlainText, primary_key=True),
    Column("value", Text, nullable=False),
)
