"""Several replicas on one real database (issue 7; RUN-1, RUN-5)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from support.runs import ALICE, ScriptedAssistant, kill, request, run_service, until

from moorage.clock import SystemClock
from moorage.contract import RunContext, RunStatus, Store
from moorage.runs import ending, keeper, service
from moorage.runs.service import RunService

LEASE_SECONDS = 1.0


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (keeper, service):
        monkeypatch.setattr(module, "LEASE_SECONDS", LEASE_SECONDS)
    for module in (keeper, ending):
        monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(keeper, "TAKE_OVER_SECONDS", 0.1)


@pytest.fixture
async def replica(store: Store) -> AsyncIterator[Callable[..., Any]]:
    async with AsyncExitStack() as stack:

        async def start(name: str, assistant: ScriptedAssistant, *, running: bool = True) -> RunService:
            made = run_service(store, SystemClock(), {"echo": assistant}, replica=name)
            if running:
                await stack.enter_async_context(made.running())
            return made

        yield start


async def hang(_: RunContext) -> None:
    await asyncio.Event().wait()


async def test_what_a_killed_replica_leaves_is_resolved_once_by_the_others(
    store: Store, replica: Callable[..., Any]
) -> None:
    dead = await replica("dead", ScriptedAssistant(hang), running=False)
    for thread in ("begun", "queued", "secret"):
        await dead.threads.create(ALICE, thread_id=thread)
    begun = await dead.create(request("begun"))
    queued = await dead.create(request("queued", after_seconds=0.5, input=7))
    secret = await dead.create(request("secret", after_seconds=0.5, context={"secrets": {"k": "v" * 20}}))
    await until(lambda: dead._executor.get(begun.run_id).began)
    await kill(dead)

    assistant = ScriptedAssistant()
    survivors = [await replica(name, assistant) for name in ("a", "b", "c")]
    results = [await survivors[0].join(ALICE, run.thread_id, run.run_id) for run in (begun, queued, secret)]
    assert [result.run.status for result in results] == [
        RunStatus.ERROR,
        RunStatus.SUCCESS,
        RunStatus.ERROR,
    ]
    assert "never repeated" in (results[0].run.error or "")
    assert "secrets" in (results[2].run.error or "")
    assert len(assistant.runs) == 1
    for run in (begun, queued, secret):
        ends = await survivors[1].events(ALICE, run.thread_id, event_types=["run_end"])
        assert len(ends) == 1
    assert (await survivors[2].threads.get(ALICE, "begun")).status == "error"


async def test_a_live_replica_keeps_its_runs_beyond_its_lease(
    store: Store, replica: Callable[..., Any]
) -> None:
    go = asyncio.Event()

    async def wait(_: RunContext) -> None:
        await go.wait()

    busy = await replica("busy", ScriptedAssistant(wait))
    idle = await replica("idle", ScriptedAssistant())
    await busy.threads.create(ALICE, thread_id="t1")
    run = await busy.create(request())
    beats = 0
    heartbeat = store.runs.heartbeat

    async def counted(*args: Any) -> frozenset[str]:
        nonlocal beats
        beats += 1
        return await heartbeat(*args)

    vars(store.runs)["heartbeat"] = counted
    await until(lambda: beats * 0.1 > 2 * LEASE_SECONDS)
    assert (await idle.get(ALICE, "t1", run.run_id)).status is RunStatus.RUNNING
    go.set()
    assert (await idle.join(ALICE, "t1", run.run_id)).run.status is RunStatus.SUCCESS


@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
async def test_a_run_that_another_replica_executes_makes_room(
    replica: Callable[..., Any], strategy: str
) -> None:
    inside: set[str] = set()
    most = 0

    async def step(run: RunContext) -> None:
        nonlocal most
        inside.add(run.run_id)
        most = max(most, len(inside))
        try:
            if run.config["metadata"]["n"] == 1:
                await asyncio.Event().wait()
        finally:
            inside.discard(run.run_id)

    first, second = [await replica(name, ScriptedAssistant(step)) for name in ("first", "second")]
    await first.threads.create(ALICE, thread_id="t1")
    old = await first.create(request(config={"metadata": {"n": 1}}))
    await until(lambda: old.run_id in inside)
    new = await second.create(request(config={"metadata": {"n": 2}}, multitask_strategy=strategy))
    result = await first.join(ALICE, "t1", new.run_id)
    assert result.run.status is RunStatus.SUCCESS
    assert most == 1
    left = {run.run_id: run.status for run in await second.list(ALICE, "t1")}
    assert left.get(old.run_id) == (RunStatus.INTERRUPTED if strategy == "interrupt" else None)


async def test_enqueued_runs_of_two_replicas_take_turns(replica: Callable[..., Any]) -> None:
    inside: set[str] = set()
    most = 0

    async def step(run: RunContext) -> None:
        nonlocal most
        inside.add(run.run_id)
        most = max(most, len(inside))
        await asyncio.sleep(0)
        inside.discard(run.run_id)

    services = [await replica(name, ScriptedAssistant(step)) for name in ("first", "second")]
    await services[0].threads.create(ALICE, thread_id="t1")
    runs = await asyncio.gather(
        *(services[n % 2].create(request(multitask_strategy="enqueue")) for n in range(6))
    )
    results = await asyncio.gather(*(services[0].join(ALICE, "t1", run.run_id) for run in runs))
    assert {result.run.status for result in results} == {RunStatus.SUCCESS}
    assert most == 1
