"""What the interceptor chain adds to one tool call: ``uv run python -m benchmarks.interceptors``."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.contract import (
    Headers,
    InterceptorSpec,
    Next,
    Principal,
    ServerConfig,
    ToolCall,
    ToolResult,
)

ROUNDS = 5
CALLS = 3_000
OK = ToolResult()


def _chain(count: int) -> InterceptorChain:
    async def writes(call: ToolCall, follow: Next) -> ToolResult:
        return await follow(call.with_header("Authorization", "Bearer token-of-alice", source="benchmark"))

    return InterceptorChain(
        BuiltInterceptor(InterceptorSpec(f"i{n}", n, lambda _: writes), writes, "benchmark")
        for n in range(count)
    )


async def _at_once(call: ToolCall) -> ToolResult:
    return OK


async def _suspending(call: ToolCall) -> ToolResult:
    await asyncio.sleep(0)
    return OK


async def _microseconds(one: Callable[[], Awaitable[object]]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(CALLS):
            await one()
        best = min(best, time.perf_counter() - begun)
    return best / CALLS * 1e6


async def main() -> None:
    """Print one line a case, in microseconds a call."""
    call = ToolCall(
        server=ServerConfig(name="s", transport="http", url="http://127.0.0.1/mcp"),
        tool="t",
        arguments={"query": "text", "options": {"limit": 10, "fields": ["a", "b"]}},
        headers=Headers({"Authorization": "Bearer static", "X-Team": "blue"}),
        phase="call",
        principal=Principal("alice"),
        secrets={"token": "secret"},
    )
    for name, terminal in (("answers at once", _at_once), ("suspends once", _suspending)):
        bare = await _microseconds(lambda terminal=terminal: terminal(call))  # type: ignore[misc]
        print(f"inner call {name}: {bare:.1f} µs bare")
        for count in (0, 1, 3):
            chain = _chain(count)
            took = await _microseconds(
                lambda chain=chain, terminal=terminal: chain.run(call, terminal)  # type: ignore[misc]
            )
            print(f"  {count} interceptors: {took - bare:.1f} µs more")


if __name__ == "__main__":
    asyncio.run(main())
