"""What plugins cost: ``uv run python -m benchmarks.plugin_host [--runs N]``.

Start-up of ``moorage plugins`` with 1, 50 and 300 further plugin distributions (a package with a dist-info
folder each, one hook that contributes one section), interleaved in one run; then what the host and its
containment add to one call that is dispatched to a plugin's object. Goal: 50 plugins add under 150 ms.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.contract import (
    AuthRequest,
    Headers,
    InterceptorSpec,
    Next,
    Principal,
    ServerConfig,
    ToolCall,
    ToolResult,
)
from moorage.runs.admission import Admission, NamedValidator
from moorage_api.auth.authentication import NamedAuthenticator

COUNTS = (0, 1, 50, 300)
GOAL_COUNT, GOAL_MS = 50, 150.0
CALLS = 20_000
OK = ToolResult()
WHO = Principal("somebody")

PLUGIN = """from moorage.contract import ConfigSection, hookimpl

MOORAGE_API = ">=0.1"


def _model():
    from pydantic import BaseModel

    return BaseModel


@hookimpl
def moorage_config_sections():
    return (ConfigSection("section_{number}", _model),)
"""


def install(folder: Path, count: int) -> None:
    """Plugin distributions as an installer leaves them, compiled."""
    folder.mkdir()
    for number in range(count):
        package = folder / f"bench_plugin_{number}"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "plugin.py").write_text(PLUGIN.format(number=number))
        info = folder / f"bench_plugin_{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bench-plugin-{number}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[moorage.plugins]\nbench_{number} = bench_plugin_{number}.plugin\n"
        )
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder)], check=True)


def start(folder: Path, expected: int | None = None) -> float:
    """Milliseconds of one ``moorage plugins``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "moorage", "plugins"],
        cwd=folder.parent,
        env={**environment, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    taken = (time.perf_counter() - started) * 1000
    if expected is not None and done.stdout.count("bench-plugin-") != expected:
        raise RuntimeError(f"not all of the {expected} plugins were loaded:\n{done.stdout[-2000:]}")
    return taken


def start_ups(runs: int) -> None:
    """Print the medians, and what each count adds."""
    taken: dict[int, list[float]] = {count: [] for count in COUNTS}
    with tempfile.TemporaryDirectory() as place:
        folders = {count: Path(place) / f"with_{count}" for count in COUNTS}
        for count, folder in folders.items():
            install(folder, count)
            start(folder, count)  # warms the caches
        for _ in range(runs):
            for count, folder in folders.items():
                taken[count].append(start(folder))
    bare = statistics.median(taken[0])
    print(f"{'further plugins':>16} {'median ms':>10} {'adds ms':>9} {'ms each':>8} {'times none':>11}")
    for count, times in taken.items():
        median = statistics.median(times)
        each = f"{(median - bare) / count:8.2f}" if count else f"{'':8}"
        print(f"{count:16} {median:10.0f} {median - bare:9.0f} {each} {median / bare:11.2f}")
    added = statistics.median(taken[GOAL_COUNT]) - bare
    verdict = "met" if added < GOAL_MS else "missed"
    print(f"goal: {GOAL_COUNT} plugins add under {GOAL_MS:g} ms: {added:.0f} ms, {verdict}\n")


async def _each(call: Callable[[], Awaitable[object]]) -> float:
    """Microseconds of one call, the least of five batches."""
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(CALLS // 5):
            await call()
        best = min(best, (time.perf_counter() - started) / (CALLS // 5))
    return best * 1_000_000


async def passes(call: ToolCall, follow: Next) -> ToolResult:
    """An interceptor that does nothing."""
    return await follow(call)


async def answers(call: ToolCall) -> ToolResult:
    """The far end of the chain."""
    return OK


class Nothing:
    """A run validator and authenticator that has no objection."""

    async def validate(self, request: object) -> None:
        """Lets it pass."""

    async def authenticate(self, request: AuthRequest) -> Principal:
        """Knows everybody."""
        return WHO


async def dispatched() -> None:
    """Print the cost of one contained call beside the bare one."""
    nothing = Nothing()
    call = ToolCall(ServerConfig("s", "http"), "t", {}, Headers(), "call", WHO)
    spec = InterceptorSpec("passes", 1, lambda context: passes)
    chain = InterceptorChain([BuiltInterceptor(spec, passes, "bench")])
    request = AuthRequest({})
    named = NamedAuthenticator("bench", nothing)
    pairs: dict[str, tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]] = {
        "interceptor": (lambda: passes(call, answers), lambda: chain.run(call, answers)),
        "authenticator": (lambda: nothing.authenticate(request), lambda: named.ask(request)),
    }
    print(f"{'one call of an':>16} {'bare µs':>9} {'contained µs':>13} {'adds µs':>9}   ({CALLS:,} calls)")
    for kind, (bare, contained) in pairs.items():
        plain, whole = await _each(bare), await _each(contained)
        print(f"{kind:>16} {plain:9.2f} {whole:13.2f} {whole - plain:9.2f}")
    await _admission(nothing)


async def _admission(nothing: Nothing) -> None:
    from moorage.contract import RunRequest

    request = RunRequest("thread", "assistant", WHO)
    without = Admission([])
    with_one = Admission([NamedValidator("nothing", "bench", nothing)])
    plain = await _each(lambda: without.admit(request))
    whole = await _each(lambda: with_one.admit(request))
    print(
        f"{'run validator':>16} {plain:9.2f} {whole:13.2f} {whole - plain:9.2f}   (bare: admission with none)"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    start_ups(parser.parse_args().runs)
    asyncio.run(dispatched())


if __name__ == "__main__":
    main()
