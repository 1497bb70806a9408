"""What the MCP benchmarks share: a server, and the drivers without a gateway around them."""

import argparse
import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from moorage.clock import SystemClock
from moorage.contract import CallContext, ExtensionsSnapshot, GatewayContext, Principal, ServerConfig
from moorage_drivers.mcp.plugin import moorage_lifecycle, moorage_tool_sources

SERVER = [sys.executable, "-m", "benchmarks.mcp_parts"]
WHO = CallContext(Principal("alice"), thread_id="t1", run_id="r1")


class _Fixed:
    def __init__(self, servers: tuple[ServerConfig, ...]) -> None:
        self._snapshot = ExtensionsSnapshot(servers={server.name: server for server in servers})

    def current(self) -> ExtensionsSnapshot:
        return self._snapshot


@asynccontextmanager
async def drivers(*servers: ServerConfig) -> AsyncIterator[GatewayContext]:
    """The MCP drivers, open."""
    with tempfile.TemporaryDirectory() as home:
        context = GatewayContext(
            home=Path(home),
            replica_id="benchmark",
            database_url="",
            clock=SystemClock(),
            extensions=_Fixed(servers),
        )
        for source in moorage_tool_sources():
            source.build(context)
        (lifecycle,) = moorage_lifecycle()
        async with lifecycle.open(context):
            yield context


@contextmanager
def http_server(*flags: str) -> Iterator[str]:
    """Run the server below over HTTP; yields its URL."""
    with subprocess.Popen([*SERVER, "--http", *flags], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def stdio_server(name: str) -> ServerConfig:
    """The same server over stdio."""
    return ServerConfig(
        name=name,
        transport="stdio",
        command=SERVER[0],
        args=tuple(SERVER[1:]),
        cwd=str(Path.cwd()),
        launch_signature="1",
    )


def remote_server(name: str, url: str) -> ServerConfig:
    return ServerConfig(name=name, transport="http", url=url, launch_signature=url)


async def rate(one: Callable[[], Awaitable[Any]], *, seconds: float = 3.0, callers: int = 1) -> float:
    """Calls a second, by so many callers at once, after a warm-up."""
    await one()
    done = 0
    deadline = time.perf_counter() + seconds

    async def calling() -> None:
        nonlocal done
        while time.perf_counter() < deadline:
            await one()
            done += 1

    begun = time.perf_counter()
    await asyncio.gather(*(calling() for _ in range(callers)))
    return done / (time.perf_counter() - begun)


def main() -> None:
    """The server: an echo tool and the three tools of an endless job."""
    from mcp.server.fastmcp import FastMCP

    parser = argparse.ArgumentParser()
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    server = FastMCP(
        "bench", stateless_http=options.stateless, json_response=options.json, log_level="WARNING"
    )

    @server.tool()
    def echo(text: str) -> dict[str, str]:
        """Say it back."""
        return {"text": text}

    @server.tool()
    def job_status(task_id: str) -> dict[str, str]:
        """A job that never ends."""
        return {"task_id": task_id, "status": "running"}

    if not options.http:
        server.run("stdio")
        return
    import uvicorn

    # The protocol is named, since asyncio switches Nagle off only then.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="warning", lifespan="on")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
