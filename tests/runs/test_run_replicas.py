"""Several replicas on one real database (issue 7; RUN-1, RUN-5)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from support.runs import ALICE, ScriptedAssistant, kill, request, run_service, until

from moorage.clock import SystemClock
from moorage.contract import NotFound, RunContext, RunRecord, RunStatus, Store
from moorage.runs import relay, remote
from moorage.runs.feeds import StreamItem
from moorage.runs.service import RunService

LEASE_SECONDS = 1.0


@pytest.fixture
async def replica(store: Store) -> AsyncIterator[Callable[..., Any]]:
    async with AsyncExitStack() as stack:

        async def start(name: str, assistant: ScriptedAssistant, *, running: bool = True) -> RunService:
            made = run_service(
                store, SystemClock(), {"echo": assistant}, replica=name, lease_seconds=LEASE_SECONDS
            )
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


async def streamed(service: RunService, run: RunRecord, last: str | None = None) -> list[StreamItem]:
    return [item async for item in service.stream(ALICE, run.thread_id, run.run_id, last_event_id=last)]


def copied(store: Store, run: RunRecord) -> Callable[[], Any]:
    """Whether somebody has asked for the run's stream and something of it is there."""

    async def asked() -> bool:
        token = (await store.streams.asked()).get(run.run_id) if store.streams else None
        return bool(token and store.streams and await store.streams.list(token, after=0, limit=1))

    return asked


@pytest.mark.req("RUN-5", "RUN-8", "TASK-19")
async def test_a_stream_is_the_same_at_every_replica_and_live(
    store: Store, replica: Callable[..., Any]
) -> None:
    go = asyncio.Event()

    async def wait(_: RunContext) -> None:
        await go.wait()

    here = await replica("here", ScriptedAssistant(wait))
    there = await replica("there", ScriptedAssistant())
    await here.threads.create(ALICE, thread_id="t1")
    run = await here.create(request(input={"nul": "\x00", "odd": "\ud800"}))
    assert store.streams is not None
    assert await store.streams.asked() == {}, "nobody follows elsewhere yet"
    live = there.stream(ALICE, "t1", run.run_id)
    first = [await anext(live), await anext(live)]
    assert [item.event for item in first] == ["metadata", "values"]
    assert (await there.get(ALICE, "t1", run.run_id)).status is RunStatus.RUNNING
    go.set()
    whole = first + [item async for item in live]
    assert whole == await streamed(here, run)
    assert whole[-1].event == "end"
    assert await streamed(there, run) == whole, "also when it has ended"
    assert await streamed(there, run, whole[1].id) == whole[2:]
    assert await streamed(there, run, whole[-1].id) == []
    only = [i.event async for i in there.stream(ALICE, "t1", run.run_id, modes=frozenset({"updates"}))]
    assert only == ["metadata", "updates", "end"]


@pytest.mark.req("RUN-8")
@pytest.mark.parametrize("foreign", ["abc", "999999", "-5"])
async def test_an_id_that_is_not_ours_is_a_gap_at_another_replica_too(
    replica: Callable[..., Any], foreign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 0.2)
    go = asyncio.Event()

    async def wait(_: RunContext) -> None:
        await go.wait()

    here = await replica("here", ScriptedAssistant(wait))
    there = await replica("there", ScriptedAssistant())
    await here.threads.create(ALICE, thread_id="t1")
    run = await here.create(request())
    live = there.stream(ALICE, "t1", run.run_id, last_event_id=foreign)
    first = [await anext(live), await anext(live)]
    assert [item.event for item in first] == ["gap", "metadata"]
    assert first[0].data["missing_after"] == foreign
    go.set()
    assert [item async for item in live] == (await streamed(here, run))[1:]


@pytest.mark.req("RUN-8", "TASK-19")
@pytest.mark.parametrize("how", ["stopped", "killed", "cancelled", "deleted"])
async def test_a_stream_followed_elsewhere_ends_with_the_truth(
    store: Store, replica: Callable[..., Any], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 0.2)
    there = await replica("there", ScriptedAssistant())
    here = await replica("here", ScriptedAssistant(hang), running=False)
    life = here.running()
    await life.__aenter__()
    await here.threads.create(ALICE, thread_id="t1")
    run = await here.create(request())
    following = asyncio.create_task(streamed(there, run))
    await until(copied(store, run))
    ends: dict[str, Callable[[], Any]] = {
        "stopped": lambda: life.__aexit__(None, None, None),
        "killed": lambda: kill(here),
        "cancelled": lambda: there.cancel(ALICE, "t1", run.run_id),
        "deleted": lambda: here.delete(ALICE, "t1", run.run_id),
    }
    try:
        await ends[how]()
        if how == "deleted":
            try:
                items = await asyncio.wait_for(following, 20)
            except NotFound:
                return
        else:
            items = await asyncio.wait_for(following, 20)
        assert [item.event for item in items].count("error") == 1
        assert items[-1].event == "error"
        told = {"stopped": "stopped", "killed": "gone", "cancelled": "cancelled", "deleted": "cancelled"}
        assert told[how] in str(items[-1].data)
        assert [item.event for item in items][:2] == ["metadata", "values"]
    finally:
        if how != "stopped":
            await life.__aexit__(None, None, None)


@pytest.mark.req("RUN-5", "TASK-19")
async def test_a_stream_goes_on_where_another_replica_has_taken_the_run_over(
    replica: Callable[..., Any],
) -> None:
    frozen = await replica("frozen", ScriptedAssistant(), running=False)  # no heartbeat of its own
    await frozen.threads.create(ALICE, thread_id="t1")
    run = await frozen.create(request(after_seconds=2 * LEASE_SECONDS, input=7))
    following = asyncio.create_task(streamed(frozen, run))
    awake = await replica("awake", ScriptedAssistant())
    items = await asyncio.wait_for(following, 20)
    assert [item.event for item in items] == ["metadata", "values", "updates", "values", "end"]
    assert [item.id for item in items] == ["1", "2", "3", "4", "5"]
    assert (await awake.get(ALICE, "t1", run.run_id)).owner == "awake"


@pytest.mark.req("RUN-5")
async def test_a_copy_goes_when_nobody_follows_any_more(
    store: Store, replica: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "ASKED_SECONDS", 0.3)
    monkeypatch.setattr(remote, "ASK_AGAIN_SECONDS", 0.1)
    for name in ("LOOK_SECONDS", "CLEAR_SECONDS"):
        monkeypatch.setattr(relay, name, 0.1)
    here = await replica("here", ScriptedAssistant(hang))
    there = await replica("there", ScriptedAssistant())
    await here.threads.create(ALICE, thread_id="t1")
    run = await here.create(request())
    for _ in range(2):  # and comes back, whole, when somebody follows anew
        live = there.stream(ALICE, "t1", run.run_id)
        assert [(await anext(live)).id, (await anext(live)).id] == ["1", "2"]
        assert store.streams is not None
        token = (await store.streams.asked())[run.run_id]
        await live.aclose()

        async def gone(token: str = token) -> bool:
            return store.streams is not None and not await store.streams.list(token, after=0, limit=1)

        await until(gone)
        assert await store.streams.asked() == {}
        await until(lambda: not here._relay.copies(run.run_id))
