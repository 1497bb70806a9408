"""Several runs on one thread, delayed runs, and threads that do not exist yet (RUN-5)."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from support.clock import FakeClock
from support.memory_store import MemoryStore
from support.runs import ALICE, BOB, ScriptedAssistant, request, run_service, until

from moorage.contract import NotFound, RunContext, RunRecord, RunStatus, Store
from moorage.runs.service import RunService
from moorage.runs.turns import Turns


class Steps(ScriptedAssistant):
    """Runs wait until they are told to go on; tells who is inside."""

    def __init__(self) -> None:
        super().__init__(self._step)
        self.go: dict[str, asyncio.Event] = {}
        self.inside: list[str] = []
        self.most = 0

    async def _step(self, run: RunContext) -> None:
        self.inside.append(run.run_id)
        self.most = max(self.most, len(self.inside))
        try:
            await self.go.setdefault(run.run_id, asyncio.Event()).wait()
        finally:
            self.inside.remove(run.run_id)

    def is_inside(self, run_id: str) -> bool:
        return self.inside == [run_id]

    def let(self, run_id: str) -> None:
        self.go.setdefault(run_id, asyncio.Event()).set()


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
async def stepped(make_service: Callable[..., Any], steps: Steps) -> RunService:
    service: RunService = await make_service(assistants={"echo": steps})
    await service.threads.create(ALICE, thread_id="t1")
    return service


async def test_enqueued_runs_take_their_turn_one_at_a_time(stepped: RunService, steps: Steps) -> None:
    runs = [await stepped.create(request(multitask_strategy="enqueue", input=n)) for n in range(4)]
    for run in runs:
        await until(partial(steps.is_inside, run.run_id))
        steps.let(run.run_id)
    results = [await stepped.join(ALICE, "t1", run.run_id) for run in runs]
    assert {result.run.status for result in results} == {RunStatus.SUCCESS}
    assert [run.run_id for run in steps.runs] == [run.run_id for run in runs]
    assert steps.most == 1


async def test_an_enqueued_run_can_be_cancelled_before_its_turn(stepped: RunService, steps: Steps) -> None:
    first = await stepped.create(request())
    second = await stepped.create(request(multitask_strategy="enqueue"))
    third = await stepped.create(request(multitask_strategy="enqueue"))
    assert (await stepped.cancel(ALICE, "t1", second.run_id)).status is RunStatus.INTERRUPTED
    steps.let(first.run_id)
    await until(lambda: steps.inside == [third.run_id])
    steps.let(third.run_id)
    await stepped.join(ALICE, "t1", third.run_id)
    assert second.run_id not in {run.run_id for run in steps.runs}
    assert (await stepped.threads.get(ALICE, "t1")).status == "idle"


async def test_interrupt_ends_what_runs_and_keeps_its_record(stepped: RunService, steps: Steps) -> None:
    first = await stepped.create(request())
    await until(lambda: steps.inside == [first.run_id])
    second = await stepped.create(request(multitask_strategy="interrupt"))
    await until(lambda: steps.inside == [second.run_id])
    assert (await stepped.get(ALICE, "t1", first.run_id)).status is RunStatus.INTERRUPTED
    steps.let(second.run_id)
    assert (await stepped.join(ALICE, "t1", second.run_id)).run.status is RunStatus.SUCCESS
    assert steps.most == 1


async def test_rollback_removes_what_runs_as_if_it_had_never_been(stepped: RunService, steps: Steps) -> None:
    first = await stepped.create(request())
    await until(lambda: steps.inside == [first.run_id])
    second = await stepped.create(request(multitask_strategy="rollback"))
    await until(lambda: steps.inside == [second.run_id])
    with pytest.raises(NotFound):
        await stepped.get(ALICE, "t1", first.run_id)
    steps.let(second.run_id)
    await stepped.join(ALICE, "t1", second.run_id)
    assert [run.run_id for run in await stepped.list(ALICE, "t1")] == [second.run_id]


async def test_two_interrupts_at_once_leave_one_running(stepped: RunService, steps: Steps) -> None:
    made = await asyncio.gather(
        *(stepped.create(request(multitask_strategy="interrupt", input=n)) for n in range(4))
    )
    last = max(made, key=lambda run: (run.created_at, run.run_id))
    await until(lambda: steps.inside == [last.run_id])
    steps.let(last.run_id)
    await stepped.join(ALICE, "t1", last.run_id)
    assert steps.most == 1


async def test_a_delayed_run_begins_in_time_and_holds_up_nobody() -> None:
    clock = FakeClock()
    store = MemoryStore(clock)
    assistant = ScriptedAssistant()
    service = run_service(store, clock, {"echo": assistant})
    async with service.running():
        await service.threads.create(ALICE, thread_id="t1")
        later = await service.create(request(after_seconds=100, input="later"))
        now = await service.create(request(multitask_strategy="enqueue", input="now"))
        await service.join(ALICE, "t1", now.run_id)
        assert (await service.get(ALICE, "t1", later.run_id)).status is RunStatus.PENDING
        gone = await clock.drive(lambda: store.runs.rows[later.run_id].status is RunStatus.SUCCESS)
    assert 100 <= gone < 101


async def test_a_missing_thread_is_created_only_where_the_request_says_so(
    service: RunService, store: Store
) -> None:
    with pytest.raises(NotFound):
        await service.create(request("new"))
    run = await service.create(request("new", if_not_exists="create", metadata={"m": 1}))
    await service.join(ALICE, "new", run.run_id)
    thread = await service.threads.get(ALICE, "new")
    assert thread.metadata == {"m": 1, "graph_id": "echo", "assistant_id": "echo"}
    with pytest.raises(NotFound):
        await service.create(request("new", BOB, if_not_exists="create"))


@pytest.mark.req("RUN-5")
async def test_many_queued_runs_cost_no_more_than_each_of_them(service: RunService, store: Store) -> None:
    go = asyncio.Event()
    service_echo = service.assistant("echo").assistant
    assert isinstance(service_echo, ScriptedAssistant)

    async def wait(_: RunContext) -> None:
        await go.wait()

    service_echo.script = wait
    await service.threads.create(ALICE, thread_id="t1")
    asked = 0
    listed = store.runs.list

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return await listed(*args, **options)

    vars(store.runs)["list"] = counted
    runs = [await service.create(request(multitask_strategy="enqueue")) for _ in range(30)]
    go.set()
    results = await asyncio.gather(*(service.join(ALICE, "t1", run.run_id) for run in runs))
    assert {result.run.status for result in results} == {RunStatus.SUCCESS}
    assert [one.run_id for one in service_echo.runs] == [run.run_id for run in runs]
    # Two looks at the others for each turn, and some while the first one ran; 30 * 30 would be too many.
    assert asked < 200


def test_turns_are_taken_in_the_order_in_which_runs_may_begin() -> None:
    def run(name: str, *, at: int, after: float = 0.0, thread: str = "t1") -> RunRecord:
        moment = datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=at)
        return RunRecord(
            run_id=name,
            thread_id=thread,
            user_id="alice",
            assistant_id="echo",
            status=RunStatus.PENDING,
            metadata={},
            kwargs={"after_seconds": after},
            created_at=moment,
            updated_at=moment,
        )

    late, soon, next_ = run("a", at=0, after=60), run("b", at=1), run("c", at=1)
    elsewhere = run("d", at=0, thread="t2")
    turns = Turns()
    for one in (late, next_, soon, elsewhere):
        turns.enter(one)
    assert [turns.is_first(one) for one in (late, next_, soon, elsewhere)] == [False, False, True, True]
    turns.begin(soon)
    assert not turns.is_first(next_)
    turns.leave(soon)
    assert turns.is_first(next_)
    turns.leave(next_)
    assert turns.is_first(late)
    turns.leave(late)
    assert turns.is_first(soon), "nobody is there"
