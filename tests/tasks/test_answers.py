"""Answering a task that requires input (TASK-16)."""

import asyncio
from typing import Any

import pytest
from support.clock import FakeClock, eventually
from support.fake_driver import FakeRespondingDriver, asking, completed, hang, working
from support.faulty_tasks import FaultyTasks
from support.rig import ALICE, Rig

from moorage.contract import (
    CallContext,
    Conflict,
    InvalidAnswer,
    NotFound,
    NotSupported,
    PluginError,
    PluginTimeout,
    Principal,
    ProtocolViolation,
    SubmitRejected,
    TransientDriverError,
)
from moorage.tasks.schema import verdict_on

FORM = {
    "question": "How many?",
    "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


@pytest.fixture
def driver() -> FakeRespondingDriver:
    return FakeRespondingDriver()


@pytest.fixture
def rig(repository: FaultyTasks, clock: FakeClock, driver: FakeRespondingDriver) -> Rig:
    driver.on_submit = [asking(FORM)]
    return Rig(repository.as_repository, clock, driver=driver)


async def recorded(repository: FaultyTasks, task_id: str) -> str:
    answer, made_now = await repository.as_repository.record_answer(task_id, "a1", response_json="null")
    assert not made_now
    return answer.state


@pytest.mark.req("TASK-16")
async def test_an_answer_is_recorded_then_sent_and_the_task_goes_on(
    rig: Rig, repository: FaultyTasks, driver: FakeRespondingDriver
) -> None:
    states = []

    async def look(_: object) -> Any:
        states.append(await recorded(repository, task_id))
        return working()

    driver.on_respond["*"] = [look]
    driver.on_poll["*"] = [completed("thanks")]
    task_id = (await rig.submit()).task_id

    answer = await rig.service.respond(ALICE, task_id, "a1", {"n": 3})

    assert states == ["recorded"], "it was on record before it was sent"
    assert (answer.state, answer.response, answer.error) == ("sent", {"n": 3}, None)
    assert [(remote, sent.response) for remote, sent in driver.answers] == [("r1", {"n": 3})]
    async with rig.running():
        row = await rig.until(task_id, lambda task: task.status.terminal)
    assert row.result == "thanks"
    assert rig.clock.monotonic() == 0, "the poll after an answer does not wait for its slow interval"


@pytest.mark.req("TASK-16")
async def test_one_answer_id_is_sent_at_most_once_however_often_it_is_given(
    rig: Rig, driver: FakeRespondingDriver
) -> None:
    task_id = (await rig.submit()).task_id

    answers = await asyncio.gather(
        *(rig.service.respond(ALICE, task_id, "a1", {"n": n}) for n in range(3)), return_exceptions=True
    )
    again = await rig.service.respond(ALICE, task_id, "a1", {"n": 9})

    assert len(driver.answers) == 1
    assert all(getattr(answer, "response", None) == again.response for answer in answers)
    assert again.state == "sent"


@pytest.mark.req("TASK-16")
@pytest.mark.parametrize(
    ("response", "place"),
    [({"n": "three"}, r"\$\.n"), ({}, r"\$"), (None, r"\$"), ("text", r"\$")],
)
async def test_an_answer_that_does_not_fit_the_schema_is_refused_and_may_be_corrected(
    rig: Rig, repository: FaultyTasks, driver: FakeRespondingDriver, response: Any, place: str
) -> None:
    task_id = (await rig.submit()).task_id

    with pytest.raises(InvalidAnswer, match=place):
        await rig.service.respond(ALICE, task_id, "a1", response)

    assert driver.answers == []
    assert (await rig.service.respond(ALICE, task_id, "a1", {"n": 3})).state == "sent"


@pytest.mark.req("TASK-16", "BOUND-4")
@pytest.mark.parametrize("response", [float("nan"), {"x": object()}, "x" * 70_000])
async def test_what_is_no_json_or_too_large_is_no_answer(rig: Rig, response: Any) -> None:
    task_id = (await rig.submit()).task_id
    with pytest.raises(InvalidAnswer):
        await rig.service.respond(ALICE, task_id, "a1", response)


@pytest.mark.req("TASK-16")
@pytest.mark.parametrize("answer_id", ["", "  ", "x" * 256, "a\0"])
async def test_impossible_answer_ids_are_refused(rig: Rig, answer_id: str) -> None:
    task_id = (await rig.submit()).task_id
    with pytest.raises(InvalidAnswer, match="answer id"):
        await rig.service.respond(ALICE, task_id, answer_id, {"n": 3})


@pytest.mark.req("TASK-16")
@pytest.mark.parametrize(
    ("step", "raised", "state"),
    [
        (TransientDriverError("connection lost"), TransientDriverError, "unknown"),
        (ProtocolViolation("no content"), ProtocolViolation, "unknown"),
        (ValueError("driver bug"), PluginError, "unknown"),
        (working(remote_id="another"), ProtocolViolation, "unknown"),
        (hang, PluginTimeout, "unknown"),
        (SubmitRejected("not now"), SubmitRejected, "failed"),
        (NotSupported("this toolset has no respond tool"), NotSupported, "failed"),
    ],
)
async def test_a_failed_sending_stays_on_record_and_is_never_repeated(
    rig: Rig, driver: FakeRespondingDriver, step: Any, raised: type[Exception], state: str
) -> None:
    driver.on_respond["*"] = [step]
    task_id = (await rig.submit()).task_id

    call = asyncio.create_task(rig.service.respond(ALICE, task_id, "a1", {"n": 3}))
    await rig.clock.drive(call.done)
    assert isinstance(call.exception(), raised)

    again = await rig.service.respond(ALICE, task_id, "a1", {"n": 3})
    assert (again.state, len(driver.answers)) == (state, 1)
    assert again.error
    assert (await rig.task(task_id)).status == "input_required"


@pytest.mark.req("TASK-16")
async def test_a_caller_that_leaves_does_not_stop_the_answer(
    rig: Rig, repository: FaultyTasks, driver: FakeRespondingDriver
) -> None:
    gate = asyncio.Event()

    async def slow(_: object) -> Any:
        await gate.wait()
        return working()

    driver.on_respond["*"] = [slow]
    task_id = (await rig.submit()).task_id
    call = asyncio.create_task(rig.service.respond(ALICE, task_id, "a1", {"n": 3}))
    await eventually(lambda: driver.answers)

    call.cancel()
    await asyncio.sleep(0)
    gate.set()
    await rig.clock.drive(call.done)

    assert call.cancelled()
    assert await recorded(repository, task_id) == "sent"


@pytest.mark.req("TASK-16")
async def test_only_a_task_that_requires_input_takes_an_answer(
    rig: Rig, driver: FakeRespondingDriver
) -> None:
    driver.on_submit = [working()]
    task_id = (await rig.submit()).task_id

    with pytest.raises(Conflict, match="requires no input"):
        await rig.service.respond(ALICE, task_id, "a1", {"n": 3})
    with pytest.raises(NotFound):
        await rig.service.respond(Principal("bob"), task_id, "a1", {"n": 3})
    assert driver.answers == []


@pytest.mark.req("TASK-16")
async def test_a_driver_without_respond_takes_no_answers(repository: FaultyTasks, clock: FakeClock) -> None:
    rig = Rig(repository.as_repository, clock)
    rig.driver.on_submit = [asking(FORM)]
    task_id = (await rig.submit(context=CallContext(principal=ALICE))).task_id

    with pytest.raises(NotSupported, match="'fake'"):
        await rig.service.respond(ALICE, task_id, "a1", {"n": 3})


@pytest.mark.req("TASK-16", "CRED-9")
def test_a_schema_cannot_make_the_gateway_fetch_and_a_broken_one_checks_nothing() -> None:
    assert "fault" in verdict_on({"$ref": "http://127.0.0.1:9/schema.json"}, 1)
    assert "fault" in verdict_on({"type": "nonsense"}, 1)
    assert verdict_on(True, 1) == {}
    assert "problem" in verdict_on(False, 1)


@pytest.mark.req("TASK-16")
async def test_a_schema_that_never_ends_is_given_up(
    rig: Rig, driver: FakeRespondingDriver, monkeypatch: Any
) -> None:
    monkeypatch.setattr("moorage.tasks.schema._TIME_LIMIT_SECONDS", 2.0)
    driver.on_submit = [asking({"schema": {"type": "string", "pattern": "^(a+)+$"}})]
    task_id = (await rig.submit()).task_id

    with pytest.raises(InvalidAnswer, match="longer than 2 seconds"):
        await rig.service.respond(ALICE, task_id, "a1", "a" * 40 + "!")

    assert driver.answers == []
