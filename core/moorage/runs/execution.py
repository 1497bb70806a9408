"""Executing runs in tasks that this process owns."""

import asyncio
import contextvars
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from moorage.contract.clock import Clock
from moorage.contract.errors import MoorageError
from moorage.contract.identity import CallContext
from moorage.contract.redaction import Redactor
from moorage.contract.runs import AssistantEvent, RunContext, RunRequest, RunStatus
from moorage.contract.stores import RunRecord, Store
from moorage.contract.tools import ToolSource
from moorage.process_exit import EXITS
from moorage.runs.directory import NamedAssistant
from moorage.runs.feeds import ELSEWHERE, Feeds, RunFeed, RunResult
from moorage.runs.identity import DEFAULT_RECURSION_LIMIT
from moorage.runs.journal import Journal
from moorage.runs.records import after_seconds
from moorage.runs.redaction import hide_run, hide_stream
from moorage.runs.secrets import Scrubber
from moorage.runs.turns import Turns, order

log = logging.getLogger(__name__)

ACTIVE = frozenset({RunStatus.PENDING, RunStatus.RUNNING})
TURN_POLL_SECONDS = 0.5
"""How often a queued run looks for the end of a run that another process executes."""


@dataclass
class Execution:
    """A run that this process executes, or holds until its turn."""

    run: RunRecord
    request: RunRequest = field(repr=False)
    named: NamedAssistant
    feed: RunFeed
    before: Callable[[], Awaitable[None]] | None = None
    task: "asyncio.Task[None] | None" = None
    started: bool = False
    doomed: bool = False
    """Cancelled before its task had a chance to run: a task that is cancelled then never runs at all."""
    began: bool = False
    ending: bool = False
    """The outcome is being recorded: nobody may interfere."""


class Executor:
    """Starts, stops and finishes the runs of this process."""

    def __init__(
        self,
        *,
        store: Store,
        tools: ToolSource,
        clock: Clock,
        replica_id: str,
        feeds: Feeds,
        journal: Journal,
        finished: Callable[[RunRequest, RunRecord | None], None],
        redactor: Redactor | None = None,
    ) -> None:
        self._store = store
        self._finished = finished
        self._tools = tools
        self._clock = clock
        self._replica_id = replica_id
        self._feeds = feeds
        self._journal = journal
        self._redactor = redactor
        self._executions: dict[str, Execution] = {}
        self._turns = Turns()
        self._moved = asyncio.Event()

    def all(self) -> list[Execution]:
        return list(self._executions.values())

    def get(self, run_id: str) -> Execution | None:
        return self._executions.get(run_id)

    def start(
        self,
        run: RunRecord,
        request: RunRequest,
        named: NamedAssistant,
        *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> RunFeed:
        """Execute in the background, when the delay is over and older runs of the thread have ended.

        ``before`` is awaited once after the delay, and may end older runs.
        """
        execution = Execution(run, request, named, self._feeds.open(hide_run(run)), before)
        execution.feed.publish("metadata", {"run_id": run.run_id, "attempt": 1})
        self._executions[run.run_id] = execution
        self._turns.enter(run)
        # A context of its own: a run that is launched from within another inherits nothing of it.
        execution.task = asyncio.create_task(
            self._lead(execution), name=f"run {run.run_id}", context=contextvars.Context()
        )
        return execution.feed

    def cancel(self, run_id: str, *, again: bool = True) -> "asyncio.Task[None] | None":
        """Cancel the execution here, if there is one; its end is recorded by the caller, beforehand.

        Not ``again``: one that has been cancelled already is left to end in its own time.
        """
        execution = self._executions.get(run_id)
        if execution is None or execution.task is None:
            return None
        if not execution.started:
            execution.doomed = True
        elif not execution.ending and (again or not execution.task.cancelling()):
            execution.task.cancel()
        return execution.task

    async def stop(self, run_id: str) -> None:
        """Cancel, and wait until nothing executes any more."""
        if (task := self.cancel(run_id)) is not None:
            await asyncio.wait([task])

    async def _lead(self, execution: Execution) -> None:
        outcome: tuple[RunStatus, str | None] | None = None
        scrubber = Scrubber(execution.request.secrets, self._redactor)
        execution.started = True
        try:
            if not execution.doomed:
                outcome = await self._execute(execution, scrubber)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or not task.cancelling():  # the assistant's own doing, nobody asked for it
                outcome = RunStatus.ERROR, _failed(execution, scrubber.error(error))
        except EXITS:
            raise
        except MoorageError as error:
            text = scrubber.error(error)
            log.warning("run %s failed: %s", execution.run.run_id, text)
            outcome = RunStatus.ERROR, text
        except BaseException as error:
            outcome = RunStatus.ERROR, _failed(execution, scrubber.error(error))
        finally:
            execution.ending = True
            ended: RunRecord | None = execution.run
            try:
                ended = await self._finish(execution, outcome)
            finally:
                del self._executions[execution.run.run_id]
                self._turns.leave(execution.run)
                self._announce()
                self._finished(execution.request, ended)

    async def _execute(self, execution: Execution, scrubber: Scrubber) -> tuple[RunStatus, str | None] | None:
        run = execution.run
        while True:
            await self._await_turn(execution)
            if await self._store.runs.begin(run.run_id, self._replica_id):
                break
            now = await self._store.runs.get(run.run_id)
            if now is None or now.status is not RunStatus.PENDING or now.owner != self._replica_id:
                return None  # ended meanwhile, or another process's by now
            await self._sleep_until_moved()
        execution.began = True
        self._turns.begin(run)
        await self._journal.started(run)
        context = await self._context(execution, scrubber)
        with execution.named.account.call():
            stream: object = execution.named.assistant.stream(context, execution.request.input)
            if not isinstance(stream, AsyncIterator):
                raise TypeError(f"stream answered with {type(stream).__name__}, not an async iterator")
            try:
                async for event in stream:
                    await self._pass_on(execution, event)
            finally:
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()
        return RunStatus.SUCCESS, None

    async def _context(self, execution: Execution, scrubber: Scrubber) -> RunContext:
        run, request = execution.run, execution.request
        call = CallContext(
            principal=request.principal,
            thread_id=run.thread_id,
            run_id=run.run_id,
            assistant_id=run.assistant_id,
            secrets=request.secrets,
        )
        return RunContext(
            thread_id=run.thread_id,
            run_id=run.run_id,
            call=call,
            tools=await self._tools.tools(call),
            internal=run.internal,
            metadata=run.metadata,
            context=request.context,
            config=request.config,
            recursion_limit=request.config.get("recursion_limit", DEFAULT_RECURSION_LIMIT),
            checkpoint_id=request.checkpoint_id,
            command=request.command,
            interrupt_before=request.interrupt_before,
            interrupt_after=request.interrupt_after,
            stream_modes=request.stream_modes,
            stream_subgraphs=request.stream_subgraphs,
            redact=scrubber.text,
        )

    async def _pass_on(self, execution: Execution, event: object) -> None:
        if not isinstance(event, AssistantEvent):
            raise TypeError(f"stream yielded {type(event).__name__}, not an AssistantEvent")
        if event.mode == "values" and not event.namespace and isinstance(event.data, dict):
            execution.feed.values = event.data
        base = "messages" if event.mode == "messages-tuple" else event.mode
        name = "|".join([f"{base}/{event.detail}" if event.detail else base, *event.namespace])
        execution.feed.publish(name, hide_stream(name, event.data), mode=event.mode)
        await self._journal.event(execution.run, event)

    async def _await_turn(self, execution: Execution) -> None:
        run = execution.run
        due = run.created_at + timedelta(seconds=after_seconds(run))
        while (left := (due - self._clock.now()).total_seconds()) > 0:
            await self._clock.sleep(left)
        while True:
            if execution.before is not None:
                # Each time anew: an older run may have been recorded, or have begun, after the last look.
                await execution.before()
            if not await self._is_blocked(run):
                return
            await self._sleep_until_moved()

    async def _is_blocked(self, run: RunRecord) -> bool:
        """Whether an older run of the thread is active, or one still winds down here."""
        if not self._turns.is_first(run):
            return True
        list_runs, thread_id = self._store.runs.list, run.thread_id
        if await list_runs(thread_id, status=RunStatus.RUNNING, limit=1):
            return True
        waiting = await list_runs(thread_id, status=RunStatus.PENDING, limit=1_000)
        return any(order(other) < order(run) for other in waiting)

    async def _sleep_until_moved(self) -> None:
        moved = asyncio.ensure_future(self._moved.wait())
        poll = asyncio.ensure_future(self._clock.sleep(TURN_POLL_SECONDS))
        try:
            await asyncio.wait([moved, poll], return_when=asyncio.FIRST_COMPLETED)
        finally:
            moved.cancel()
            poll.cancel()
            await asyncio.gather(moved, poll, return_exceptions=True)

    def _announce(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def _finish(
        self, execution: Execution, outcome: tuple[RunStatus, str | None] | None
    ) -> RunRecord | None:
        """Record the end and tell the subscribers; the store's word counts, not ours.

        Returns the run as stored: None where it is gone, and not terminal where it is another process's.
        """
        run, feed = execution.run, execution.feed
        ended: RunRecord | None
        known: RunRecord | None
        try:
            if outcome is not None:
                await self._journal.conclude(run.run_id, expected=ACTIVE, to=outcome[0], error=outcome[1])
            ended = known = await self._store.runs.get(run.run_id)
        except Exception as error:
            # The lease lapses and another look at the row ends the run (`Keeper`).
            log.exception("the end of run %s could not be recorded", run.run_id)
            known = run
            ended = replace(
                run, status=RunStatus.ERROR, error=f"its end was not recorded: {type(error).__name__}"
            )
        if ended is None:
            ended = replace(run, status=RunStatus.INTERRUPTED, error="the run was deleted")
        execution.request = replace(execution.request, secrets={})
        announce_end(feed, ended)
        feed.close(RunResult(hide_run(ended), feed.values), at=self._clock.monotonic())
        return known


def _failed(execution: Execution, text: str) -> str:
    """The text of what the assistant did wrong, once it is written down."""
    log.warning("run %s failed: %s", execution.run.run_id, text)
    execution.named.account.told(f"assistant {execution.named.name!r}: {text}")
    return text


def announce_end(feed: RunFeed, run: RunRecord) -> None:
    """The last item of a stream."""
    event, data = end_item(run)
    feed.publish(event, data)


def end_item(run: RunRecord) -> tuple[str, dict[str, str | None]]:
    """``end``, or ``error`` with what is known of the failure."""
    if run.status is RunStatus.SUCCESS:
        return "end", {"run_id": run.run_id, "status": run.status.value}
    if not run.status.terminal:
        message = "this process no longer executes the run; join it again to learn how it ends"
        return "error", {"error": ELSEWHERE, "message": message}
    name, _, message = (run.error or "").partition(": ")
    if not message or not name.isidentifier():
        name, message = f"Run{run.status.value.capitalize()}", run.error or f"the run is {run.status.value}"
    return "error", {"error": name, "message": message}
