"""A correct sink that deduplicates, a correct one whose receiver does, and what can be wrong with them."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from moorage.contract import (
    AttentionKind,
    DeliveryOutcome,
    DeliveryState,
    Notification,
    SinkSpec,
)
from moorage.testing import SinkConformance
from support.mutants.model import Mutant

SECRET = "whsec-0d51f7a2"


class Target:
    """Takes messages by key, one effect a key, like a table with a unique index."""

    def __init__(self) -> None:
        self.taken: dict[str, Any] = {}
        self.order: list[Any] = []
        self.broken = False
        self.seconds = 0.0

    async def put(self, key: str, message: Any) -> None:
        await asyncio.sleep(self.seconds)
        if self.broken:
            raise ConnectionError(f"the target refused {SECRET}")
        if key not in self.taken:
            self.taken[key] = message
            self.order.append(message)

    async def append(self, message: Any) -> None:
        await self.put(f"{len(self.order)}-{id(message)}-{time.monotonic_ns()}", message)

    async def has(self, key: str) -> bool:
        await asyncio.sleep(0.001)
        return key in self.taken


class TableSink:
    """Correct: writes each delivery under its id."""

    def __init__(self, target: Target) -> None:
        self.target = target

    async def deliver(self, notification: Notification) -> Any:
        try:
            await self.send(notification)
        except ConnectionError as error:
            return self.failed(error)
        return DeliveryOutcome(DeliveryState.DELIVERED)

    async def send(self, notification: Notification) -> None:
        await self.target.put(notification.delivery_id, self.message(notification))

    def message(self, notification: Notification) -> Any:
        return {
            "task": notification.task_id,
            "kind": notification.kind.value,
            "id": notification.delivery_id,
            "result": json.dumps(notification.result),
        }

    def failed(self, error: Exception) -> DeliveryOutcome:
        return DeliveryOutcome(DeliveryState.FAILED, type(error).__name__, retry_after_seconds=30.0)


class PostingSink(TableSink):
    """Correct where the receiver deduplicates: every message carries the delivery's id."""

    async def send(self, notification: Notification) -> None:
        await self.target.append(self.message(notification))


class TableConformance(SinkConformance):
    """The suite of `TableSink` and its mutants."""

    sink: type[TableSink] = TableSink

    @asynccontextmanager
    async def open_target(self) -> AsyncIterator[None]:
        self.target = Target()
        yield

    def spec(self) -> SinkSpec:
        return SinkSpec("table", lambda gateway: type(self).sink(self.target))

    def effects(self) -> Sequence[Any]:
        return tuple(self.target.order)

    def break_target(self) -> None:
        self.target.broken = True

    def mend_target(self) -> None:
        self.target.broken = False

    def slow_target(self, seconds: float) -> None:
        self.target.seconds = seconds

    def hidden(self) -> Sequence[str]:
        return (SECRET,)


class PostingConformance(TableConformance):
    """The suite of `PostingSink` and its mutants."""

    sink = PostingSink
    deduplicates = "receiver"

    def id_of(self, effect: Any) -> str | None:
        return effect.get("id") if isinstance(effect, Mapping) else None


class ByTask(TableSink):
    async def send(self, notification: Notification) -> None:
        await self.target.put(notification.task_id, self.message(notification))


class Appends(TableSink):
    async def send(self, notification: Notification) -> None:
        await self.target.append(self.message(notification))


class RemembersTooEarly(TableSink):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.seen: set[str] = set()

    async def send(self, notification: Notification) -> None:
        if notification.delivery_id not in self.seen:
            self.seen.add(notification.delivery_id)
            await super().send(notification)


class RemembersInMemory(TableSink):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.seen: set[str] = set()

    async def send(self, notification: Notification) -> None:
        if notification.delivery_id not in self.seen:
            await self.target.append(self.message(notification))
            self.seen.add(notification.delivery_id)


class LooksFirst(TableSink):
    async def send(self, notification: Notification) -> None:
        known = any(notification.delivery_id == one["id"] for one in self.target.order)
        await asyncio.sleep(0.005)
        if not known:
            await self.target.append(self.message(notification))


class AlwaysDelivered(TableSink):
    def failed(self, error: Exception) -> DeliveryOutcome:
        return DeliveryOutcome(DeliveryState.DELIVERED)


class AlwaysGone(TableSink):
    def failed(self, error: Exception) -> DeliveryOutcome:
        return DeliveryOutcome(DeliveryState.GONE, "it is gone")


class ReturnsTrue(TableSink):
    async def deliver(self, notification: Notification) -> Any:
        await self.send(notification)
        return True


class OnlyEnds(TableSink):
    async def send(self, notification: Notification) -> None:
        if notification.kind is AttentionKind.TERMINAL:
            await super().send(notification)


class RetriesItself(TableSink):
    async def send(self, notification: Notification) -> None:
        for _ in range(30):
            try:
                return await super().send(notification)
            except ConnectionError:
                await asyncio.sleep(0.1)
        return await super().send(notification)


class SwallowsCancellation(TableSink):
    async def send(self, notification: Notification) -> None:
        try:
            await super().send(notification)
        except asyncio.CancelledError:
            return


class ShieldsItself(TableSink):
    async def send(self, notification: Notification) -> None:
        await asyncio.shield(asyncio.ensure_future(super().send(notification)))


class SendsInTheBackground(TableSink):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.tasks: set[Any] = set()

    async def send(self, notification: Notification) -> None:
        task = asyncio.ensure_future(super().send(notification))
        self.tasks.add(task)
        task.add_done_callback(self.ended)

    def ended(self, task: Any) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()


class BlocksTheLoop(TableSink):
    async def send(self, notification: Notification) -> None:
        time.sleep(0.3)
        await super().send(notification)


class OneAtATime(TableSink):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.lock = asyncio.Lock()

    async def send(self, notification: Notification) -> None:
        async with self.lock:
            await super().send(notification)


class OnlyStrictJson(TableSink):
    def message(self, notification: Notification) -> Any:
        json.dumps(notification.result, allow_nan=False)
        return super().message(notification)


class OnlyUtf8(TableSink):
    def message(self, notification: Notification) -> Any:
        json.dumps(notification.result, ensure_ascii=False).encode()
        return super().message(notification)


class NeedsAThread(TableSink):
    def message(self, notification: Notification) -> Any:
        return {**super().message(notification), "thread": notification.thread_id.upper()}  # type: ignore[union-attr]


class ChangesResults(TableSink):
    def message(self, notification: Notification) -> Any:
        if isinstance(notification.result, dict):
            notification.result["seen"] = True
        return super().message(notification)


class WishesNonsense(TableSink):
    def failed(self, error: Exception) -> DeliveryOutcome:
        return DeliveryOutcome(DeliveryState.FAILED, "no", retry_after_seconds=-1.0)


class QuotesTheSecret(TableSink):
    def failed(self, error: Exception) -> DeliveryOutcome:
        return DeliveryOutcome(DeliveryState.FAILED, str(error))


class FreshIds(PostingSink):
    numbers = itertools.count()

    def message(self, notification: Notification) -> Any:
        return {**super().message(notification), "id": f"message-{next(self.numbers)}"}


class NoIds(PostingSink):
    def message(self, notification: Notification) -> Any:
        return {"task": notification.task_id}


class MixesUpMessages(TableSink):
    message_now: Any = None

    async def send(self, notification: Notification) -> None:
        self.message_now = self.message(notification)
        await asyncio.sleep(0.005)
        await self.target.put(notification.delivery_id, self.message_now)


BROKEN: Mapping[type[TableSink], tuple[str, str]] = {
    Appends: ("repeats what was delivered", "test_a_repetition_has_one_effect"),
    FreshIds: ("gives a repetition another id", "test_a_repetition_has_one_effect"),
    NoIds: ("carries no id", "test_a_repetition_has_one_effect"),
    RemembersInMemory: ("remembers deliveries in memory only", "test_a_repetition_by_another_process"),
    LooksFirst: ("looks first and writes later", "test_concurrent_repetitions"),
    ByTask: ("takes a task's events for one", "test_other_deliveries_are_others"),
    AlwaysDelivered: ("says delivered of a failure", "test_a_failing_target"),
    AlwaysGone: ("gives up for good on a failure", "test_a_failing_target"),
    RemembersTooEarly: ("remembers before it has sent", "test_delivers_after_a_failure"),
    RetriesItself: ("retries by itself", "test_does_not_retry_for_long"),
    ReturnsTrue: ("returns True", "test_delivers_every_kind"),
    OnlyEnds: ("delivers only ends", "test_delivers_every_kind"),
    SendsInTheBackground: ("says delivered before it is", "test_a_failing_target"),
    SwallowsCancellation: ("swallows its cancellation", "test_cancellation_passes"),
    ShieldsItself: ("leaves deliveries running", "test_cancellation_passes"),
    BlocksTheLoop: ("blocks the event loop", "test_deliveries_do_not_wait_for_each_other"),
    OneAtATime: ("delivers one at a time", "test_deliveries_do_not_wait_for_each_other"),
    MixesUpMessages: ("mixes up messages", "test_concurrent_deliveries"),
    OnlyStrictJson: ("chokes on NaN", "test_odd_content"),
    OnlyUtf8: ("chokes on lone surrogates", "test_odd_content"),
    NeedsAThread: ("needs a thread", "test_odd_content"),
    ChangesResults: ("changes the notification", "test_changes_nothing"),
    WishesNonsense: ("wishes for a retry in the past", "test_a_sensible_retry_wish"),
    QuotesTheSecret: ("quotes its secret", "test_shows_no_secret"),
}


def sink_mutants() -> list[Mutant]:
    made = []
    for kind, (fault, caught_by) in BROKEN.items():
        base = PostingConformance if issubclass(kind, PostingSink) else TableConformance
        made.append(Mutant("sink", fault, type(kind.__name__, (base,), {"sink": kind}), caught_by))
    return made
