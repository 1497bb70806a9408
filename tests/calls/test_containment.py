"""Interceptors that misbehave deny their call and nothing else (PLUG-7, C72)."""

import asyncio
import logging
import os
import subprocess
import sys
import types
from typing import Any

import pytest
from support.calls import OK, Server, built, chain, server_config, tool_call

from moorage.calls import deadline as deadline_module
from moorage.contract import (
    CredentialDenied,
    Interceptor,
    Next,
    PluginError,
    PluginTimeout,
    ServerUnavailable,
    ToolCall,
    ToolResult,
)

pytestmark = pytest.mark.req("PLUG-7")


async def passes(call: ToolCall, follow: Next) -> ToolResult:
    return await follow(call)


async def raises_with_secret(call: ToolCall, follow: Next) -> ToolResult:
    raise KeyError("s3cret-token-value")


async def returns_nothing(call: ToolCall, follow: Next) -> ToolResult:
    await follow(call)
    return None  # type: ignore[return-value]


async def returns_text(call: ToolCall, follow: Next) -> ToolResult:
    await follow(call)
    return "done"  # type: ignore[return-value]


def is_not_async(call: ToolCall, follow: Next) -> ToolResult:
    return OK


async def answers_itself(call: ToolCall, follow: Next) -> ToolResult:
    return OK


async def hangs(call: ToolCall, follow: Next) -> ToolResult:
    await asyncio.Event().wait()
    return OK


async def hangs_afterwards(call: ToolCall, follow: Next) -> ToolResult:
    result = await follow(call)
    await asyncio.Event().wait()
    return result


async def cancels_itself(call: ToolCall, follow: Next) -> ToolResult:
    raise asyncio.CancelledError


async def awaits_something_cancelled(call: ToolCall, follow: Next) -> ToolResult:
    cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    await cancelled
    return await follow(call)


async def hangs_and_hides_it(call: ToolCall, follow: Next) -> ToolResult:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return await follow(call)
    return OK


async def calls_twice(call: ToolCall, follow: Next) -> ToolResult:
    await follow(call)
    return await follow(call)


UNSENT: list[tuple[Interceptor, str]] = [
    (raises_with_secret, "raised KeyError"),
    (is_not_async, "answered without making the call"),  # type: ignore[list-item]
    (answers_itself, "answered without making the call"),
    (hangs, "took more than"),
    (cancels_itself, "was cancelled by itself"),
    (awaits_something_cancelled, "was cancelled by itself"),
]
SENT: list[tuple[Interceptor, str]] = [
    (returns_nothing, "returned None"),
    (returns_text, "returned a str"),
    (hangs_afterwards, "took more than"),
    (calls_twice, "made the call twice"),
]


@pytest.mark.parametrize(("interceptor", "says"), [*UNSENT, *SENT], ids=lambda p: getattr(p, "__name__", ""))
async def test_a_faulty_one_denies_its_call_with_the_plugins_name(
    interceptor: Interceptor, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    tested = chain(
        built(passes, precedence=1, plugin="first"),
        built(interceptor, section="faulty", timeout_seconds=0.05),
        built(passes, precedence=900, plugin="last"),
    )
    with caplog.at_level(logging.DEBUG), pytest.raises(PluginError, match="plugin 'culprit'") as caught:
        await tested.run(tool_call(server_config({"faulty": object()})), server)
    assert says in str(caught.value)
    unsent = any(interceptor is known for known, _ in UNSENT)
    assert bool(server.calls) is not unsent
    assert len(server.calls) <= 1
    assert caught.value.__dict__["sent"] is not unsent
    assert "s3cret" not in str(caught.value) + caplog.text
    assert caught.value.__cause__ is None
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert await tested.run(tool_call(), server) is OK  # the next call is clean


async def test_a_timeout_is_told_apart() -> None:
    with pytest.raises(PluginTimeout, match=r"took more than 0\.05 seconds"):
        await chain(built(hangs, timeout_seconds=0.05)).run(tool_call(), Server())


async def test_one_that_hides_its_timeout_is_denied_all_the_same() -> None:
    with pytest.raises(PluginTimeout):
        await chain(built(hangs_and_hides_it, timeout_seconds=0.05)).run(tool_call(), Server())


@pytest.mark.parametrize("by_caller", [False, True])
async def test_one_that_swallows_every_cancellation_is_given_up(
    by_caller: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline_module, "GRACE_SECONDS", 0.05)
    begun = asyncio.Event()

    async def stubborn(call: ToolCall, follow: Next) -> ToolResult:
        begun.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    tested = chain(built(stubborn, timeout_seconds=600 if by_caller else 0.05))
    task = asyncio.create_task(tested.run(tool_call(), Server()))
    await begun.wait()
    if by_caller:
        task.cancel()
    with pytest.raises(asyncio.CancelledError if by_caller else PluginTimeout):
        await asyncio.wait_for(task, 5)


async def test_the_deadline_does_not_count_the_inner_call() -> None:
    release = asyncio.Event()

    async def slow(call: ToolCall) -> ToolResult:
        await release.wait()
        return OK

    async def in_a_task(call: ToolCall, follow: Next) -> ToolResult:
        return await asyncio.create_task(follow(call))  # type: ignore[arg-type]

    for interceptor in (passes, in_a_task):
        release.clear()
        tested = chain(built(interceptor, timeout_seconds=0.02), built(passes, precedence=200))
        task = asyncio.create_task(tested.run(tool_call(), slow))
        await asyncio.wait({task}, timeout=0.1)
        assert not task.done()
        release.set()
        assert await task is OK


async def test_an_inner_timeout_costs_the_outer_one_nothing() -> None:
    async def recovers(call: ToolCall, follow: Next) -> ToolResult:
        with pytest.raises(PluginTimeout):
            await follow(call)
        await asyncio.sleep(0.05)
        return OK

    tested = chain(
        built(recovers, answers=True, timeout_seconds=5),
        built(hangs, precedence=200, plugin="inner", timeout_seconds=0.02),
    )
    assert await tested.run(tool_call(), Server()) is OK


async def test_declarations_permit_retrying_and_answering() -> None:
    server = Server()
    assert await chain(built(calls_twice, retries=True)).run(tool_call(), server) is OK
    assert len(server.calls) == 2
    assert await chain(built(answers_itself, answers=True)).run(tool_call(), server) is OK
    assert len(server.calls) == 2


async def test_an_answer_that_hides_a_failed_call_must_be_declared() -> None:
    async def hides(call: ToolCall, follow: Next) -> ToolResult:
        try:
            return await follow(call)
        except ServerUnavailable:
            return OK

    gone = ServerUnavailable("gone", server="s")
    with pytest.raises(PluginError, match="answered after the call had failed"):
        await chain(built(hides)).run(tool_call(), Server(gone))
    assert await chain(built(hides, answers=True)).run(tool_call(), Server(gone)) is OK


async def test_a_denial_passes_as_itself() -> None:
    denial = CredentialDenied("user_auth: no credential for this user")

    async def denies(call: ToolCall, follow: Next) -> ToolResult:
        raise denial

    server = Server()
    with pytest.raises(CredentialDenied) as caught:
        await chain(built(passes), built(denies, precedence=200)).run(tool_call(), server)
    assert caught.value is denial
    assert not server.calls


async def test_a_denial_after_the_call_was_made_is_a_fault() -> None:
    async def denies_too_late(call: ToolCall, follow: Next) -> ToolResult:
        await follow(call)
        raise CredentialDenied("too late")

    with pytest.raises(PluginError) as caught:
        await chain(built(denies_too_late)).run(tool_call(), Server())
    assert caught.value.__dict__["sent"] is True


@pytest.mark.parametrize("kind", [ServerUnavailable, ValueError, TimeoutError, asyncio.CancelledError])
async def test_errors_of_the_inner_call_pass_unchanged(kind: type[BaseException]) -> None:
    cause = OSError("cause")
    error = kind("gone", server="s") if kind is ServerUnavailable else kind("boom")
    error.__cause__ = cause
    server = Server(error)
    with pytest.raises(kind) as caught:
        await chain(built(passes), built(passes, precedence=200)).run(tool_call(), server)
    assert caught.value is error
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("where", ["own time", "inner call"])
async def test_the_callers_cancellation_passes_even_if_swallowed(where: str) -> None:
    begun = asyncio.Event()

    async def waits(call: ToolCall) -> ToolResult:
        begun.set()
        await asyncio.Event().wait()
        return OK

    async def swallows(call: ToolCall, follow: Next) -> ToolResult:
        try:
            if where == "inner call":
                return await follow(call)
            return await waits(call)
        except asyncio.CancelledError:
            return OK

    task = asyncio.create_task(chain(built(swallows, answers=True)).run(tool_call(), waits))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_callers_own_deadline_stays_a_deadline() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await chain(built(hangs), built(passes, precedence=1)).run(tool_call(), Server())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_call_after_the_end_is_refused_and_one_under_way_is_cancelled() -> None:
    kept: list[tuple[ToolCall, Next]] = []
    tasks: list[asyncio.Task[Any]] = []
    inside = asyncio.Event()

    async def leaks(call: ToolCall, follow: Next) -> ToolResult:
        kept.append((call, follow))
        tasks.append(asyncio.create_task(follow(call)))  # type: ignore[arg-type]
        await inside.wait()
        return OK

    async def waits(call: ToolCall) -> ToolResult:
        inside.set()
        await asyncio.Event().wait()
        return OK

    with pytest.raises(PluginError, match="returned before the call"):
        await chain(built(leaks)).run(tool_call(), waits)
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    call, follow = kept[0]
    with pytest.raises(PluginError, match="after it had returned"):
        await follow(call)


async def test_langgraphs_control_flow_passes_and_the_core_need_not_know_it() -> None:
    from langgraph.errors import GraphInterrupt, ParentCommand
    from langgraph.types import Command

    for raised in (GraphInterrupt(()), ParentCommand(Command(goto="x"))):

        async def interrupts(call: ToolCall, follow: Next, raised: BaseException = raised) -> ToolResult:
            raise raised

        with pytest.raises(type(raised)) as caught:
            await chain(built(interrupts)).run(tool_call(), Server())
        assert caught.value is raised


async def test_a_namesake_of_langgraphs_control_flow_is_an_error() -> None:
    module = types.ModuleType("elsewhere")
    kind = type("GraphBubbleUp", (Exception,), {"__module__": module.__name__})

    async def pretends(call: ToolCall, follow: Next) -> ToolResult:
        raise kind

    with pytest.raises(PluginError):
        await chain(built(pretends)).run(tool_call(), Server())


async def test_a_plugins_own_exit_denies_its_call() -> None:
    async def exits(call: ToolCall, follow: Next) -> ToolResult:
        sys.exit(3)

    tested = chain(built(exits))
    with pytest.raises(PluginError, match=r"plugin 'culprit'.*raised SystemExit \(test_containment"):
        await tested.run(tool_call(), Server())


def test_an_interrupt_of_the_process_passes() -> None:
    async def interrupted(call: ToolCall, follow: Next) -> ToolResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(chain(built(interrupted)).run(tool_call(), Server()))


EXITED_BY_A_SIGNAL = """
import asyncio, signal, sys
from support.calls import Server, built, chain, tool_call

async def busy(call, follow):
    print("inside", flush=True)
    while True:
        pass

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
asyncio.run(chain(built(busy, timeout_seconds=60)).run(tool_call(), Server()))
"""


def test_the_exit_of_a_signal_handler_that_interrupts_a_plugin_passes() -> None:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    with subprocess.Popen(
        [sys.executable, "-c", EXITED_BY_A_SIGNAL],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        process.terminate()
        assert process.wait(20) == 7


def test_the_core_imports_no_agent_library() -> None:
    code = (
        "import sys, moorage.calls.chain, moorage.calls.redact;"
        "print([m for m in sys.modules if m.partition('.')[0] in ('langgraph', 'mcp', 'httpx')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
