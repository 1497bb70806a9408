"""From a request to a run that has ended."""

import asyncio
from typing import Any

import pytest
from support.dumping import dump
from support.runs import ALICE, BOB, FixedTools, ScriptedAssistant, request, run_service, until

from moorage.clock import SystemClock
from moorage.contract import (
    AdmissionRejected,
    Conflict,
    NotFound,
    RunContext,
    RunRequest,
    RunStatus,
    Store,
    ThreadBusy,
)
from moorage.runs.service import InvalidThreadId, NamedAssistant, NamedValidator, RunService

SECRET = "s3cr3t-canary-value"


class Gate:
    """A run validator that does what it is told to, and counts."""

    def __init__(self, *, error: BaseException | None = None, hang: bool = False) -> None:
        self.error, self.hang = error, hang
        self.seen: list[RunRequest] = []

    async def validate(self, request: RunRequest) -> None:
        self.seen.append(request)
        if self.hang:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error


async def _gone(store: Store, thread_id: str) -> bool:
    return await store.threads.get(thread_id) is None


async def _statuses(store: Store, thread_id: str, *expected: RunStatus) -> bool:
    return [run.status for run in await store.runs.list(thread_id)] == list(expected)


def gate(**options: Any) -> NamedValidator:
    return NamedValidator("gate", "gatekeeper", Gate(**options))


@pytest.mark.req("RUN-5")
async def test_a_run_ends_well_and_leaves_values_events_and_an_idle_thread(
    service: RunService, store: Store
) -> None:
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request(input={"q": 1}, metadata={"m": 1}))
    assert run.status is RunStatus.PENDING
    result = await service.join(ALICE, "t1", run.run_id)
    assert result.run.status is RunStatus.SUCCESS
    assert result.values == {"input": {"q": 1}, "output": None}
    events = await service.events(ALICE, "t1", run_id=run.run_id)
    assert [event.event_type for event in events] == ["run_start", "updates", "run_end"]
    assert events[-1].metadata["status"] == "success"
    thread = await service.threads.get(ALICE, "t1")
    assert thread.status == "idle"
    assert thread.metadata["m"] == 1
    assert (await service.list(ALICE, "t1"))[0].run_id == run.run_id


@pytest.mark.req("RUN-2", "RUN-3")
@pytest.mark.parametrize("variant", ["plain", "create", "delayed", "enqueue", "stateless", "internal"])
async def test_the_legacy_key_leaves_nothing_behind(
    service: RunService, store_url: str, store: Store, echo: ScriptedAssistant, variant: str
) -> None:
    await service.threads.create(ALICE, thread_id="t1")
    before = dump(store_url)
    body: dict[str, Any] = {"metadata": {"auth_token": None}, "context": {"secrets": {"k": SECRET}}}
    thread: str | None = "t1"
    if variant == "create":
        thread, body["if_not_exists"] = "t2", "create"
    elif variant == "delayed":
        body["after_seconds"] = 10
    elif variant == "enqueue":
        body["multitask_strategy"] = "enqueue"
    elif variant == "stateless":
        thread = None
    made = request(thread, **body)
    if variant == "internal":
        made = RunRequest("t1", "echo", ALICE, metadata={"auth_token": 1}, origin="internal")
    with pytest.raises(AdmissionRejected, match=r"config\.context\.secrets"):
        await service.create(made)
    with pytest.raises(AdmissionRejected):
        await service.admit(made)
    assert dump(store_url) == before
    assert echo.runs == []


@pytest.mark.req("RUN-2", "RUN-3", "PLUG-7")
@pytest.mark.parametrize(
    ("validator", "message"),
    [
        (gate(error=AdmissionRejected("not on a Friday")), "not on a Friday"),
        (gate(error=ValueError(f"bad {SECRET}")), "'gate' of plugin 'gatekeeper' failed"),
        (gate(error=asyncio.CancelledError()), "'gatekeeper' failed"),
        (gate(hang=True), "did not answer in time"),
    ],
)
async def test_a_validator_refuses_or_fails_and_nothing_exists(
    make_service: Any,
    store_url: str,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    validator: NamedValidator,
    message: str,
) -> None:
    service = await make_service(validators=[validator])
    monkeypatch.setattr(service._admission, "_timeout_seconds", 0.05)
    before = dump(store_url)
    with pytest.raises(AdmissionRejected, match=message) as refused:
        await service.create(
            request("new", if_not_exists="create", context={"secrets": {"k": SECRET}, "user_id": "mallory"})
        )
    assert dump(store_url) == before
    assert SECRET not in str(refused.value) + caplog.text


@pytest.mark.req("RUN-2", "RUN-9")
async def test_ownership_comes_before_admission_and_validators_see_the_authenticated_principal(
    make_service: Any,
) -> None:
    validator = Gate()
    service = await make_service(validators=[NamedValidator("gate", "p", validator)])
    await service.threads.create(ALICE, thread_id="t1")
    with pytest.raises(NotFound):
        await service.create(request("t1", BOB, metadata={"auth_token": 1}))
    assert validator.seen == []
    await service.create(request("t1", context={"user_id": "bob"}, metadata={"token": "kept"}))
    assert validator.seen[0].principal == ALICE
    assert validator.seen[0].metadata == {"token": "kept"}


@pytest.mark.req("RUN-2")
async def test_what_a_request_refers_to_is_checked_before_a_run_exists(
    make_service: Any, store_url: str, store: Store, echo: ScriptedAssistant
) -> None:
    service = await make_service()
    await service.threads.create(ALICE, thread_id="t1")
    before = dump(store_url)
    with pytest.raises(NotFound, match="no such assistant"):
        await service.create(request(assistant_id="nobody"))
    with pytest.raises(NotFound, match="no such checkpoint"):
        await service.create(request(checkpoint_id="c9"))
    with pytest.raises(NotFound, match="no thread"):
        await service.create(request("missing"))
    with pytest.raises(InvalidThreadId):
        await service.create(request("a/b", if_not_exists="create"))
    with pytest.raises(AdmissionRejected, match="metadata"):
        await service.create(request(metadata=["auth_token"]))
    assert dump(store_url) == before
    unavailable = {"echo": NamedAssistant("echo", "", echo, "no model")}
    service._directory._assistants.update(unavailable)
    with pytest.raises(Conflict, match="no model"):
        await service.create(request())
    assert dump(store_url) == before


@pytest.mark.req("RUN-5")
async def test_reject_refuses_a_second_run_while_one_is_active(make_service: Any) -> None:
    go = asyncio.Event()

    async def wait(_: RunContext) -> None:
        await go.wait()

    service = await make_service(assistants={"echo": ScriptedAssistant(wait)})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request())
    with pytest.raises(ThreadBusy):
        await service.create(request())
    go.set()
    await service.join(ALICE, "t1", run.run_id)
    await service.create(request())


@pytest.mark.req("RUN-1", "CRED-9")
async def test_secrets_reach_tools_and_nothing_that_stays(
    make_service: Any,
    store_url: str,
    store: Store,
    run_tools: FixedTools,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(run: RunContext) -> None:
        assert run.call.secrets["nested"]["k"] == SECRET
        raise RuntimeError(f"server said: bad token {SECRET}")

    assistant = ScriptedAssistant(fail)
    service = await make_service(assistants={"echo": assistant})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request(config={"context": {"secrets": {"nested": {"k": SECRET}}, "x": 1}}))
    result = await service.join(ALICE, "t1", run.run_id)
    assert result.run.status is RunStatus.ERROR
    assert result.run.error == "RuntimeError: server said: bad token ***"
    assert run_tools.calls[0].secrets == {"nested": {"k": SECRET}}
    assert run_tools.calls[0].principal == ALICE
    items = [item async for item in service.stream(ALICE, "t1", run.run_id)]
    assert items[-1].event == "error"
    assert items[-1].data == {"error": "RuntimeError", "message": "server said: bad token ***"}
    assert SECRET not in dump(store_url) + repr(items) + repr(result) + caplog.text
    assert run.kwargs["context"] == {"x": 1}


@pytest.mark.req("RUN-1")
async def test_a_run_that_has_ended_holds_no_secrets_in_memory(service: RunService) -> None:
    await service.threads.create(ALICE, thread_id="t1")
    made = request(context={"secrets": {"k": SECRET}})
    run = await service.create(made)
    await service.join(ALICE, "t1", run.run_id)
    await until(lambda: service._executor.get(run.run_id) is None)
    assert SECRET not in repr(vars(service._feeds._feeds[run.run_id]))


@pytest.mark.req("RUN-5")
async def test_cancelling_interrupts_and_a_second_time_changes_nothing(make_service: Any) -> None:
    cleaned = asyncio.Event()

    async def hang(_: RunContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    service = await make_service(assistants={"echo": ScriptedAssistant(hang)})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request())
    await until(lambda: service._executor.get(run.run_id).began)
    ended = await service.cancel(ALICE, "t1", run.run_id, wait=True)
    assert ended.status is RunStatus.INTERRUPTED
    assert cleaned.is_set()
    again = await service.cancel(ALICE, "t1", run.run_id)
    assert again.status is RunStatus.INTERRUPTED
    ends = await service.events(ALICE, "t1", event_types=["run_end"])
    assert len(ends) == 1
    result = await service.join(ALICE, "t1", run.run_id)
    assert result.run.error == "the run was cancelled"


@pytest.mark.req("RUN-5")
async def test_a_run_that_is_ended_before_its_task_ran_still_ends_for_everybody(
    service: RunService, store: Store, monkeypatch: pytest.MonkeyPatch, echo: ScriptedAssistant
) -> None:
    await service.threads.create(ALICE, thread_id="t1")
    start = service._executor.start

    def start_and_stop(run: Any, *args: Any, **options: Any) -> Any:
        feed = start(run, *args, **options)
        service._executor.cancel(run.run_id)
        return feed

    monkeypatch.setattr(service._executor, "start", start_and_stop)
    run = await service.create(request())
    await until(lambda: service._executor.get(run.run_id) is None)
    await service.cancel(ALICE, "t1", run.run_id)
    assert (await service.join(ALICE, "t1", run.run_id)).run.status is RunStatus.INTERRUPTED
    assert echo.runs == []


@pytest.mark.req("PLUG-7")
async def test_an_assistant_that_cancels_itself_fails_its_run_and_nothing_else(make_service: Any) -> None:
    async def odd(_: RunContext) -> None:
        raise asyncio.CancelledError

    service = await make_service(assistants={"echo": ScriptedAssistant(odd)})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request())
    assert (await service.join(ALICE, "t1", run.run_id)).run.status is RunStatus.ERROR


@pytest.mark.req("API-2")
async def test_somebody_elses_run_does_not_exist(service: RunService) -> None:
    await service.threads.create(ALICE, thread_id="t1")
    await service.threads.create(BOB, thread_id="t2")
    run = await service.create(request())
    for principal, thread in [(BOB, "t1"), (BOB, "t2"), (ALICE, "t2")]:
        for ask in (
            service.get(principal, thread, run.run_id),
            service.cancel(principal, thread, run.run_id),
            service.join(principal, thread, run.run_id),
            service.delete(principal, thread, run.run_id),
            service.events(principal, thread, run_id=run.run_id),
            anext(service.stream(principal, thread, run.run_id)),
        ):
            with pytest.raises(NotFound):
                await ask


@pytest.mark.req("RUN-5")
async def test_a_stateless_run_takes_its_thread_with_it_and_still_tells_its_result(
    service: RunService, store: Store, echo: ScriptedAssistant
) -> None:
    run = await service.create(request(None, on_completion="delete", input=5))
    await until(lambda: _gone(store, run.thread_id))
    assert run.thread_id in echo.forgotten
    result = await service.join(ALICE, run.thread_id, run.run_id)
    assert result.run.status is RunStatus.SUCCESS
    assert result.values == {"input": 5, "output": None}
    with pytest.raises(NotFound):
        await service.join(BOB, run.thread_id, run.run_id)


@pytest.mark.req("NOTE-2")
async def test_a_known_idempotency_key_finds_the_run_also_while_the_thread_is_busy(
    make_service: Any,
) -> None:
    go = asyncio.Event()

    async def wait(_: RunContext) -> None:
        await go.wait()

    assistant = ScriptedAssistant(wait)
    service = await make_service(assistants={"echo": assistant})
    await service.threads.create(ALICE, thread_id="t1")
    asked = RunRequest("t1", "echo", ALICE, input=1, origin="internal", idempotency_key="d1")
    first, second = await asyncio.gather(service.launch(asked), service.launch(asked))
    assert {first.created, second.created} == {True, False}
    assert first.run_id == second.run_id
    go.set()
    await service.join(ALICE, "t1", first.run_id)
    assert (await service.launch(asked)).status is RunStatus.SUCCESS
    assert len(assistant.runs) == 1
    with pytest.raises(NotFound):
        await service.launch(RunRequest("t1", "echo", BOB, origin="internal", idempotency_key="d1"))
    with pytest.raises(NotFound):
        await service.launch(
            RunRequest("gone", "echo", ALICE, origin="internal", idempotency_key="d2", if_not_exists="create")
        )


@pytest.mark.req("RUN-1")
async def test_a_caller_that_goes_away_while_the_run_is_made_leaves_no_stray_row(
    make_service: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await make_service()
    await service.threads.create(ALICE, thread_id="t1")
    entered, go = asyncio.Event(), asyncio.Event()
    create = store.runs.create

    async def slow(*args: Any, **options: Any) -> Any:
        made = await create(*args, **options)
        entered.set()
        await go.wait()
        return made

    monkeypatch.setattr(store.runs, "create", slow)
    caller = asyncio.create_task(service.create(request(context={"secrets": {"k": SECRET}})))
    await entered.wait()
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    go.set()
    await until(lambda: _statuses(store, "t1", RunStatus.SUCCESS))


async def test_launching_outside_running_is_possible_for_a_service_that_is_not_open_yet(
    store: Store, echo: ScriptedAssistant
) -> None:
    service = run_service(store, SystemClock(), {"echo": echo})
    async with service.running():
        await service.threads.create(ALICE, thread_id="t1")
        run = await service.create(request())
        await service.join(ALICE, "t1", run.run_id)
