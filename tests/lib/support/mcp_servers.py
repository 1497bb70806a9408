"""Real MCP server processes for tests, and a gateway context that knows them."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from moorage.contract import (
    CallContext,
    ExtensionsSnapshot,
    GatewayContext,
    GatewayTool,
    Principal,
    ServerConfig,
    TaskDriver,
    TaskDriverRegistry,
)
from moorage_drivers.mcp.catalogue import McpCatalogue
from moorage_drivers.mcp.plugin import moorage_lifecycle, moorage_tool_sources

SERVERS = Path(__file__).parent / "servers"


class RealClock:
    """Time as it is."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Extensions:
    """An extensions source that a test changes at will."""

    def __init__(self, *servers: ServerConfig) -> None:
        self.set(*servers)

    def set(self, *servers: ServerConfig) -> None:
        self._snapshot = ExtensionsSnapshot(servers={server.name: server for server in servers})

    def current(self) -> ExtensionsSnapshot:
        return self._snapshot


class Drivers(TaskDriverRegistry):
    """A `TaskDriverRegistry`."""

    def __init__(self, **drivers: TaskDriver) -> None:
        self._drivers = drivers

    def drivers(self) -> Mapping[str, TaskDriver]:
        return self._drivers


def stdio(name: str, script: str = "good", *args: str, **fields: Any) -> ServerConfig:
    """A server of ours over stdio."""
    command = [sys.executable, str(SERVERS / f"{script}.py"), *args]
    return ServerConfig(
        name=name,
        transport="stdio",
        command=command[0],
        args=tuple(command[1:]),
        **{"launch_signature": " ".join(command), "session_init_timeout_seconds": 30.0, **fields},
    )


def remote(name: str, url: str, **fields: Any) -> ServerConfig:
    """A server over HTTP (or SSE, where ``transport`` says so)."""
    return ServerConfig(
        **{"name": name, "transport": "http", "url": url, "launch_signature": url}
        | {"session_init_timeout_seconds": 30.0}
        | fields
    )


@contextmanager
def http_server(script: str = "good", *args: str) -> Iterator[str]:
    """Run one of our HTTP servers; yields its URL."""
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / f"{script}.py"), *args], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url, "the server did not start"
        yield url
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def context(user: str = "alice", thread: str | None = "t1", **fields: Any) -> CallContext:
    """Somebody's call."""
    return CallContext(Principal(user), thread_id=thread, run_id="run-1", **fields)


class Gateway:
    """As much of a gateway as the MCP drivers need."""

    def __init__(
        self,
        home: Path,
        *servers: ServerConfig,
        settings: Mapping[str, Any] | None = None,
        store: Any = None,
    ) -> None:
        self.extensions = Extensions(*servers)
        self.context = GatewayContext(
            home=home,
            replica_id="test",
            database_url="sqlite://",
            clock=RealClock(),
            extensions=self.extensions,
            settings=settings or {},
            store=store,
        )

    @property
    def catalogue(self) -> McpCatalogue:
        return self.context.service(McpCatalogue)

    async def tools(self) -> dict[str, GatewayTool]:
        return {tool.name: tool for tool in await self.catalogue.tools(context())}


@asynccontextmanager
async def gateway(
    home: Path,
    *servers: ServerConfig,
    drivers: Callable[[GatewayContext], Mapping[str, TaskDriver]] | None = None,
    settings: Mapping[str, Any] | None = None,
    store: Any = None,
) -> AsyncIterator[Gateway]:
    """Opened as the host would open it; on exit no process and no task of it may be left."""
    asyncio.get_running_loop().set_debug(True)
    tasks: set[asyncio.Task[Any] | None] = {*asyncio.all_tasks()}
    made = Gateway(home, *servers, settings=settings, store=store)
    if drivers is not None:
        made.context.provide(TaskDriverRegistry, Drivers(**drivers(made.context)))
    for source in moorage_tool_sources():
        source.build(made.context)
    before = descendants()
    (lifecycle,) = moorage_lifecycle()
    async with lifecycle.open(made.context):
        yield made
    await until(lambda: not (descendants() - before), "all server processes are gone")
    tasks |= {asyncio.current_task()}  # a fixture ends in another task than it began in
    await until(lambda: all(task.done() for task in asyncio.all_tasks() - tasks), "no task is left", 2.0)


def descendants() -> set[int]:
    """Processes below this one, those that were orphaned excepted."""
    return {child.pid for child in psutil.Process().children(recursive=True)}


def group_members(group: int) -> set[int]:
    """Living processes of a process group."""
    members = set()
    for process in psutil.process_iter(["pid", "status"]):
        try:
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                members.add(process.pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return members


async def until(condition: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    """Wait for a condition; fails by name when the time is up."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds} seconds: {what}"
        await asyncio.sleep(0.02)
