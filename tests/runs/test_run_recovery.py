"""Several replicas, processes that die, and an orderly end (RUN-1, issue 7)."""

import asyncio
from typing import Any

import pytest
from support.clock import FakeClock
from support.memory_store import MemoryStore
from support.runs import ALICE, ScriptedAssistant, kill, request, run_service, until

from moorage.contract import Principal, RunContext, RunStatus
from moorage.settings import RunSettings

LEASE_SECONDS = RunSettings().lease_seconds


async def hang(_: RunContext) -> None:
    await asyncio.Event().wait()


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fake_store(fake_clock: FakeClock) -> MemoryStore:
    return MemoryStore(fake_clock)


@pytest.mark.req("RUN-1", "RUN-5")
async def test_runs_of_a_dead_replica_end_truthfully_or_are_started_by_another(
    fake_clock: FakeClock, fake_store: MemoryStore
) -> None:
    await fake_store.keys.issue("alice", "user", "ops")
    dead = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant(hang)}, replica="dead")
    for thread in ("begun", "queued", "secret"):
        await dead.threads.create(ALICE, thread_id=thread)
    begun = await dead.create(request("begun"))
    later: dict[str, Any] = {"after_seconds": 60}
    queued = await dead.create(request("queued", input=7, context={"tone": "x"}, **later))
    secret = await dead.create(request("secret", context={"secrets": {"k": "v" * 20}}, **later))
    await until(lambda: fake_store.runs.rows[begun.run_id].status is RunStatus.RUNNING)
    await kill(dead)

    assistant = ScriptedAssistant()
    alive = run_service(fake_store, fake_clock, {"echo": assistant}, replica="alive")
    async with alive.running():
        await fake_clock.drive(lambda: fake_store.runs.rows[secret.run_id].status is RunStatus.ERROR)
        assert "secrets" in (fake_store.runs.rows[secret.run_id].error or "")
        ended = fake_store.runs.rows[begun.run_id]
        assert ended.status is RunStatus.ERROR
        assert "never repeated" in (ended.error or "")
        assert fake_store.threads.rows["begun"].status == "error"
        assert assistant.runs == []
        await fake_clock.drive(lambda: fake_store.runs.rows[queued.run_id].status is RunStatus.SUCCESS)
        assert (fake_clock.now() - queued.created_at).total_seconds() >= 60
        [run] = assistant.runs
        assert run.context == {"tone": "x"}
        assert run.call.principal == Principal("alice", frozenset({"user", "ops"}))
        items = [i async for i in alive.stream(ALICE, "begun", begun.run_id, last_event_id="2")]
        assert [item.event for item in items] == ["metadata", "gap", "error"]
        assert items[1].data["missing_after"] == "2"
        assert "never repeated" in str(items[-1].data)


@pytest.mark.req("RUN-5")
async def test_a_live_replicas_runs_are_left_alone(fake_clock: FakeClock, fake_store: MemoryStore) -> None:
    go = asyncio.Event()

    async def wait(_: RunContext) -> None:
        await go.wait()

    busy = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant(wait)}, replica="busy")
    other = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant()}, replica="other")
    async with busy.running(), other.running():
        await busy.threads.create(ALICE, thread_id="t1")
        run = await busy.create(request())
        await until(lambda: fake_store.runs.rows[run.run_id].status is RunStatus.RUNNING)
        began = fake_clock.now()
        await fake_clock.drive(lambda: (fake_clock.now() - began).total_seconds() > 4 * LEASE_SECONDS)
        assert fake_store.runs.rows[run.run_id].status is RunStatus.RUNNING
        joined = asyncio.create_task(other.join(ALICE, "t1", run.run_id))
        go.set()
        await fake_clock.drive(joined.done)
        assert joined.result().run.status is RunStatus.SUCCESS


@pytest.mark.req("RUN-5")
async def test_a_cancel_on_another_replica_reaches_the_one_that_executes(
    fake_clock: FakeClock, fake_store: MemoryStore
) -> None:
    ended = asyncio.Event()

    async def wait(_: RunContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    busy = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant(wait)}, replica="busy")
    other = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant()}, replica="other")
    async with busy.running(), other.running():
        await busy.threads.create(ALICE, thread_id="t1")
        run = await busy.create(request())
        await until(lambda: fake_store.runs.rows[run.run_id].status is RunStatus.RUNNING)
        assert (await other.cancel(ALICE, "t1", run.run_id)).status is RunStatus.INTERRUPTED
        await fake_clock.drive(ended.is_set)
        await until(lambda: busy._executor.get(run.run_id) is None)
        assert fake_store.runs.rows[run.run_id].error == "the run was cancelled"


@pytest.mark.req("RUN-1", "RUN-5")
async def test_an_orderly_stop_says_so_and_gives_queued_runs_back(
    fake_clock: FakeClock, fake_store: MemoryStore
) -> None:
    first = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant(hang)}, replica="first")
    async with first.running():
        for thread in ("t1", "t2", "t3"):
            await first.threads.create(ALICE, thread_id=thread)
        begun = await first.create(request("t1"))
        queued = await first.create(request("t2", after_seconds=5))
        secret = await first.create(request("t3", after_seconds=5, context={"secrets": {"k": "v" * 20}}))
        await until(lambda: fake_store.runs.rows[begun.run_id].status is RunStatus.RUNNING)
        stream = first.stream(ALICE, "t1", begun.run_id)
        assert (await anext(stream)).event == "metadata"
    assert [item.event async for item in stream][-1] == "error"
    assert fake_store.runs.rows[begun.run_id].status is RunStatus.INTERRUPTED
    assert "stopped" in (fake_store.runs.rows[begun.run_id].error or "")
    assert "secrets" in (fake_store.runs.rows[secret.run_id].error or "")
    assert fake_store.runs.rows[queued.run_id].status is RunStatus.PENDING
    second = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant()}, replica="second")
    async with second.running():
        gone = await fake_clock.drive(lambda: fake_store.runs.rows[queued.run_id].status is RunStatus.SUCCESS)
    assert gone < LEASE_SECONDS


@pytest.mark.req("RUN-5")
async def test_a_store_that_fails_for_a_while_ends_no_loop(
    fake_clock: FakeClock, fake_store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    take_over = fake_store.runs.take_over

    async def flaky(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("down")
        return await take_over(*args, **options)

    monkeypatch.setattr(fake_store.runs, "take_over", flaky)
    service = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant()})
    async with service.running():
        await fake_clock.drive(lambda: calls > 1)


@pytest.mark.req("RUN-5", "PLUG-7")
async def test_an_assistant_that_will_not_end_costs_no_other_run_its_lease(
    fake_clock: FakeClock, fake_store: MemoryStore
) -> None:
    go, clung = asyncio.Event(), asyncio.Event()

    async def cling(run: RunContext) -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                if run.thread_id != "clings":
                    raise
                clung.set()

    busy = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant(cling)}, replica="busy")
    other = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant()}, replica="other")
    async with busy.running(), other.running():
        for thread in ("clings", "fine"):
            await busy.threads.create(ALICE, thread_id=thread)
        clings, fine = await busy.create(request("clings")), await busy.create(request("fine"))
        rows = fake_store.runs.rows
        await until(lambda: {rows[one.run_id].status for one in (fine, clings)} == {RunStatus.RUNNING})
        await other.cancel(ALICE, "clings", clings.run_id)
        await fake_clock.drive(clung.is_set)
        began = fake_clock.now()
        await fake_clock.drive(lambda: (fake_clock.now() - began).total_seconds() > 4 * LEASE_SECONDS)
        assert fake_store.runs.rows[fine.run_id].status is RunStatus.RUNNING
        go.set()
        await fake_clock.drive(lambda: fake_store.runs.rows[fine.run_id].status is RunStatus.SUCCESS)


@pytest.mark.req("RUN-5")
async def test_a_delayed_stateless_run_survives_an_orderly_stop(
    fake_clock: FakeClock, fake_store: MemoryStore
) -> None:
    first = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant()}, replica="first")
    async with first.running():
        run = await first.create(request(None, after_seconds=5, on_completion="delete"))
    assert fake_store.runs.rows[run.run_id].status is RunStatus.PENDING
    assistant = ScriptedAssistant()
    second = run_service(fake_store, fake_clock, {"echo": assistant}, replica="second")
    async with second.running():
        await fake_clock.drive(lambda: not fake_store.threads.rows)
    assert [one.run_id for one in assistant.runs] == [run.run_id]


@pytest.mark.req("RUN-5")
@pytest.mark.parametrize("how", ["killed", "cancelled"])
async def test_the_thread_of_a_stateless_run_goes_though_its_process_is_gone(
    fake_clock: FakeClock, fake_store: MemoryStore, how: str
) -> None:
    dead = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant(hang)}, replica="dead")
    run = await dead.create(request(None, on_completion="delete"))
    await until(lambda: fake_store.runs.rows[run.run_id].status is RunStatus.RUNNING)
    await kill(dead)
    alive = run_service(fake_store, fake_clock, {"echo": ScriptedAssistant()}, replica="alive")
    async with alive.running():
        if how == "cancelled":
            await alive.cancel(ALICE, run.thread_id, run.run_id)
        await fake_clock.drive(lambda: fake_store.runs.rows[run.run_id].status.terminal)
        result = await alive.join(ALICE, run.thread_id, run.run_id)
        assert result.run.status is (RunStatus.ERROR if how == "killed" else RunStatus.INTERRUPTED)
        await fake_clock.drive(lambda: not fake_store.threads.rows)


@pytest.mark.req("RUN-5")
async def test_what_a_run_writes_after_its_thread_was_deleted_elsewhere_goes_too(
    fake_clock: FakeClock, fake_store: MemoryStore
) -> None:
    assistant = ScriptedAssistant()

    async def write_late(run: RunContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await assistant.update_state(run.thread_id, {"late": True})

    assistant.script = write_late
    busy = run_service(fake_store, fake_clock, {"echo": assistant}, replica="busy")
    other = run_service(fake_store, fake_clock, {"echo": assistant}, replica="other")
    async with busy.running(), other.running():
        await busy.threads.create(ALICE, thread_id="t1")
        run = await busy.create(request())
        await until(lambda: fake_store.runs.rows[run.run_id].status is RunStatus.RUNNING)
        await other.threads.delete(ALICE, "t1")
        await fake_clock.drive(lambda: busy._executor.get(run.run_id) is None)
    assert not assistant.states
