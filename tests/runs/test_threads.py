"""Threads and their states belong to somebody (API-2, RUN-4)."""

import asyncio
from typing import Any

import pytest
from support.dumping import dump
from support.runs import ALICE, BOB, FixedTools, ScriptedAssistant, request, until

from moorage.contract import Conflict, NotFound, RunContext, Store, ThreadBusy
from moorage.runs.service import InvalidThreadId, RunService


@pytest.mark.req("API-2", "RUN-5")
async def test_somebody_elses_thread_does_not_exist(service: RunService, store_url: str) -> None:
    await service.threads.create(ALICE, thread_id="t1", metadata={"k": 1})
    before = dump(store_url)
    threads = service.threads
    for ask in (
        threads.get(BOB, "t1"),
        threads.update(BOB, "t1", {"k": 2}),
        threads.delete(BOB, "t1"),
        threads.state(BOB, "t1"),
        threads.history(BOB, "t1"),
        threads.update_state(BOB, "t1", {}),
        service.list(BOB, "t1"),
        service.events(BOB, "t1"),
    ):
        with pytest.raises(NotFound):
            await ask
    assert await threads.search(BOB) == []
    for if_exists in ("raise", "do_nothing"):
        with pytest.raises(Conflict):
            await threads.create(BOB, thread_id="t1", if_exists=if_exists)
    assert dump(store_url) == before


@pytest.mark.req("RUN-5")
@pytest.mark.parametrize("thread_id", ["a/b", "a b", "ä", "x" * 65, "a\n"])
async def test_thread_ids_are_plain(service: RunService, thread_id: str) -> None:
    with pytest.raises(InvalidThreadId):
        await service.threads.create(ALICE, thread_id=thread_id)


@pytest.mark.req("RUN-4")
async def test_old_copies_of_the_key_are_hidden_and_neither_read_nor_patch_touches_them(
    service: RunService, store: Store, store_url: str
) -> None:
    await store.threads.create("t1", "alice", {"auth_token": "S3CRET", "keep": 1, "deep": {"auth_token": 2}})
    await store.events.append("t1", event_type="run_start", metadata={"auth_token": "S3CRET", "keep": 1})
    before = dump(store_url)
    shown = await service.threads.get(ALICE, "t1")
    assert shown.metadata == {"keep": 1, "deep": {"auth_token": 2}}
    [found] = await service.threads.search(ALICE, metadata={"keep": 1})
    assert "S3CRET" not in str(found)
    [event] = await service.events(ALICE, "t1")
    assert event.metadata == {"keep": 1}
    assert dump(store_url) == before
    patched = await service.threads.update(ALICE, "t1", {"new": 2})
    assert "auth_token" not in patched.metadata
    row = await store.threads.get("t1")
    assert row is not None
    assert row.metadata == {"auth_token": "S3CRET", "keep": 1, "deep": {"auth_token": 2}, "new": 2}


@pytest.mark.req("TOOL-4", "NOTE-3")
async def test_deleting_a_thread_ends_its_runs_and_leaves_nothing_but_its_tasks(
    make_service: Any, store: Store, store_url: str
) -> None:
    ended = asyncio.Event()

    async def hang(_: RunContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    assistant, tools = ScriptedAssistant(hang), FixedTools()
    service = await make_service(assistants={"echo": assistant}, tools=tools)
    await service.threads.create(ALICE, thread_id="t1", metadata={"unique": "needle-1"})
    run = await service.create(request(input="needle-2", after_seconds=0))
    queued = await service.create(request(multitask_strategy="enqueue", input="needle-3"))
    await until(lambda: service._executor.get(run.run_id).began)
    await service.threads.delete(ALICE, "t1")
    assert ended.is_set()
    assert service._executor.all() == []
    assert tools.closed == [("alice", "t1")]
    assert "t1" in assistant.forgotten
    assert "needle" not in dump(store_url)
    for run_id in (run.run_id, queued.run_id):
        with pytest.raises(NotFound):
            await service.join(ALICE, "t1", run_id)
    with pytest.raises(NotFound):
        await service.threads.delete(ALICE, "t1")


@pytest.mark.req("RUN-5")
async def test_a_new_thread_never_shows_an_old_threads_states(
    service: RunService, echo: ScriptedAssistant
) -> None:
    """A deletion that was cut short may have left states under the id, and they were somebody else's."""
    await echo.update_state("t1", {"private": "alice's"})
    await service.threads.create(BOB, thread_id="t1")
    assert (await service.threads.state(BOB, "t1")).values == {}


@pytest.mark.req("RUN-5", "RUN-9")
async def test_a_state_is_written_without_marks_and_never_under_a_running_run(
    make_service: Any, echo: ScriptedAssistant
) -> None:
    go = asyncio.Event()

    async def wait(_: RunContext) -> None:
        await go.wait()

    service = await make_service(assistants={"echo": ScriptedAssistant(wait)})
    await service.threads.create(ALICE, thread_id="t1")
    marked = {"messages": [{"role": "user", "content": "x", "id": "moorage-1", "moorage_internal": True}]}
    state = await service.threads.update_state(ALICE, "t1", marked)
    assert state.values == {"messages": [{"role": "user", "content": "x"}]}
    run = await service.create(request())
    with pytest.raises(ThreadBusy):
        await service.threads.update_state(ALICE, "t1", marked)
    go.set()
    await service.join(ALICE, "t1", run.run_id)
    with pytest.raises(NotFound):
        await service.threads.state(ALICE, "t1", checkpoint_id="nope")


@pytest.mark.req("PLUG-7")
async def test_a_tool_source_that_fails_does_not_keep_a_thread_from_being_deleted(
    make_service: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Bad(FixedTools):
        async def close_thread(self, user_id: str, thread_id: str) -> None:
            raise ConnectionError("gone")

    service = await make_service(tools=Bad())
    await service.threads.create(ALICE, thread_id="t1")
    await service.threads.delete(ALICE, "t1")
    assert "closing tool sessions failed" in caplog.text
    assert await service.threads.search(ALICE) == []
