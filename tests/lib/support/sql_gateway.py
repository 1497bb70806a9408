"""A gateway on a real store with the real ``direct`` assistant; only tools and plugin host are stand-ins."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg

from moorage.clock import SystemClock
from moorage.contract import GatewayContext, GatewayTool, RunLauncher, Store
from moorage.runs.service import NamedAssistant, NamedValidator, RunService
from moorage.settings import RunSettings, Settings
from moorage.tasks.service import TaskService
from moorage_api.auth.keys import key_hash, new_key
from moorage_drivers.assistants.checkpoints import open_checkpoints
from moorage_drivers.assistants.direct import DirectAssistant
from moorage_drivers.sql.store import open_store
from support.administration import administration
from support.api_fakes import NoHost
from support.graph_tools import gateway_tool


class TwoTools:
    """A `ToolSource` with two LangChain tools, ``say`` and ``hang``."""

    async def tools(self, context: Any) -> Sequence[GatewayTool]:
        async def say(text: str) -> str:
            """Says it."""
            return f"said {text}"

        async def hang() -> str:
            """Never answers."""
            await asyncio.Event().wait()
            return ""

        return [gateway_tool(say), gateway_tool(hang)]

    async def servers(self, *, probe: bool = False) -> Sequence[Any]:
        return []

    async def reset(self) -> None:
        return None

    async def close_thread(self, user_id: str, thread_id: str) -> None:
        return None


class SqlGateway:
    """Opened and closed by the application like the real one."""

    def __init__(
        self,
        home: Path,
        url: str,
        validators: Sequence[NamedValidator] = (),
        *,
        replica: str = "replica-1",
        lease_seconds: float = 20.0,
    ) -> None:
        self.home, self.url, self.replica = home, url, replica
        runs = RunSettings(lease_seconds=lease_seconds)
        self.settings = Settings(home=home, database_url=url, runs=runs)
        self.host: Any = NoHost()
        self.tools = TwoTools()
        self.tasks_unavailable = None
        self._validators = validators
        config = home / "extensions_config.json"
        config.write_text('{"mcpServers": {}}')
        self.administration = administration(config, self.tools, self.host, lambda request: None)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["SqlGateway"]:
        clock = SystemClock()
        async with AsyncExitStack() as stack:
            self.store: Store = await stack.enter_async_context(open_store(self.url, clock, True))
            self.context = GatewayContext(
                home=self.home,
                replica_id=self.replica,
                database_url=self.url,
                clock=clock,
                extensions=None,  # type: ignore[arg-type]
                store=self.store,
            )
            await stack.enter_async_context(open_checkpoints(self.context))
            self.tasks = TaskService(
                repository=self.store.tasks,
                drivers={},
                settings=self.settings.tasks,
                clock=clock,
                owner=self.replica,
                wake=lambda: None,
            )
            direct = DirectAssistant(self.context)
            self.runs = RunService(
                store=self.store,
                assistants={"direct": NamedAssistant("direct", "Runs tool calls.", direct)},
                validators=self._validators,
                tools=self.tools,
                clock=clock,
                replica_id=self.replica,
                settings=self.settings,
            )
            self.context.provide(RunLauncher, self.runs)
            await stack.enter_async_context(self.runs.running())
            yield self

    async def issue(self, user_id: str, *roles: str) -> str:
        """A fresh key of that user."""
        key = new_key()
        await self.store.keys.create(
            name=f"{user_id}-{key[-6:]}", user_id=user_id, roles=frozenset(roles), key_hash=key_hash(key)
        )
        return key

    def dump(self, *, without: Sequence[str] = ("api_keys",)) -> dict[str, list[str]]:
        """Every row of every table, those of the checkpointer included, as text."""
        if self.url.startswith("postgresql"):
            return _dump_postgres(self.url, without)
        files = [Path(self.url.removeprefix("sqlite:///")), self.home / "checkpoints.sqlite"]
        return {table: rows for file in files for table, rows in _dump_sqlite(file, without).items()}

    def execute(self, statement: str, *parameters: Any) -> None:
        """Change the database behind the gateway's back. ``?`` marks parameters."""
        if self.url.startswith("postgresql"):
            with psycopg.connect(self.url) as connection:
                connection.execute(statement.replace("?", "%s"), parameters)
        else:
            with sqlite3.connect(self.url.removeprefix("sqlite:///")) as lite:
                lite.execute(statement, parameters)
            lite.close()


def _dump_sqlite(file: Path, without: Sequence[str]) -> dict[str, list[str]]:
    connection = sqlite3.connect(file)
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: sorted(repr(row) for row in connection.execute(f'SELECT * FROM "{name}"'))
            for name in names
            if name not in without
        }
    finally:
        connection.close()


def _dump_postgres(url: str, without: Sequence[str]) -> dict[str, list[str]]:
    with psycopg.connect(url) as connection:
        names = [
            str(row[0])
            for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        ]
        return {
            name: sorted(repr(row) for row in connection.execute(f'SELECT * FROM "{name}"'))
            for name in names
            if name not in without
        }


def main(home: str, port: str) -> None:
    """``python -m support.sql_gateway HOME PORT``: serve until killed, on SQLite, without authentication."""
    from moorage_api.app import create_app
    from moorage_api.server import GatewayServer, listen
    from moorage_api.settings import ApiSettings

    # What a killed process ran is taken over when its lease has lapsed; tests do not wait for long.
    gateway = SqlGateway(Path(home), f"sqlite:///{home}/moorage.db", lease_seconds=2.0)
    settings = ApiSettings(authentication=False)
    with listen("127.0.0.1", int(port)) as sock:
        print(sock.getsockname()[1], flush=True)
        app = create_app(gateway.open, settings)
        asyncio.run(GatewayServer(app, settings, lambda: print("ready", flush=True)).serve([sock]))


if __name__ == "__main__":
    main(*sys.argv[1:])
