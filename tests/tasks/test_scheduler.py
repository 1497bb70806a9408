"""Polling: times, counters, permanent and transient failures, containment (cases C61, C64, C65, C74)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from support.clock import FakeClock, eventually
from support.fake_driver import asking, completed, failed, hang, hang_stubbornly, working
from support.faulty_tasks import FaultyTasks
from support.rig import ALICE, Rig

from moorage.contract import (
    ProtocolViolation,
    StoreUnavailable,
    TaskRecord,
    TaskRef,
    TaskSnapshot,
    TaskStatus,
    TaskUpdate,
    TransientDriverError,
)
from moorage.settings import TaskSettings


@pytest.mark.req("TASK-1", "TASK-9", "TASK-13")
async def test_a_task_is_polled_until_it_is_over_and_never_again(rig: Rig) -> None:
    rig.driver.on_poll["*"] = [working(), working(), completed({"files": 3}, result_artifact={"uri": "a:b"})]
    submitted = await rig.submit()

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)
        polls = len(rig.driver.polls)
        await rig.clock.advance(10_000)
        await rig.clock.advance(10_000)

    assert (row.status, row.result, row.result_artifact) == ("completed", {"files": 3}, {"uri": "a:b"})
    assert (row.event_kind, row.notification_status, row.next_poll_at) == ("terminal", "pending", None)
    assert polls == len(rig.driver.polls) == 3


@pytest.mark.req("TASK-7", "TASK-25")
async def test_times_count_from_the_end_of_the_call(rig: Rig) -> None:
    async def slow(_: object) -> TaskSnapshot:
        await rig.clock.sleep(40)
        return working()

    rig.driver.on_poll["*"] = [slow, hang]
    began = rig.clock.now()
    submitted = await rig.submit()

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.last_polled_at)

    assert row.last_polled_at is not None
    assert row.next_poll_at is not None
    assert (row.last_polled_at - began).total_seconds() == 40
    assert (row.next_poll_at - began).total_seconds() == 45


@pytest.mark.req("TASK-8", "TASK-13", "TASK-25")
async def test_transient_failures_back_off_to_the_cap_and_show_as_degraded(rig: Rig) -> None:
    rig.driver.on_poll["*"] = [TransientDriverError("rate limited")]
    submitted = await rig.submit()
    waits: list[float] = []

    async with rig.running():
        for count in range(1, 11):
            row = await rig.until(submitted.task_id, _has(poll_error_count=count))
            assert row.next_poll_at is not None
            assert row.last_polled_at is not None
            waits.append((row.next_poll_at - row.last_polled_at).total_seconds())
            assert row.tracking_degraded == (count >= 3)
            assert row.event_version == (1 if count >= 3 else 0), "degraded is one event"

    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300, 300]
    assert (row.status, row.error, row.cancel_attempt_count) == ("working", None, 0)
    assert row.last_poll_error == "rate limited"
    assert row.event_kind == "tracking_degraded"


@pytest.mark.req("TASK-8")
async def test_a_good_poll_clears_the_errors_and_a_later_episode_is_a_new_event(rig: Rig) -> None:
    error = TransientDriverError("rate limited")
    rig.driver.on_poll["*"] = [error, error, error, working(), error, error, error, hang]
    submitted = await rig.submit()

    async with rig.running():
        await rig.until(submitted.task_id, lambda task: task.tracking_degraded)
        recovered = await rig.until(submitted.task_id, lambda task: task.poll_error_count == 0)
        again = await rig.until(submitted.task_id, lambda task: task.tracking_degraded)

    assert (recovered.tracking_degraded, recovered.last_poll_error) == (False, None)
    assert (recovered.event_version, again.event_version) == (1, 2)


@pytest.mark.req("TASK-9", "ORD-5", "BOUND-4")
@pytest.mark.parametrize(
    ("step", "named"),
    [
        (lambda ref: _raise(ProtocolViolation("unknown status 'SUCCEEDED'")), "SUCCEEDED"),
        (lambda ref: _build(status="done"), "done"),
        (working(remote_id="somebody-else"), "somebody-else"),
        (lambda ref: _build(status=TaskStatus.WORKING, poll_after_seconds=float("nan")), "poll_after"),
        (lambda ref: _build(status=TaskStatus.WORKING, poll_after_seconds=float("inf")), "poll_after"),
        (lambda ref: _build(status=TaskStatus.WORKING, poll_after_seconds=-1), "poll_after"),
        (lambda ref: _build(status=TaskStatus.WORKING, poll_after_seconds=0), "poll_after"),
        (lambda ref: _build(status=TaskStatus.WORKING, poll_after_seconds="5"), "poll_after"),
        (lambda ref: _build(status=TaskStatus.WORKING, poll_after_seconds=True), "poll_after"),
        (lambda ref: _build(status=TaskStatus.INPUT_REQUIRED), "input_required"),
        (asking({"form": "x" * 5_000_000}), "input_required"),
        (completed(result_artifact={"uri": "x" * 70_000}), "result_artifact"),
        (completed({"rate": float("nan")}), "result"),
    ],
)
async def test_a_remote_that_breaks_the_contract_fails_the_task_for_good(
    rig: Rig, step: Any, named: str
) -> None:
    rig.driver.on_poll["*"] = [step]
    submitted = await rig.submit()

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)
        await rig.clock.advance(1_000)

    assert (row.status, row.error_code) == ("failed", "protocol_violation")
    assert row.error is not None
    assert named in row.error
    assert "'files'" in row.error
    assert len(rig.driver.polls) == 1
    assert row.event_kind == "terminal"


@pytest.mark.req("API-3", "ORD-5")
async def test_the_error_about_a_foreign_id_does_not_give_the_tasks_own_away(rig: Rig) -> None:
    rig.driver.on_poll["*"] = [working(remote_id="r1/../other")]
    submitted = await rig.submit()

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert row.error is not None
    assert "r1" not in row.error


@pytest.mark.req("TASK-12")
@pytest.mark.parametrize(("hint", "wait"), [(0.5, 0.5), (90, 90), (1e12, 86_400)])
async def test_poll_hints_are_honoured_and_capped_at_a_day(rig: Rig, hint: float, wait: float) -> None:
    rig.driver.on_poll["*"] = [working(poll_after_seconds=hint), hang]
    submitted = await rig.submit()

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.last_polled_at)

    assert row.next_poll_at is not None
    assert row.last_polled_at is not None
    assert (row.next_poll_at - row.last_polled_at).total_seconds() == pytest.approx(wait)


@pytest.mark.req("TASK-12", "TASK-13", "NOTE-1")
async def test_input_required_is_polled_slowly_and_told_once_per_payload(rig: Rig) -> None:
    first, same, other = (
        asking({"question": "which?", "of": [1, 2]}),
        asking({"of": [1, 2], "question": "which?"}),
        asking({"question": "really?"}),
    )
    rig.driver.on_poll["*"] = [first, same, other, other, hang]
    submitted = await rig.submit()
    moments = [rig.clock.now() + timedelta(seconds=60 * number) for number in range(4)]
    versions = []

    async with rig.running():
        for moment in moments:
            row = await rig.until(submitted.task_id, _has(last_polled_at=moment))
            versions.append(row.event_version)

    assert versions == [1, 1, 2, 2]
    assert row.input_required == {"question": "really?"}


@pytest.mark.req("NOTE-1")
async def test_a_known_request_is_no_news_after_the_tracking_was_degraded_in_between(rig: Rig) -> None:
    question, error = asking({"question": "which?"}), TransientDriverError("no route")
    rig.driver.on_poll["*"] = [question, error, error, error, question, hang]
    submitted = await rig.submit()

    async with rig.running():
        await rig.until(submitted.task_id, _has(tracking_degraded=True, event_version=2))
        row = await rig.until(submitted.task_id, _has(tracking_degraded=False))

    assert (row.status, row.event_version) == ("input_required", 2)


@pytest.mark.req("TASK-24")
async def test_a_task_whose_driver_is_missing_keeps_its_state_and_comes_back_at_the_cap(
    rig: Rig, repository: FaultyTasks
) -> None:
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)
    bare = Rig(repository.as_repository, rig.clock)
    bare.drivers.clear()

    async with bare.running():
        row = await bare.until(submitted.task_id, lambda task: task.last_poll_error)

    assert row.status == "working"
    assert row.last_poll_error is not None
    assert "'fake'" in row.last_poll_error
    assert row.next_poll_at is not None
    assert (row.next_poll_at - rig.clock.now()).total_seconds() == 300
    assert row.next_cancel_at == row.next_poll_at

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)
    assert row.status == "cancelled"


class Odd(BaseException):
    """Neither an error nor an exit."""


@pytest.mark.req("PLUG-7", "TASK-10")
@pytest.mark.parametrize(
    "step",
    [
        ValueError("driver bug"),
        asyncio.CancelledError(),
        Odd("odd"),
        GeneratorExit(),
        lambda ref: _answer(None),
        lambda ref: _answer({"status": "working"}),
        lambda ref: _cancel_yourself(),
    ],
)
async def test_whatever_a_driver_does_to_one_task_the_others_go_on(rig: Rig, step: Any) -> None:
    rig.driver.on_poll["r1"] = [step]
    rig.driver.on_poll["*"] = [completed("fine")]
    broken, fine = await rig.submit(), await rig.submit()

    async with rig.running():
        sibling = await rig.until(fine.task_id, lambda task: task.status.terminal)
        row = await rig.until(broken.task_id, lambda task: task.poll_error_count)

    assert sibling.result == "fine"
    assert row.status == "working"
    assert row.last_poll_error is not None
    assert "fake-plugin" in row.last_poll_error


@pytest.mark.req("TASK-6", "PLUG-7", "TASK-10")
@pytest.mark.parametrize("step", [hang, hang_stubbornly])
async def test_a_hanging_poll_ends_before_its_lease_and_holds_nobody_up(rig: Rig, step: Any) -> None:
    rig.driver.on_poll["r1"] = [step]
    rig.driver.on_poll["*"] = [completed("fine")]
    stuck, fine = await rig.submit(), await rig.submit()
    began = rig.clock.monotonic()

    async with rig.running():
        await rig.until(fine.task_id, lambda task: task.status.terminal)
        assert rig.clock.monotonic() == began, "the sibling waited for the hanging call"
        row = await rig.until(stuck.task_id, lambda task: task.poll_error_count)

    assert rig.clock.monotonic() - began < rig.settings.lease_seconds
    assert row.last_poll_error is not None
    assert "no answer" in row.last_poll_error


@pytest.mark.req("TASK-21", "TASK-25")
async def test_no_more_polls_are_under_way_than_the_settings_allow(
    repository: FaultyTasks, clock: FakeClock
) -> None:
    rig = Rig(repository.as_repository, clock, settings=TaskSettings(concurrency=3))
    gate = asyncio.Event()

    async def wait(_: object) -> TaskSnapshot:
        await gate.wait()
        return completed()

    rig.driver.on_poll["*"] = [wait]
    tasks = [await rig.submit() for _ in range(10)]

    async with rig.running():
        await eventually(lambda: rig.driver.under_way == 3)
        gate.set()
        for task in tasks:
            await rig.until(task.task_id, lambda task: task.status.terminal)

    assert rig.driver.most_under_way == 3


@pytest.mark.req("TASK-21")
async def test_what_is_due_is_drained_without_waiting_for_a_tick(rig: Rig, repository: FaultyTasks) -> None:
    rig.driver.on_poll["*"] = [working()]
    for _ in range(100):
        await rig.submit()

    async with rig.running():
        await eventually(lambda: len(rig.driver.polls) == 100)

    assert rig.clock.monotonic() == 0
    assert sorted(rig.driver.polls) == sorted(f"r{n}" for n in range(1, 101)), "each of them once"


@pytest.mark.req("TASK-21", "TASK-25")
async def test_polls_come_at_the_interval_that_is_set(repository: FaultyTasks, clock: FakeClock) -> None:
    rig = Rig(repository.as_repository, clock, settings=TaskSettings(poll_interval_seconds=0.5))
    await rig.submit()

    async with rig.running():
        await clock.drive(lambda: len(rig.driver.polls) == 5)

    assert clock.monotonic() == pytest.approx(2)


@pytest.mark.req("TASK-6", "PLUG-7")
async def test_a_call_that_never_lets_go_keeps_no_place(repository: FaultyTasks, clock: FakeClock) -> None:
    rig = Rig(repository.as_repository, clock, settings=TaskSettings(concurrency=1))
    let_go = asyncio.Event()
    rig.driver.on_poll["*"] = [_never(let_go), completed("fine")]
    first, second = await rig.submit(), await rig.submit(server="other")

    async with rig.running():
        await eventually(lambda: rig.driver.polls)
        for each in (first, second):
            await rig.until(each.task_id, lambda task: task.last_polled_at)
        let_go.set()


@pytest.mark.req("TASK-21")
async def test_an_idle_scheduler_is_woken_by_a_submission(rig: Rig) -> None:
    async with rig.running():
        await eventually(lambda: rig.clock.sleeping)
        await rig.submit()
        await eventually(lambda: rig.driver.polls)

    assert rig.clock.monotonic() == 0


@pytest.mark.req("TASK-6", "TASK-21")
async def test_tasks_that_waited_too_long_for_a_free_place_are_given_back_unpolled(
    repository: FaultyTasks, clock: FakeClock
) -> None:
    rig = Rig(repository.as_repository, clock, settings=TaskSettings(concurrency=1))
    rig.driver.on_poll["*"] = [hang]
    stuck, waiting = await rig.submit(), await rig.submit()
    rig.scheduler._demand._least = 2

    async with rig.running():
        await eventually(lambda: rig.driver.polls)
        await clock.drive(lambda: repository.calls["release"])
        assert clock.monotonic() <= rig.settings.lease_seconds * 0.16

    assert len(rig.driver.polls) == 1
    for task in (stuck, waiting):
        assert (await rig.task(task.task_id)).poll_error_count == 0


@pytest.mark.req("TASK-10", "PLUG-7")
async def test_a_server_whose_calls_hang_does_not_starve_the_others(rig: Rig) -> None:
    async def by_server(ref: TaskRef) -> TaskSnapshot:
        return completed("fine") if ref.server == "healthy" else await hang()

    rig.driver.on_poll["*"] = [by_server]
    stuck = [await rig.submit(server="dead") for _ in range(30)]
    settings = rig.settings

    async with rig.running():
        await eventually(lambda: rig.driver.under_way == settings.concurrency)
        for _ in range(4):
            late = await rig.submit(server="healthy")
            began = rig.clock.monotonic()
            await rig.until(late.task_id, lambda task: task.status.terminal, within=20)
            if began:
                assert rig.clock.monotonic() - began <= settings.poll_interval_seconds
            await rig.clock.advance(settings.lease_seconds)

    for each in stuck:
        assert (await rig.task(each.task_id)).status == "working"


@pytest.mark.req("TASK-6")
async def test_a_result_that_comes_after_its_lease_is_not_written(rig: Rig, repository: FaultyTasks) -> None:
    submitted = await rig.submit()
    claims: list[Any] = []

    async def stall() -> None:
        # The process stood still, and another replica took over meanwhile.
        rig.clock.move(rig.settings.lease_seconds + 1)
        claims.extend(await rig.repository.claim("replica-2", limit=1, lease_seconds=120))

    rig.driver.on_poll["*"] = [completed("stale"), hang]
    repository.faults["apply"] = [stall]

    async with rig.running():
        await eventually(lambda: repository.calls["claim"] > 2)
        row = await rig.task(submitted.task_id)
        assert await repository.free() == set(), "the other replica's lease is untouched"

    assert row.status == "working"


class PoisonRefused(FaultyTasks):
    """A store that cannot take one particular value, and loses the whole batch over it."""

    async def apply(self, updates: Sequence[TaskUpdate]) -> frozenset[str]:
        if any(update.outcome and "poison" in (update.outcome.result_json or "") for update in updates):
            raise ValueError("unsupported Unicode escape sequence")
        return await self._inner.apply(updates)


@pytest.mark.req("TASK-10")
async def test_a_row_that_the_store_refuses_costs_its_siblings_nothing_and_is_recovered(
    repository: FaultyTasks, clock: FakeClock
) -> None:
    rig = Rig(PoisonRefused(repository.as_repository).as_repository, clock)
    rig.driver.on_poll["r1"] = [completed("poison"), completed("fine now")]
    rig.driver.on_poll["*"] = [completed("fine")]
    poisoned, sibling = await rig.submit(), await rig.submit()

    async with rig.running():
        row = await rig.until(sibling.task_id, lambda task: task.status.terminal)
        assert rig.clock.monotonic() == 0
        healed = await rig.until(poisoned.task_id, lambda task: task.status.terminal)

    assert (row.result, healed.result) == ("fine", "fine now")


@pytest.mark.req("TASK-10")
async def test_the_scheduler_survives_a_store_in_trouble_and_says_so_once(
    rig: Rig, repository: FaultyTasks, caplog: pytest.LogCaptureFixture
) -> None:
    rig.driver.on_poll["*"] = [completed("fine")]
    submitted = await rig.submit()
    repository.faults["expire_intents"] = [StoreUnavailable("gone")]
    repository.faults["claim"] = [RuntimeError("bug"), StoreUnavailable("gone")]
    repository.faults["apply"] = [StoreUnavailable("gone"), StoreUnavailable("gone")]

    with caplog.at_level(logging.WARNING):
        async with rig.running():
            row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert row.result == "fine"
    assert len(rig.driver.polls) == 1, "the result was kept until the store took it"
    assert "the task scheduler is in trouble" in caplog.text
    assert rig.clock.monotonic() > 0, "it backed off"


@pytest.mark.req("TASK-11")
async def test_shutdown_loses_nothing_counts_nothing_and_gives_leases_back(
    rig: Rig, repository: FaultyTasks
) -> None:
    rig.driver.on_poll["*"] = [hang]
    submitted = [await rig.submit() for _ in range(3)]

    async with rig.running():
        await eventually(lambda: len(rig.driver.polls) == 3)

    for each in submitted:
        row = await rig.task(each.task_id)
        assert (row.status, row.poll_error_count, row.last_polled_at) == ("working", 0, None)
    assert await repository.free() == {each.task_id for each in submitted}


@pytest.mark.req("TASK-11")
async def test_shutdown_is_bounded_with_a_driver_that_never_lets_go(rig: Rig) -> None:
    let_go = asyncio.Event()
    rig.driver.on_poll["*"] = [_never(let_go)]
    await rig.submit()
    loop = asyncio.get_running_loop()

    async with rig.running():
        await eventually(lambda: rig.driver.polls)
        began = loop.time()
    took = loop.time() - began
    let_go.set()

    assert took < 5


@pytest.mark.req("TASK-11")
async def test_results_that_were_in_hand_at_shutdown_are_written(rig: Rig, repository: FaultyTasks) -> None:
    rig.driver.on_poll["*"] = [completed("fine")]
    submitted = await rig.submit()
    blocked = asyncio.Event()
    repository.faults["apply"] = [blocked.wait]

    async with rig.running():
        await eventually(lambda: repository.calls["apply"] == 1)

    assert (await rig.task(submitted.task_id)).status == "completed"


@pytest.mark.req("TASK-11")
async def test_a_claim_that_lands_during_shutdown_is_given_back(rig: Rig, repository: FaultyTasks) -> None:
    task_id = (await rig.submit()).task_id
    release = asyncio.Event()
    repository.faults["claim"] = [release.wait]

    async with rig.running():
        await eventually(lambda: repository.calls["claim"] == 1)
        asyncio.get_running_loop().call_later(0.05, release.set)

    assert repository.calls["release"] == 1
    assert await repository.free() == {task_id}


@pytest.mark.req("TASK-10", "TASK-19")
async def test_a_killed_replicas_tasks_are_taken_over_within_one_lease(
    rig: Rig, repository: FaultyTasks
) -> None:
    submitted = await rig.submit()
    await repository.claim("dead-replica", limit=5, lease_seconds=rig.settings.lease_seconds)
    rig.driver.on_poll["*"] = [completed("taken over")]

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert row.result == "taken over"
    assert rig.clock.monotonic() <= rig.settings.lease_seconds


@pytest.mark.req("TASK-10")
async def test_starting_and_stopping_many_times_leaves_no_task_behind(rig: Rig) -> None:
    rig.driver.on_poll["*"] = [working(), hang]
    await rig.submit()
    asyncio.get_running_loop().set_debug(True)
    for _ in range(20):
        async with rig.running(notifier=True):
            await asyncio.sleep(0)
    # The fixture fails the test for any task that is still there.


async def test_finished_tasks_are_deleted_after_their_retention_and_never_without_one(
    repository: FaultyTasks, clock: FakeClock
) -> None:
    keeps = Rig(repository.as_repository, clock)
    keeps.driver.on_submit = [completed("done")]
    over = await keeps.submit()
    keeps.driver.on_submit = [working(poll_after_seconds=86_400)]
    under_way = await keeps.submit()
    async with keeps.running(notifier=True):
        await keeps.until(over.task_id, lambda task: task.notification_status == "delivered")
    clock.move(3 * 86_400)

    async with keeps.running():
        await eventually(lambda: clock.sleeping >= 2)
    assert len(await repository.rows()) == 2

    purges = Rig(repository.as_repository, clock, settings=TaskSettings(retention_days=2))
    async with purges.running():
        await eventually(lambda: repository.calls["purge"])
        await clock.advance(1)
    assert [row.task_id for row in await repository.rows()] == [under_way.task_id]


@pytest.mark.req("BOUND-1")
async def test_errors_are_stored_bounded(rig: Rig) -> None:
    rig.driver.on_poll["r1"] = [failed("e" * 5_000_000 + "\0")]
    rig.driver.on_poll["r2"] = [TransientDriverError("t" * 5_000_000)]
    first, second = await rig.submit(), await rig.submit()

    async with rig.running():
        ended = await rig.until(first.task_id, lambda task: task.status.terminal)
        shaky = await rig.until(second.task_id, lambda task: task.poll_error_count)

    assert len(ended.error or "") == 4_000
    assert len(shaky.last_poll_error or "") == 4_000


@pytest.mark.req("CRED-9")
async def test_known_secrets_are_taken_out_of_stored_errors(
    repository: FaultyTasks, clock: FakeClock
) -> None:
    rig = Rig(repository.as_repository, clock)
    rig.scheduler._visitor._asker._redact = lambda text: text.replace("hunter2-secret", "***")
    rig.driver.on_poll["*"] = [TransientDriverError("401 for token hunter2-secret")]
    submitted = await rig.submit()

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.last_poll_error)

    assert row.last_poll_error == "401 for token ***"


def _has(**fields: Any) -> Callable[[TaskRecord], bool]:
    return lambda task: all(getattr(task, name) == value for name, value in fields.items())


def _never(let_go: asyncio.Event) -> Callable[[object], Awaitable[TaskSnapshot]]:
    """A call that ignores every cancellation until it may end."""

    async def call(_: object) -> TaskSnapshot:
        while not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await let_go.wait()
        return working()

    return call


async def _raise(exc: BaseException) -> TaskSnapshot:
    raise exc


async def _build(**fields: Any) -> TaskSnapshot:
    return TaskSnapshot(**fields)


async def _answer(value: object) -> object:
    return value


async def _cancel_yourself() -> TaskSnapshot:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return working()
