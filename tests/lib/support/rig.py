"""The task runtime on a repository of choice, a fake driver and a fake clock."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from moorage.clock import SystemClock
from moorage.contract import (
    CallContext,
    Clock,
    DeliveryOutcome,
    DeliveryState,
    Notification,
    Principal,
    SubmittedTask,
    TaskBinding,
    TaskRecord,
    TaskRepository,
)
from moorage.settings import TaskSettings
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.notifier import Notifier
from moorage.tasks.scheduler import Scheduler
from moorage.tasks.service import TaskService
from support.clock import FakeClock
from support.fake_driver import FakeDriver

ALICE = Principal("alice")
CONTEXT = CallContext(principal=ALICE, thread_id="t1", run_id="run1", assistant_id="direct")


class FakeSink:
    """Answers from a script like `FakeDriver`; ``seen`` records every delivery as it begins."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.seen: list[Notification] = []

    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        self.seen.append(notification)
        if not self.script:
            return DeliveryOutcome(DeliveryState.DELIVERED)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            step = await step()
        if isinstance(step, DeliveryState):
            return DeliveryOutcome(step)
        outcome: DeliveryOutcome = step
        return outcome

    @property
    def ids(self) -> list[str]:
        return [notification.delivery_id for notification in self.seen]


C = TypeVar("C", bound=Clock)


@dataclass
class Replica(Generic[C]):
    """Everything of one replica. ``repository`` is what the parts use; wrap it to inject faults."""

    repository: TaskRepository
    clock: C
    driver: FakeDriver = field(default_factory=FakeDriver)
    settings: TaskSettings = field(default_factory=TaskSettings)
    sink: FakeSink = field(default_factory=FakeSink)
    others: dict[str, FakeSink] = field(default_factory=dict)
    owner: str = "replica-1"

    def __post_init__(self) -> None:
        self.drivers = {"fake": NamedDriver("fake", "fake-plugin", self.driver)}
        self.notifier = Notifier(
            repository=self.repository,
            sinks={"thread": self.sink, **self.others},
            primary="thread",
            settings=self.settings,
            clock=self.clock,
            owner=self.owner,
            jitter=0.0,
        )
        self.scheduler = Scheduler(
            repository=self.repository,
            drivers=self.drivers,
            settings=self.settings,
            clock=self.clock,
            owner=self.owner,
            on_attention=self.notifier.wake,
            jitter=0.0,
        )
        self.service = TaskService(
            repository=self.repository,
            drivers=self.drivers,
            settings=self.settings,
            clock=self.clock,
            owner=self.owner,
            wake=self._wake,
        )

    def _wake(self) -> None:
        self.scheduler.wake()
        self.notifier.wake()

    async def submit(
        self, name: str = "report", *, server: str = "files", context: CallContext = CONTEXT, **binding: Any
    ) -> SubmittedTask:
        return await self.service.submit(
            server=server,
            binding=TaskBinding(driver="fake", task_name=name, **binding),
            arguments={"folder": "/srv"},
            context=context,
        )

    async def task(self, task_id: str) -> TaskRecord:
        task = await self.repository.get(task_id)
        assert task is not None
        return task

    async def until(
        self, task_id: str, condition: Callable[[TaskRecord], object], *, within: float = 10.0
    ) -> TaskRecord:
        """Let time pass (a fake clock's from wake-up to wake-up) until the row is so."""
        seen: list[TaskRecord] = []

        async def look() -> bool:
            seen.append(await self.task(task_id))
            return bool(condition(seen[-1]))

        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        while not await look():
            if loop.time() > deadline:
                raise AssertionError(f"the task did not get there in time; last seen: {seen[-1]}")
            if not isinstance(self.clock, FakeClock):
                await asyncio.sleep(0.01)
                continue
            await self.clock.settle()
            if await look():
                break
            await self.clock.step()
        return seen[-1]

    @asynccontextmanager
    async def running(self, *, scheduler: bool = True, notifier: bool = False) -> AsyncIterator[None]:
        loops = []
        if scheduler:
            loops.append(asyncio.create_task(self.scheduler.run(), name="scheduler"))
        if notifier:
            loops.append(asyncio.create_task(self.notifier.run(), name="notifier"))
        try:
            yield
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            assert all(loop.cancelled() for loop in loops), "a loop ended in something else than its stop"


Rig = Replica[FakeClock]
LiveRig = Replica[SystemClock]
