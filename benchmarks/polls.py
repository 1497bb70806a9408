"""How fast tasks are created, claimed, polled and written back, on SQLite and PostgreSQL.

    uv run python -m benchmarks.polls             a few minutes
    uv run python -m benchmarks.polls --full      60 s of steady state each, tables of up to 1,000,000 rows

The driver costs nothing, so what is measured is the runtime and its database. Every figure comes from one
run on one machine; the last line of each database is a bare loop over the same rows through the database
driver alone, which is the limit.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from moorage.clock import SystemClock
from moorage.contract import (
    CallContext,
    Principal,
    Store,
    SubmitCall,
    TaskBinding,
    TaskHandle,
    TaskOutcome,
    TaskRef,
    TaskSnapshot,
    TaskStatus,
    TaskUpdate,
)
from moorage.settings import TaskSettings
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.scheduler import Scheduler
from moorage.tasks.service import TaskService
from moorage_drivers.sql.migrate import upgrade
from moorage_drivers.sql.store import open_store
from moorage_drivers.sql.urls import parse_url

ACTIVE = 1_000
BATCH = 256
SUBMITTERS = 32
LEASE_SECONDS = 120.0
WARM_UP_SECONDS = 2.0
WORKING = TaskOutcome(status=TaskStatus.WORKING)
BINDING = {"server": "bench", "status_tool": "count_status", "cancel_tool": "count_cancel"}


@dataclass(frozen=True)
class Plan:
    seconds: float
    """Of steady state, each."""
    rows: tuple[int, ...]
    scattered: int
    creates: int
    memory: tuple[int, int]


SHORT = Plan(seconds=6, rows=(1_000, 100_000), scattered=100_000, creates=3_000, memory=(1_000, 20_000))
FULL = Plan(
    seconds=60,
    rows=(1_000, 100_000, 1_000_000),
    scattered=1_000_000,
    creates=20_000,
    memory=(1_000, 100_000),
)


class FreeDriver:
    """Answers at once that the work goes on."""

    def __init__(self) -> None:
        self.polls = 0

    def claim(self, server: Any, tool_names: Any) -> Any:
        raise NotImplementedError

    async def submit(self, call: SubmitCall) -> TaskHandle:
        return TaskHandle(f"remote-{call.task_id}")

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        self.polls += 1
        return TaskSnapshot(status=TaskStatus.WORKING, poll_after_seconds=0.001)

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        return TaskSnapshot(status=TaskStatus.CANCELLED)


# --- tables


def seed(url: str, rows: int, *, active: int = ACTIVE, scattered: bool = False) -> None:
    """Fill an empty database: ``active`` tasks that are due, the newest or evenly spread, the rest ended."""
    where = parse_url(url)
    number = "value" if where.sqlite else "n"
    series = (
        f"WITH RECURSIVE s(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < {rows})"
        if where.sqlite
        else ""
    )
    source = "s" if where.sqlite else f"generate_series(1, {rows}) AS n"
    is_active = f"({number} % {max(rows // active, 1)} = 0)" if scattered else f"({number} > {rows - active})"
    name = f"printf('%012d', {number})" if where.sqlite else f"lpad(CAST({number} AS TEXT), 12, '0')"
    now = int(time.time() * 1_000_000)
    created = f"{now - rows * 1_000} + {number} * 1000"
    columns = {
        "task_id": name,
        "task_name": "'count'",
        "user_id": f"'user-' || ({number} % 100)",
        "thread_id": f"'thread-' || ({number} % 1000)",
        "run_id": "'run'",
        "assistant_id": "'direct'",
        "server_name": "'bench'",
        "driver": "'free'",
        "binding": f"'{json.dumps(BINDING)}'",
        "remote_id": f"'remote-' || {name}",
        "status": f"CASE WHEN {is_active} THEN 'working' ELSE 'completed' END",
        "created_at": created,
        "updated_at": created,
        "finished_at": f"CASE WHEN {is_active} THEN NULL ELSE {created} END",
        "due_at": f"CASE WHEN {is_active} THEN {created} END",
        "next_poll_at": f"CASE WHEN {is_active} THEN {created} END",
        "result": f"CASE WHEN {is_active} THEN NULL ELSE '{json.dumps({'text': 'x' * 200})}' END",
        "event_version": f"CASE WHEN {is_active} THEN 0 ELSE 1 END",
        "notification_status": f"CASE WHEN {is_active} THEN 'none' ELSE 'delivered' END",
    }
    values = ", ".join(columns.values())
    insert = f"INSERT INTO tasks ({', '.join(columns)}) {series} SELECT {values} FROM {source}"
    engine = create_engine(where.url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text(insert.replace(":", "\\:")))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE" if where.sqlite else "VACUUM ANALYZE tasks"))
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)" if where.sqlite else "CHECKPOINT"))
    engine.dispose()


# --- measurements


async def claim_and_apply(store: Store, seconds: float) -> float:
    """Microseconds of one row's claim and apply, in batches, through the repository."""
    took = 0.0
    rows = 0
    ends = time.perf_counter() + WARM_UP_SECONDS
    warm = False
    while time.perf_counter() < ends or not warm:
        if not warm and time.perf_counter() >= ends:
            warm, took, rows, ends = True, 0.0, 0, time.perf_counter() + seconds
        began = time.perf_counter()
        claims = await store.tasks.claim("bench", limit=BATCH, lease_seconds=LEASE_SECONDS)
        now = datetime.now(UTC)
        updates = [
            TaskUpdate(
                task_id=claim.task.task_id,
                token=claim.token,
                outcome=WORKING,
                next_poll_at=now,
                polled_at=now,
                poll_error_count=0,
            )
            for claim in claims
        ]
        landed = await store.tasks.apply(updates)
        if len(landed) != len(claims):
            raise SystemExit(f"{len(claims) - len(landed)} of {len(claims)} updates did not land")
        took += time.perf_counter() - began
        rows += len(landed)
    return took / rows * 1e6


async def worker(store: Store, seconds: float) -> float:
    """Polls a second of one scheduler with the free driver."""
    driver = FreeDriver()
    scheduler = Scheduler(
        repository=store.tasks,
        drivers={"free": NamedDriver("free", "benchmark", driver)},
        settings=TaskSettings(lease_seconds=LEASE_SECONDS),
        clock=SystemClock(),
        owner="bench",
    )
    running = asyncio.create_task(scheduler.run())
    await asyncio.sleep(WARM_UP_SECONDS)
    before, began = driver.polls, time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (driver.polls - before) / (time.perf_counter() - began)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return rate


async def creates(store: Store, count: int) -> float:
    """Submissions a second (intent, driver, handle) by concurrent callers."""
    service = TaskService(
        repository=store.tasks,
        drivers={"free": NamedDriver("free", "benchmark", FreeDriver())},
        settings=TaskSettings(),
        clock=SystemClock(),
        owner="bench",
        wake=lambda: None,
    )
    binding = TaskBinding("free", "count", BINDING)
    context = CallContext(Principal("user"), thread_id="thread", run_id="run", assistant_id="direct")

    async def submit(times: int) -> None:
        for _ in range(times):
            await service.submit(server="bench", binding=binding, arguments={}, context=context)

    began = time.perf_counter()
    await asyncio.gather(*(submit(count // SUBMITTERS) for _ in range(SUBMITTERS)))
    rate = (count // SUBMITTERS) * SUBMITTERS / (time.perf_counter() - began)
    await service.aclose()
    return rate


def bare_loop(url: str, seconds: float) -> float:
    """Rows a second that the database driver alone reads as due and writes back, in the same batches."""
    where = parse_url(url)
    mark = "?" if where.sqlite else "%s"
    columns = "task_id, driver, binding, remote_id"
    read = f"SELECT {columns} FROM tasks WHERE due_at <= {mark} ORDER BY due_at LIMIT {BATCH}"
    changed = ", ".join(f"{name} = {mark}" for name in ("due_at", "next_poll_at", "last_polled_at"))
    write = f"UPDATE tasks SET {changed} WHERE task_id = {mark}"
    engine = create_engine(where.url, poolclass=NullPool)
    connection: Any = engine.raw_connection()
    cursor = connection.cursor()
    done, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < began + seconds:
        moment = int(time.time() * 1_000_000)
        cursor.execute(read, (moment,))
        due = cursor.fetchall()
        cursor.executemany(write, [(moment, moment, moment, row[0]) for row in due])
        connection.commit()
        done += len(due)
    rate = done / (now - began)
    connection.close()
    engine.dispose()
    return rate


def memory_mebibytes(url: str, seconds: float) -> float:
    """The peak of a process of its own that polls what is in the database."""
    command = [sys.executable, "-m", "benchmarks.polls", "--worker", url, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 120)
    return float(done.stdout)


# --- the run


@contextmanager
def sqlite_databases() -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as folder:

        @contextmanager
        def fresh() -> Iterator[str]:
            path = Path(folder) / "bench.db"
            upgrade(f"sqlite:///{path}")
            yield f"sqlite:///{path}"
            for file in Path(folder).iterdir():
                file.unlink()

        yield fresh


@contextmanager
def postgres_databases() -> Iterator[Any]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "lib"))
    from support.postgres import postgres_server

    with postgres_server(careless=False) as server:

        @contextmanager
        def fresh() -> Iterator[str]:
            url = server.create()
            yield url
            server.drop(url)

        yield fresh


def measured(url: str, measure: Any, *arguments: Any) -> float:
    async def opened() -> float:
        async with open_store(url, SystemClock(), False) as store:
            return float(await measure(store, *arguments))

    gc.collect()
    return asyncio.run(opened())


def run_on(name: str, databases: Any, plan: Plan, say: Any) -> dict[str, Any]:
    figures: dict[str, Any] = {"database": name}
    with databases() as fresh:
        with fresh() as url:
            figures["creates_per_second"] = measured(url, creates, plan.creates)
            say(f"{name}: create/s, {SUBMITTERS} submitters: {figures['creates_per_second']:,.0f}")
        times: dict[str, float] = {}
        for rows, scattered in [*((rows, False) for rows in plan.rows), (plan.scattered, True)]:
            with fresh() as url:
                seed(url, rows, scattered=scattered)
                label = f"{rows:,} rows, the active {'scattered' if scattered else 'newest'}"
                times[label] = measured(url, claim_and_apply, plan.seconds)
                took, factor = times[label], times[label] / next(iter(times.values()))
                rate = f"{took:.1f} us a row ({1e6 / took:,.0f} rows/s, {factor:.2f} times)"
                say(f"{name}: claim and apply, {label}: {rate}")
                if rows == plan.rows[0] and not scattered:
                    figures["polls_per_second"] = measured(url, worker, plan.seconds)
                    say(f"{name}: polls/s of one worker: {figures['polls_per_second']:,.0f}")
                    figures["bare_rows_per_second"] = bare_loop(url, min(plan.seconds, 10))
                    say(f"{name}: bare loop of the driver, rows/s: {figures['bare_rows_per_second']:,.0f}")
        figures["claim_and_apply_us"] = times
        peaks = []
        for active in plan.memory:
            with fresh() as url:
                seed(url, active, active=active)
                peaks.append(memory_mebibytes(url, min(plan.seconds, 20)))
        figures["peak_mebibytes"] = dict(zip(plan.memory, peaks, strict=True))
        say(
            f"{name}: peak memory of a worker with {plan.memory[0]:,} and {plan.memory[1]:,} active tasks: "
            f"{peaks[0]:.0f} and {peaks[1]:.0f} MiB ({peaks[1] / peaks[0]:.2f} times)"
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Polls a second, creations a second, claim and apply.")
    parser.add_argument("--full", action="store_true", help="60 s of steady state, up to 1,000,000 rows")
    parser.add_argument("--only", choices=["sqlite", "postgresql"], help="one database only")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON at the end")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        measured(options.worker[0], worker, float(options.worker[1]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    plan = FULL if options.full else SHORT

    def say(line: str) -> None:
        print(line, file=sys.stderr if options.json else sys.stdout, flush=True)

    say(
        f"batch {BATCH}; {ACTIVE:,} active rows; {plan.seconds:g} s of steady state each after "
        f"{WARM_UP_SECONDS:g} s; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"Python {sys.version.split()[0]}; fsync on"
    )
    databases = {"sqlite": sqlite_databases, "postgresql": postgres_databases}
    figures = [
        run_on(name, make, plan, say) for name, make in databases.items() if options.only in (None, name)
    ]
    if options.json:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
