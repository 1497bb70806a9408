"""Sinks beside the primary one: told of every event once per process, best-effort (NOTE-4)."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping

from moorage.accounts import Account
from moorage.contract.clock import Clock
from moorage.contract.empty import EMPTY
from moorage.contract.sinks import DeliveryState, NotificationSink
from moorage.contract.stores import TaskRecord
from moorage.tasks.asking import Redact
from moorage.tasks.backoff import Backoff
from moorage.tasks.calls import CallRunner, SelfCancelled
from moorage.tasks.delivery import MOST_FAILURES, Courier, Delivery, notification_of
from moorage.tasks.observing import Observe, unobserved

_log = logging.getLogger(__name__)

_REMEMBERED = 10_000
_UNDER_WAY_AT_MOST = 256


class SecondarySinks:
    """Their outcomes change no row. An event is offered to each, with a few retries in this process; a
    repetition after a restart carries the same delivery id."""

    def __init__(
        self,
        sinks: Mapping[str, NotificationSink],
        clock: Clock,
        *,
        call_seconds: float,
        backoff_cap_seconds: float,
        redact: Redact,
        observe: Observe = unobserved,
        accounts: Mapping[str, Account] = EMPTY,
    ) -> None:
        self._couriers = {
            name: Courier(name, sink, redact, observe, accounts.get(name)) for name, sink in sinks.items()
        }
        self._clock = clock
        self._call_seconds = call_seconds
        self._backoff = Backoff(min(1.0, backoff_cap_seconds), backoff_cap_seconds)
        self._calls = CallRunner(clock)
        self._places = asyncio.Semaphore(_UNDER_WAY_AT_MOST)
        self._known: OrderedDict[tuple[str, int], None] = OrderedDict()

    def offer(self, task: TaskRecord, version: int) -> None:
        """Deliver in the background, unless this process has done so before."""
        event = (task.task_id, version)
        if not self._couriers or event in self._known:
            return
        self._known[event] = None
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        for name, courier in self._couriers.items():
            self._calls.start(self._deliver(name, courier, task, version))

    async def aclose(self) -> None:
        await self._calls.aclose()

    async def _deliver(self, name: str, courier: Courier, task: TaskRecord, version: int) -> None:
        notification = notification_of(task, version, 0)
        reason = None
        for failures in range(1, MOST_FAILURES + 1):
            async with self._places:
                try:
                    delivery: Delivery = await self._calls.run(
                        courier.deliver(notification), self._call_seconds
                    )
                except (TimeoutError, SelfCancelled) as exc:
                    delivery = courier.unanswered(str(exc))
            state, reason = delivery.outcome.state, delivery.outcome.reason
            if state in (DeliveryState.DELIVERED, DeliveryState.GONE):
                return
            await self._clock.sleep(self._backoff.delay(failures))
        _log.warning("task %s: sink %r did not take event %d: %s", task.task_id, name, version, reason)
