"""Polls of remote tasks by the ordinary driver: ``uv run python -m benchmarks.remote_polls``."""

import asyncio
from dataclasses import replace

from benchmarks.mcp_parts import WHO, drivers, http_server, rate, remote_server, stdio_server
from moorage.contract import ServerConfig, TaskBinding, TaskRef
from moorage_drivers.ordinary.driver import OrdinaryDriver

BINDING = TaskBinding(
    "ordinary", "job", {"submit_tool": "echo", "status_tool": "job_status", "cancel_tool": "job_status"}
)


async def _polls(server: ServerConfig) -> None:
    async with drivers(server) as context:
        driver = OrdinaryDriver(context)
        ref = TaskRef("local", server.name, BINDING, "remote", replace(WHO, background=True))
        for callers in (1, 8, 64):
            polls = await rate(lambda: driver.get_status(ref), callers=callers)
            print(f"  {callers:>3} at once{polls:>12,.0f} polls/s")


async def main() -> None:
    """Print polls a second by transport and concurrency."""
    print("stdio")
    await _polls(stdio_server("s"))
    for flags in ((), ("--json",), ("--stateless", "--json")):
        print(f"streamable HTTP, {' '.join(flags).replace('--', '') or 'stateful, SSE'}")
        with http_server(*flags) as url:
            await _polls(remote_server("s", url))


if __name__ == "__main__":
    asyncio.run(main())
