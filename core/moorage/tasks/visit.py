"""One visit to a leased task: poll it, cancel it, and say what becomes of the row (TASK-6, TASK-17)."""

import asyncio
from collections.abc import Mapping
from datetime import datetime

from moorage.contract.clock import Clock
from moorage.contract.stores import ClaimedTask, TaskUpdate
from moorage.tasks.asking import Asker, Reply
from moorage.tasks.calls import CallRunner
from moorage.tasks.drivers import NamedDriver, ref_of
from moorage.tasks.judge import Judge


class Visitor:
    """Makes the calls that a claimed task is due for and turns the replies into a `TaskUpdate`."""

    def __init__(self, drivers: Mapping[str, NamedDriver], judge: Judge, asker: Asker, clock: Clock) -> None:
        self._drivers = drivers
        self._judge = judge
        self._asker = asker
        self._clock = clock
        self._calls = CallRunner(clock)

    async def visit(self, claim: ClaimedTask, seconds: float) -> TaskUpdate:
        """Call the driver, for at most ``seconds``. Never raises but for a true cancellation."""
        named = self._drivers.get(claim.task.driver)
        if named is None:
            return self._judge.orphan(claim)
        poll_due, cancel_due = self._judge.due(claim.task)
        if cancel_due:
            visit = _CancelVisit(claim, named, self._judge, self._asker, self._calls, self._clock)
            return await visit.run(poll_due, seconds)
        reply = await self._asker.status(named, ref_of(claim.task))
        return self._judge.after_poll(claim, reply)

    def unanswered(self, claim: ClaimedTask, reason: str) -> TaskUpdate:
        """What a visit that did not end by itself comes to."""
        named = self._drivers.get(claim.task.driver)
        reply = (
            self._asker.failed(TimeoutError(reason), named, claim.task.server_name)
            if named
            else Reply(error=reason)
        )
        poll_due, cancel_due = self._judge.due(claim.task)
        judge = self._judge
        update = judge.after_poll(claim, reply) if poll_due else judge.untouched(claim)
        return judge.after_cancel(claim, update, reply) if cancel_due else update

    async def aclose(self) -> None:
        await self._calls.aclose()


class _CancelVisit:
    """A visit to a task whose cancel is due.

    The cancel call runs beside the polls, which go on at their own pace while it hangs: what a poll finds
    out is never held up by it (TASK-17).
    """

    def __init__(
        self,
        claim: ClaimedTask,
        named: NamedDriver,
        judge: Judge,
        asker: Asker,
        calls: CallRunner,
        clock: Clock,
    ) -> None:
        self._claim = claim
        self._named = named
        self._judge = judge
        self._asker = asker
        self._calls = calls
        self._clock = clock
        self._ref = ref_of(claim.task)
        self._update = judge.untouched(claim)
        self._poll: asyncio.Task[Reply] | None = None
        self._poll_at = self._moment(claim.task.next_poll_at)
        self._ends_at = 0.0

    async def run(self, poll_due: bool, seconds: float) -> TaskUpdate:
        self._ends_at = self._clock.monotonic() + seconds
        cancel = self._calls.start(self._asker.cancel(self._named, self._ref))
        if poll_due:
            self._start_poll()
        try:
            while not await self._step(cancel):
                pass
        finally:
            cancel.cancel()
            if self._poll is not None:
                self._poll.cancel()
        if self._poll is not None and poll_due and self._update == self._judge.untouched(self._claim):
            self._update = self._unanswered_poll(cancel)
        reply = _reply(cancel) or self._late("no answer to the cancel call in time")
        return self._judge.after_cancel(self._claim, self._update, reply)

    async def _step(self, cancel: "asyncio.Task[Reply]") -> bool:
        """Wait for the next thing to happen; True once the visit is over."""
        now = self._clock.monotonic()
        if self._poll is None and now >= self._poll_at:
            self._start_poll()
        until = self._ends_at if self._poll is not None else min(self._ends_at, self._poll_at)
        waiting = {task for task in (cancel, self._poll) if task is not None and not task.done()}
        await self._calls.wait(waiting, until - now)
        if self._poll is not None and self._poll.done() and self._polled():
            return True
        reply = _reply(cancel)
        if reply is not None and (self._poll is None or reply.terminal):
            return True
        return self._clock.monotonic() >= self._ends_at

    def _polled(self) -> bool:
        """Take the poll's reply; True where the row must learn of it now."""
        reply = _reply(self._poll)
        self._poll = None
        if reply is None:
            return False
        self._update = self._judge.after_poll(self._claim, reply)
        self._poll_at = self._moment(self._update.next_poll_at)
        if self._update.poll_error is not None:
            # The error is written before the next poll would be due; until then the cancel has time.
            self._ends_at = min(self._ends_at, self._poll_at)
            self._poll_at = float("inf")
        return reply.terminal or self._update.attention is not None

    def _unanswered_poll(self, cancel: "asyncio.Task[Reply]") -> TaskUpdate:
        reply = _reply(cancel)
        if reply is not None and reply.terminal:
            return self._update
        return self._judge.after_poll(self._claim, self._late("no answer in time"))

    def _late(self, reason: str) -> Reply:
        return self._asker.unanswered(reason, self._named)

    def _start_poll(self) -> None:
        self._poll = self._calls.start(self._asker.status(self._named, self._ref))

    def _moment(self, at: datetime | None) -> float:
        if at is None:
            return float("inf")
        return self._clock.monotonic() + (at - self._clock.now()).total_seconds()


def _reply(task: "asyncio.Task[Reply] | None") -> Reply | None:
    if task is None or not task.done() or task.cancelled():
        return None
    return task.result()
