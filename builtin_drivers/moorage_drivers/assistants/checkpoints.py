"""LangGraph's own checkpointers, opened for the gateway's life and beside its database."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from moorage.contract import ConfigError, GatewayContext

FILE_NAME = "checkpoints.sqlite"
BUSY_TIMEOUT_SECONDS = 30.0
MAX_CONNECTIONS = 8
_MIGRATION_LOCK = 0x6D6F6F72616765  # any number that nobody else locks


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The open checkpointer; a service of the gateway for assistants that are LangGraph graphs."""

    saver: BaseCheckpointSaver[str]


def discreet(saver: BaseCheckpointSaver[str], redact: Callable[[str], str]) -> BaseCheckpointSaver[str]:
    """The same checkpointer for one run: LangGraph stores the exception that ended a step, and its text may
    quote the run's secrets (RUN-1)."""
    clone = copy.copy(saver)

    async def aput_writes(
        config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        told = [(c, redact(repr(v)) if isinstance(v, BaseException) else v) for c, v in writes]
        await saver.aput_writes(config, told, task_id, task_path)

    vars(clone)["aput_writes"] = aput_writes
    return clone


@asynccontextmanager
async def open_checkpoints(context: GatewayContext) -> AsyncIterator[None]:
    """Open the checkpointer that goes with the database URL, and offer it as `Checkpoints`.

    SQLite: ``checkpoints.sqlite`` under the home. PostgreSQL: tables of LangGraph's in the same database.
    Memory: gone at the end.
    """
    scheme, _, rest = context.database_url.partition("://")
    kind = scheme.partition("+")[0]
    if kind == "sqlite" and ":memory:" not in rest:
        opened = _sqlite(context.home / FILE_NAME)
    elif kind in ("postgresql", "postgres"):
        opened = _postgresql(f"postgresql://{rest}")
    elif kind in ("sqlite", "memory"):
        opened = _memory()
    else:
        raise ConfigError(f"there is no checkpointer for database URLs of scheme {kind!r}")
    async with opened as saver:
        context.provide(Checkpoints, Checkpoints(saver))
        yield


@asynccontextmanager
async def _memory() -> AsyncIterator[BaseCheckpointSaver[str]]:
    yield InMemorySaver()


@asynccontextmanager
async def _sqlite(path: Path) -> AsyncIterator[BaseCheckpointSaver[str]]:
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    path.parent.mkdir(parents=True, exist_ok=True)
    async with aiosqlite.connect(path, timeout=BUSY_TIMEOUT_SECONDS) as connection:
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
        yield saver


@asynccontextmanager
async def _postgresql(url: str) -> AsyncIterator[BaseCheckpointSaver[str]]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg import AsyncConnection
    from psycopg.rows import DictRow, dict_row
    from psycopg_pool import AsyncConnectionPool

    pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
        url,
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
        min_size=1,
        max_size=MAX_CONNECTIONS,
        open=False,
    )
    async with pool:
        saver = AsyncPostgresSaver(pool)
        async with pool.connection() as guard:
            # Asked for again and again instead of waited for: a statement that waits holds a snapshot, and
            # the migrations build indexes concurrently, which waits for every snapshot in turn.
            while True:
                cursor = await guard.execute("SELECT pg_try_advisory_lock(%s) AS mine", (_MIGRATION_LOCK,))
                row = await cursor.fetchone()
                if row is not None and row["mine"]:
                    break
                await asyncio.sleep(0.1)
            try:
                await saver.setup()
            finally:
                await guard.execute("SELECT pg_advisory_unlock(%s)", (_MIGRATION_LOCK,))
        yield saver
