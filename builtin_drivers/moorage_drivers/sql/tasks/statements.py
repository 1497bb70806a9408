# ruff: noqa: S608 (fragments are constants of ours; values are always bound)
"""The hot statements, as SQL text.

The rules that their shapes follow (measured; see docs/decisions/0003-sql-store.md):

- Claims search an index of only the due rows and leave ``due_at`` alone, so that PostgreSQL updates in
  place. Leases are columns of their own.
- A batch is one bound JSON document that the database unpacks: the statement is constant, so it is planned
  once. Every write is one conditional UPDATE that returns what landed.
- All changes of a task's state go through one SET clause (`_change`), whoever makes them.
"""

from collections.abc import Collection
from dataclasses import dataclass

from moorage_drivers.sql.dialects import Dialect
from moorage_drivers.sql.tasks.rows import ACTIVE_COLUMNS, ALL_COLUMNS

# One object of the document that changes rows. NULL, or a key left out, leaves a column as it is, unless
# the SET clause below says otherwise.
CHANGE_COLUMNS = {
    "c_id": "text",
    "c_token": "text",
    "c_remote": "text",
    "c_status": "text",
    "c_over": "boolean",
    "c_error": "text",
    "c_code": "text",
    "c_result": "text",
    "c_preview": "text",
    "c_cut": "boolean",
    "c_artifact": "text",
    "c_request": "text",
    "c_poll": "bigint",
    "c_polled": "bigint",
    "c_errors": "integer",
    "c_poll_error": "text",
    "c_degraded": "boolean",
    "c_tried": "boolean",
    "c_cancel": "bigint",
    "c_cancel_error": "text",
    "c_attempts": "integer",
    "c_kind": "text",
    "c_print": "text",
}

# All that a poll says that found the work going on: unpacking the document is the larger part of an apply.
PLAIN_COLUMNS = frozenset({"c_id", "c_token", "c_status", "c_poll", "c_polled", "c_errors"})

_NEWS = "c_kind IS NOT NULL AND (event_fingerprint IS NULL OR event_fingerprint <> c_print)"


def _outcome(column: str, value: str) -> str:
    """A column that every outcome writes, NULL included."""
    return f"{column} = CASE WHEN c_status IS NULL THEN {column} ELSE {value} END"


def _event(column: str, value: str) -> str:
    """A column that a new attention event writes (NOTE-1)."""
    return f"{column} = CASE WHEN {_NEWS} THEN {value} ELSE {column} END"


def _change(dialect: Dialect) -> str:
    now = dialect.now
    poll = "COALESCE(c_poll, next_poll_at)"
    cancel = "CASE WHEN c_tried THEN c_cancel ELSE next_cancel_at END"
    no = "0" if dialect.sqlite else "FALSE"
    last_error = "CASE WHEN c_errors = 0 THEN NULL ELSE COALESCE(c_poll_error, last_poll_error) END"
    degraded = f"COALESCE(c_degraded, CASE WHEN c_errors = 0 THEN {no} ELSE tracking_degraded END)"
    return ", ".join(
        (
            "status = COALESCE(c_status, status)",
            f"updated_at = {now}",
            "remote_id = COALESCE(c_remote, remote_id)",
            "intent_until = NULL",
            "lease_owner = NULL",
            "lease_token = NULL",
            "lease_until = NULL",
            f"finished_at = CASE WHEN c_over THEN {now} ELSE finished_at END",
            f"due_at = CASE WHEN c_over THEN NULL ELSE {dialect.earlier(poll, cancel)} END",
            f"next_poll_at = CASE WHEN c_over THEN NULL ELSE {poll} END",
            f"next_cancel_at = CASE WHEN c_over THEN NULL ELSE {cancel} END",
            "last_polled_at = COALESCE(c_polled, last_polled_at)",
            "poll_error_count = COALESCE(c_errors, poll_error_count)",
            f"last_poll_error = {last_error}",
            f"tracking_degraded = {degraded}",
            "cancel_attempt_count = COALESCE(c_attempts, cancel_attempt_count)",
            "last_cancel_error = CASE WHEN c_tried THEN c_cancel_error ELSE last_cancel_error END",
            _outcome("error", "c_error"),
            _outcome("error_code", "c_code"),
            _outcome("result", "c_result"),
            _outcome("result_preview", "c_preview"),
            _outcome("result_truncated", "COALESCE(c_cut, result_truncated)"),
            _outcome("result_artifact", "c_artifact"),
            _outcome("input_required", "c_request"),
            _event("event_version", "event_version + 1"),
            _event("event_kind", "c_kind"),
            _event("notification_status", "'pending'"),
            _event("notification_attempt", "0"),
            _event("notification_failure_count", "0"),
            _event("notification_error", "NULL"),
            _event("notify_at", now),
            _event("notify_owner", "NULL"),
            _event("notify_token", "NULL"),
            _event("notify_until", "NULL"),
            # All of these read the row as it was, so the order does not matter.
            _event("event_fingerprint", "c_print"),
        )
    )


def _changing(dialect: Dialect, guard: str, columns: Collection[str] = CHANGE_COLUMNS) -> str:
    present = {name: kind for name, kind in CHANGE_COLUMNS.items() if name in columns}
    absent = {name: kind for name, kind in CHANGE_COLUMNS.items() if name not in columns}
    return (
        f"WITH change AS MATERIALIZED ({dialect.rows(present, absent=absent)}) "
        f"UPDATE tasks SET {_change(dialect)} FROM change WHERE {guard} RETURNING task_id"
    )


def _claim(dialect: Dialect, *, drivers: bool) -> str:
    now = dialect.now
    of_drivers = ""
    if drivers:
        of_drivers = f"AND driver IN ({dialect.texts(':drivers')}) "
    free = (
        "(holder IS NULL OR holder = :owner OR NOT EXISTS "
        f"(SELECT 1 FROM replicas WHERE replica_id = holder AND alive_until > {now}))"
    )
    lease = f"{now} + CAST(:lease AS BIGINT)"
    return (
        "WITH due AS MATERIALIZED ("
        f"SELECT task_id AS due_id FROM tasks WHERE due_at <= {now} "
        f"AND (lease_until IS NULL OR lease_until <= {now}) {of_drivers}AND {free} "
        f"ORDER BY due_at LIMIT :count {dialect.skip_locked}) "
        f"UPDATE tasks SET lease_owner = :owner, lease_token = :token, lease_until = {lease}, "
        "holder = CASE WHEN holder IS NULL THEN NULL ELSE :owner END "
        f"FROM due WHERE task_id = due_id RETURNING {', '.join(ACTIVE_COLUMNS)}, due_at, lease_until"
    )


def _claim_notifications(dialect: Dialect) -> str:
    now = dialect.now
    return (
        "WITH due AS MATERIALIZED ("
        f"SELECT task_id AS due_id FROM tasks WHERE notify_at <= {now} "
        f"AND (notify_until IS NULL OR notify_until <= {now}) "
        f"ORDER BY notify_at LIMIT :count {dialect.skip_locked}) "
        "UPDATE tasks SET notify_owner = :owner, notify_token = :token, "
        f"notify_until = {now} + CAST(:lease AS BIGINT) "
        f"FROM due WHERE task_id = due_id RETURNING {', '.join(ALL_COLUMNS)}, notify_at, notify_until"
    )


def _next_due(dialect: Dialect) -> str:
    now = dialect.now
    free = f"(lease_until IS NULL OR lease_until <= {now})"
    return (
        # Leased rows were due when they were claimed, so the third part reads no others than due ones.
        f"SELECT (SELECT due_at FROM tasks WHERE due_at IS NOT NULL AND {free} ORDER BY due_at LIMIT 1), "
        "(SELECT MIN(intent_until) FROM tasks WHERE intent_until IS NOT NULL), "
        f"(SELECT MIN(lease_until) FROM tasks WHERE due_at <= {now} AND lease_until > {now})"
    )


def _next_notification(dialect: Dialect) -> str:
    now = dialect.now
    free = f"(notify_until IS NULL OR notify_until <= {now})"
    return (
        f"SELECT (SELECT notify_at FROM tasks WHERE notify_at IS NOT NULL AND {free} "
        "ORDER BY notify_at LIMIT 1), "
        f"(SELECT MIN(notify_until) FROM tasks WHERE notify_at <= {now} AND notify_until > {now})"
    )


_INTENT_COLUMNS = (
    "task_id, task_name, user_id, thread_id, run_id, assistant_id, server_name, driver, binding, holder"
)


def _create_intent(dialect: Dialect) -> str:
    values = ", ".join(f":{name}" for name in _INTENT_COLUMNS.split(", "))
    now = dialect.now
    return (
        f"INSERT INTO tasks ({_INTENT_COLUMNS}, status, lease_token, created_at, updated_at, intent_until) "
        f"VALUES ({values}, 'submitted', :token, {now}, {now}, {now} + CAST(:lease AS BIGINT))"
    )


def _release(dialect: Dialect) -> str:
    return (
        "WITH held AS MATERIALIZED "
        f"({dialect.rows({'h_id': 'text', 'h_token': 'text'})}) "
        "UPDATE tasks SET lease_owner = NULL, lease_token = NULL, lease_until = NULL FROM held "
        f"WHERE task_id = h_id AND lease_token = h_token AND lease_until > {dialect.now} RETURNING task_id"
    )


def _apply_notification(dialect: Dialect) -> str:
    now = dialect.now
    return (
        "UPDATE tasks SET notification_status = CAST(:status AS TEXT), notification_attempt = :attempt, "
        "notification_failure_count = :failures, notification_error = :error, "
        "notify_at = CASE WHEN CAST(:status AS TEXT) = 'pending' "
        f"THEN COALESCE(CAST(:next_at AS BIGINT), {now}) END, "
        "notify_owner = NULL, notify_token = NULL, notify_until = NULL "
        f"WHERE task_id = :task_id AND notify_token = :token AND notify_until > {now} "
        "AND event_version = :version RETURNING task_id"
    )


def _request_cancel(dialect: Dialect) -> str:
    now = dialect.now
    return (
        f"UPDATE tasks SET cancel_requested_at = {now}, next_cancel_at = {now}, updated_at = {now}, "
        # An intent has no schedule before its handle is recorded, which then takes the cancel in.
        f"due_at = CASE WHEN intent_until IS NULL THEN {dialect.earlier('due_at', now)} END "
        "WHERE task_id = :task_id AND finished_at IS NULL AND cancel_requested_at IS NULL "
        f"RETURNING {', '.join(ALL_COLUMNS)}"
    )


def _purge(dialect: Dialect) -> str:
    return (
        "WITH old AS MATERIALIZED (SELECT task_id AS old_id FROM tasks "
        "WHERE finished_at < :before AND notification_status <> 'pending' "
        f"ORDER BY finished_at LIMIT :count {dialect.skip_locked}) "
        "DELETE FROM tasks WHERE task_id IN (SELECT old_id FROM old) RETURNING task_id"
    )


def _heartbeat(dialect: Dialect) -> str:
    alive = f"{dialect.now} + CAST(:lease AS BIGINT)"
    return (
        f"INSERT INTO replicas (replica_id, alive_until) VALUES (:owner, {alive}) "
        "ON CONFLICT (replica_id) DO UPDATE SET alive_until = excluded.alive_until"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatements:
    """The statements of one dialect."""

    create_intent: str
    discard_intent: str
    claim: str
    claim_of_drivers: str
    apply: str
    apply_plain: str
    record_handle: str
    fail_intent: str
    expire_intents: str
    release: str
    request_cancel: str
    next_due: str
    claim_notifications: str
    apply_notification: str
    next_notification: str
    heartbeat: str
    farewell: str
    forget_replicas: str
    delete_thread: str
    purge: str


def task_statements(dialect: Dialect) -> TaskStatements:
    now = dialect.now
    # A terminal row has no lease, and no way to get one. The COALESCE keeps PostgreSQL from guessing that
    # hardly any row is leased and comparing each change with each of them, instead of by the primary key.
    leased = f"task_id = c_id AND lease_token = c_token AND COALESCE(lease_until, 0) > {now}"
    live = f"intent_until > {now} AND lease_token = c_token"
    return TaskStatements(
        create_intent=_create_intent(dialect),
        discard_intent=(
            "DELETE FROM tasks WHERE task_id = :task_id AND intent_until IS NOT NULL "
            "AND lease_token = :token RETURNING task_id"
        ),
        claim=_claim(dialect, drivers=False),
        claim_of_drivers=_claim(dialect, drivers=True),
        apply=_changing(dialect, leased),
        apply_plain=_changing(dialect, leased, PLAIN_COLUMNS),
        record_handle=_changing(dialect, f"task_id = c_id AND {live}"),
        fail_intent=_changing(
            dialect, f"task_id = c_id AND intent_until IS NOT NULL AND (c_token IS NULL OR ({live}))"
        ),
        expire_intents=_changing(dialect, f"intent_until <= {now}"),
        release=_release(dialect),
        request_cancel=_request_cancel(dialect),
        next_due=_next_due(dialect),
        claim_notifications=_claim_notifications(dialect),
        apply_notification=_apply_notification(dialect),
        next_notification=_next_notification(dialect),
        purge=_purge(dialect),
        heartbeat=_heartbeat(dialect),
        farewell="DELETE FROM replicas WHERE replica_id = :owner",
        forget_replicas=f"DELETE FROM replicas WHERE alive_until < {now} - CAST(:age AS BIGINT)",
        delete_thread=(
            "UPDATE tasks SET notification_status = 'dead_letter', notify_at = NULL, notify_owner = NULL, "
            "notify_token = NULL, notify_until = NULL, notification_error = 'the thread was deleted' "
            "WHERE user_id = :user_id AND thread_id = :thread_id AND notification_status = 'pending'"
        ),
    )
