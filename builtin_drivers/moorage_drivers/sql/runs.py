"""`RunRepository` on SQL.

Every unit that changes a run locks its thread first, so that the thread's status always fits its runs and
no two units wait for each other.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from moorage.contract import Conflict, NotFound, RunRecord, RunStatus, ThreadBusy
from moorage_drivers.sql.database import Database, bound_now
from moorage_drivers.sql.failures import violated_key
from moorage_drivers.sql.jsontext import storable, to_json
from moorage_drivers.sql.models import events, runs, threads
from moorage_drivers.sql.threads import lock_thread
from moorage_drivers.sql.times import span

_ACTIVE = tuple(str(status) for status in RunStatus if not status.terminal)
_THREAD_AFTER = {
    RunStatus.SUCCESS: "idle",
    RunStatus.ERROR: "error",
    RunStatus.TIMEOUT: "error",
    RunStatus.INTERRUPTED: "interrupted",
}


class SqlRuns:
    """Runs on a `Database`. Leases end by the same clock as those of tasks."""

    def __init__(self, database: Database) -> None:
        self._database = database
        dialect, now = database.dialect, database.dialect.now
        lease = f"{now} + CAST(:lease AS BIGINT)"
        self._lease = text(f"UPDATE runs SET lease_until = {lease} WHERE run_id = :run_id")  # noqa: S608
        self._beat = text(
            f"UPDATE runs SET lease_until = {lease} WHERE owner = :owner AND lease_until IS NOT NULL "  # noqa: S608
            f"AND run_id IN ({dialect.texts(':ids')}) RETURNING run_id"
        )
        skip = "" if dialect.sqlite else "FOR UPDATE SKIP LOCKED"
        self._take = text(
            "WITH lapsed AS MATERIALIZED (SELECT run_id AS lapsed_id FROM runs "  # noqa: S608
            f"WHERE lease_until <= {now} ORDER BY lease_until LIMIT :count {skip}) "
            f"UPDATE runs SET owner = :owner, lease_until = {lease} "
            "WHERE run_id IN (SELECT lapsed_id FROM lapsed) RETURNING run_id"
        )

    async def create(
        self, run: RunRecord, *, exclusive: bool, lease_seconds: float = 60.0
    ) -> tuple[RunRecord, bool]:
        def unit(connection: Connection) -> tuple[RunRecord, bool]:
            if lock_thread(connection, self._database, run.thread_id) is None:
                raise NotFound(f"there is no thread {run.thread_id!r}")
            if run.idempotency_key is not None and (known := _same_key(connection, run)) is not None:
                return known, False
            if exclusive and _has_active(connection, run.thread_id):
                raise ThreadBusy(f"thread {run.thread_id!r} has an active run")
            connection.execute(insert(runs), _values(run))
            if not run.status.terminal:
                self._begin(connection, run, lease_seconds)
            return _found(connection, run.run_id), True

        try:
            return await self._database.write(unit)
        except IntegrityError as error:
            if violated_key(error) in ("pk_runs", "runs.run_id"):
                raise Conflict(f"there is a run {run.run_id!r} already") from error
            raise

    def _begin(self, connection: Connection, run: RunRecord, lease_seconds: float) -> None:
        values = {"run_id": run.run_id, "lease": span(lease_seconds), **bound_now(self._database)}
        connection.execute(self._lease, values)
        connection.execute(
            update(threads)
            .where(threads.c.thread_id == run.thread_id)
            .values(status="busy", last_assistant_id=run.assistant_id, updated_at=self._database.clock.now())
        )

    async def get(self, run_id: str) -> RunRecord | None:
        query = select(runs).where(runs.c.run_id == run_id)
        row = await self._database.read(lambda connection: connection.execute(query).first())
        return None if row is None else _record(row)

    async def list(
        self, thread_id: str, *, status: RunStatus | None = None, limit: int = 10, offset: int = 0
    ) -> Sequence[RunRecord]:
        query = (
            select(runs)
            .where(runs.c.thread_id == thread_id)
            .order_by(runs.c.created_at.desc(), runs.c.run_id.desc())
            .limit(limit)
            .offset(offset)
        )
        if status is not None:
            query = query.where(runs.c.status == str(status))
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_record(row) for row in rows]

    async def begin(self, run_id: str, owner: str) -> bool:
        now = self._database.clock.now()
        mine = update(runs).where(
            runs.c.run_id == run_id,
            runs.c.owner == storable(owner),
            runs.c.status == str(RunStatus.PENDING),
        )

        def unit(connection: Connection) -> bool:
            thread_id = connection.scalar(select(runs.c.thread_id).where(runs.c.run_id == run_id))
            if thread_id is None or lock_thread(connection, self._database, thread_id) is None:
                return False
            running = select(runs.c.run_id).where(
                runs.c.thread_id == thread_id, runs.c.status == str(RunStatus.RUNNING)
            )
            if connection.execute(running.limit(1)).first() is not None:
                return False
            change = mine.values(status=str(RunStatus.RUNNING), updated_at=now)
            return connection.execute(change).rowcount > 0

        return await self._database.write(unit)

    async def transition(
        self, run_id: str, *, expected: frozenset[RunStatus], to: RunStatus, error: str | None = None
    ) -> bool:
        now = self._database.clock.now()
        change: dict[str, Any] = {"status": str(to), "updated_at": now}
        if error is not None:
            change["error"] = error
        if to.terminal:
            change["lease_until"] = None
        conditional = (
            update(runs)
            .where(runs.c.run_id == run_id, runs.c.status.in_(sorted(str(status) for status in expected)))
            .values(change)
        )

        def unit(connection: Connection) -> bool:
            thread_id = connection.scalar(select(runs.c.thread_id).where(runs.c.run_id == run_id))
            if thread_id is None or lock_thread(connection, self._database, thread_id) is None:
                return False
            if connection.execute(conditional).rowcount == 0:
                return False
            status = "busy" if _has_active(connection, thread_id) else _THREAD_AFTER.get(to, "idle")
            connection.execute(
                update(threads).where(threads.c.thread_id == thread_id).values(status=status, updated_at=now)
            )
            return True

        return await self._database.write(unit)

    async def heartbeat(self, owner: str, run_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        values = {
            "owner": storable(owner),
            "ids": to_json(list(run_ids)),
            "lease": span(lease_seconds),
            **bound_now(self._database),
        }
        rows = await self._database.write(
            lambda connection: connection.execute(self._beat, values).all(), single=True
        )
        return frozenset(row.run_id for row in rows)

    async def take_over(self, owner: str, *, lease_seconds: float, limit: int = 100) -> Sequence[RunRecord]:
        values = {
            "owner": storable(owner),
            "lease": span(lease_seconds),
            "count": limit,
            **bound_now(self._database),
        }

        def unit(connection: Connection) -> list[RunRecord]:
            taken = [row.run_id for row in connection.execute(self._take, values).all()]
            rows = connection.execute(select(runs).where(runs.c.run_id.in_(taken))).all()
            return [_record(row) for row in rows]

        taken = await self._database.write(unit)
        return sorted(taken, key=lambda run: (run.created_at, run.run_id))

    async def delete(self, run_id: str) -> bool:
        gone = delete(runs).where(runs.c.run_id == run_id, runs.c.status.not_in(_ACTIVE))

        def unit(connection: Connection) -> bool:
            if connection.execute(gone).rowcount == 0:
                return False
            connection.execute(delete(events).where(events.c.run_id == run_id))
            return True

        return await self._database.write(unit)


def _has_active(connection: Connection, thread_id: str) -> bool:
    query = select(runs.c.run_id).where(runs.c.thread_id == thread_id, runs.c.status.in_(_ACTIVE)).limit(1)
    return connection.execute(query).first() is not None


def _same_key(connection: Connection, run: RunRecord) -> RunRecord | None:
    query = select(runs).where(
        runs.c.thread_id == run.thread_id, runs.c.idempotency_key == run.idempotency_key
    )
    row = connection.execute(query).first()
    return None if row is None else _record(row)


def _found(connection: Connection, run_id: str) -> RunRecord:
    return _record(connection.execute(select(runs).where(runs.c.run_id == run_id)).one())


def _values(run: RunRecord) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "user_id": run.user_id,
        "assistant_id": run.assistant_id,
        "status": str(run.status),
        "metadata": dict(run.metadata),
        "kwargs": dict(run.kwargs),
        "multitask_strategy": run.multitask_strategy,
        "idempotency_key": run.idempotency_key,
        "error": run.error,
        "owner": run.owner,
        "internal": run.internal,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    }


def _record(row: "Row[Any]") -> RunRecord:
    return RunRecord(
        run_id=row.run_id,
        thread_id=row.thread_id,
        user_id=row.user_id,
        assistant_id=row.assistant_id,
        status=RunStatus(row.status),
        metadata=row.metadata,
        kwargs=row.kwargs,
        multitask_strategy=row.multitask_strategy,
        idempotency_key=row.idempotency_key,
        error=row.error,
        owner=row.owner,
        internal=row.internal,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
