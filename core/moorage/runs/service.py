"""The run service: what the API and the gateway itself do with runs (RUN-5)."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Literal, TypeVar

from moorage.contract.clock import Clock
from moorage.contract.errors import NotFound
from moorage.contract.identity import Principal
from moorage.contract.redaction import Redactor
from moorage.contract.runs import LaunchedRun, RunRequest, RunStatus, StreamMode
from moorage.contract.stores import RunEvent, RunRecord, Store
from moorage.contract.tools import ToolSource
from moorage.runs.admission import Admission, NamedValidator
from moorage.runs.directory import AssistantDirectory, NamedAssistant
from moorage.runs.ending import Ender
from moorage.runs.execution import Executor, end_item
from moorage.runs.feeds import Feeds, RunResult, StreamItem, gap, is_elsewhere
from moorage.runs.following import PAGE, follow
from moorage.runs.journal import Completed, Journal
from moorage.runs.keeper import Keeper
from moorage.runs.records import run_id_for, stored
from moorage.runs.redaction import hide_event, hide_run
from moorage.runs.relay import Relay, streams_of
from moorage.runs.remote import RemoteFeed
from moorage.runs.threads import InvalidThreadId, ThreadService
from moorage.settings import Settings

__all__ = [
    "InvalidThreadId",
    "NamedAssistant",
    "NamedValidator",
    "RunResult",
    "RunService",
    "StreamItem",
    "ThreadService",
]

log = logging.getLogger(__name__)

T = TypeVar("T")

REMOTE_POLL_SECONDS = 0.5
"""How often the row of a run that another process executes is looked at while somebody waits for it."""


class RunService:
    """Launches, shows, streams and ends runs. A `RunLauncher`.

    Everything returned is redacted (RUN-4). Runs execute only within `running`. ``completed`` is told of
    every run that ended.
    """

    def __init__(
        self,
        *,
        store: Store,
        assistants: Mapping[str, NamedAssistant],
        validators: Sequence[NamedValidator],
        tools: ToolSource,
        clock: Clock,
        replica_id: str,
        settings: Settings,
        redactor: Redactor | None = None,
        completed: Completed | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._replica_id = replica_id
        self._owned_tasks: set[asyncio.Task[Any]] = set()
        self.limits = settings.limits
        self._settings = settings.runs
        self._admission = Admission(validators, redactor=redactor)
        self._directory = AssistantDirectory(assistants)
        self._feeds = Feeds(clock)
        self._journal = Journal(store, completed)
        self._executor = Executor(
            store=store,
            tools=tools,
            clock=clock,
            replica_id=replica_id,
            feeds=self._feeds,
            journal=self._journal,
            finished=self._clean_up,
            redactor=redactor,
        )
        self._ender = Ender(
            store=store,
            clock=clock,
            executor=self._executor,
            directory=self._directory,
            journal=self._journal,
            settings=settings.runs,
        )
        self._keeper = Keeper(
            store=store,
            clock=clock,
            replica_id=replica_id,
            executor=self._executor,
            directory=self._directory,
            journal=self._journal,
            ender=self._ender,
            settings=settings.runs,
        )
        self._journal.also_tell(self._clean_up_after_others)
        self._relay = Relay(store, self._feeds, clock)
        self.threads = ThreadService(
            store=store,
            directory=self._directory,
            tools=tools,
            executor=self._executor,
            journal=self._journal,
            feeds=self._feeds,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep leases and recover runs meanwhile; on leaving, end what executes here truthfully."""
        loops = [
            asyncio.create_task(self._keeper.keep(), name="run keeper"),
            asyncio.create_task(self._relay.run(), name="run relay"),
        ]
        try:
            yield
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            await self._keeper.shut_down()
            await self._relay.finish()
            await asyncio.gather(*self._owned_tasks, return_exceptions=True)

    def on_end(self, completed: Completed) -> None:
        """Tell this one, too, of every run whose end this process records."""
        self._journal.also_tell(completed)

    def assistants(self) -> Sequence[NamedAssistant]:
        """By name, those that are not available here included."""
        return self._directory.all()

    def assistant(self, name: str) -> NamedAssistant:
        """Raises `NotFound`."""
        return self._directory.get(name)

    async def create(self, request: RunRequest) -> RunRecord:
        """Admit the run, make its row and start it in the background.

        Nothing exists when it raises: `NotFound` (thread, assistant, checkpoint), `AdmissionRejected`,
        `ThreadBusy`, `Conflict` (an assistant that is not available).
        """
        run, _ = await self._create(request)
        return hide_run(run)

    async def launch(self, request: RunRequest) -> LaunchedRun:
        """`RunLauncher.launch`: a repetition of an idempotency key finds the run that exists."""
        if request.idempotency_key is not None:
            known = await self._store.runs.get(run_id_for(request.thread_id, request.idempotency_key))
            if known is not None:
                await self.threads.owned(request.principal, known.thread_id)
                return _launched(known, created=False)
        run, created = await self._create(request)
        return _launched(run, created=created)

    async def admit(self, request: RunRequest) -> None:
        """All that `create` checks beforehand, so that a batch is refused as a whole; raises likewise."""
        await self._admit(_with_thread(request))

    async def _admit(self, request: RunRequest) -> tuple[NamedAssistant, bool]:
        """The assistant, and whether the thread is yet to be made."""
        missing = await self._check_thread(request)
        await self._admission.admit(request)
        named = self._directory.usable(request.assistant_id)
        if request.checkpoint_id is not None:
            await self._check_checkpoint(request, named, missing=missing)
        return named, missing

    async def _create(self, request: RunRequest) -> tuple[RunRecord, bool]:
        request = _with_thread(request)
        named, missing = await self._admit(request)
        # A caller that goes away meanwhile must not leave a row that nobody executes.
        return await asyncio.shield(self._own(self._begin(request, named, missing=missing)))

    async def _begin(
        self, request: RunRequest, named: NamedAssistant, *, missing: bool
    ) -> tuple[RunRecord, bool]:
        if missing:
            await self.threads.create(request.principal, thread_id=request.thread_id, if_exists="do_nothing")
        run = stored(request, owner=self._replica_id, now=self._clock.now())
        run, created = await self._store.runs.create(
            run, exclusive=request.multitask_strategy == "reject", lease_seconds=self._settings.lease_seconds
        )
        if not created:
            return run, False
        self._executor.start(run, request, named, before=self._ender.room_for(run))
        if request.origin != "internal":
            shown = {**run.metadata, "graph_id": named.name, "assistant_id": named.name}
            await self._store.threads.merge_metadata(run.thread_id, shown)
        return run, True

    def _own(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.ensure_future(work)
        self._owned_tasks.add(task)
        task.add_done_callback(self._disown)
        return task

    def _disown(self, task: "asyncio.Task[Any]") -> None:
        self._owned_tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("background work ended with %s", type(error).__name__)

    def _clean_up(self, request: RunRequest, ended: RunRecord | None) -> None:
        """Nothing executes here any more: the thread of a stateless run goes when the run has ended (and
        not where another process starts it yet), and so does what was written into a thread that was
        deleted meanwhile."""
        if ended is None:
            self._own(self.threads.forget_deleted(request.thread_id))
        elif ended.status.terminal and request.on_completion == "delete":
            if self._relay.copies(ended.run_id):  # who follows elsewhere sees the end first
                self._keeper.later(self._delete_thread(ended))
            else:
                self._own(self._delete_thread(ended))

    async def _clean_up_after_others(self, run: RunRecord) -> None:
        """The same for a run whose end was recorded here and that executed elsewhere, in a process that is
        gone, say. Who waits for it elsewhere has some time to see the end."""
        if run.kwargs.get("on_completion") == "delete" and self._executor.get(run.run_id) is None:
            self._keeper.later(self._delete_thread(run))

    async def _delete_thread(self, run: RunRecord) -> None:
        with suppress(NotFound):
            await self.threads.delete(Principal(run.user_id), run.thread_id, keep_feeds=True)

    async def _check_thread(self, request: RunRequest) -> bool:
        """Whether the thread is missing and may be created. Raises `NotFound`."""
        thread = await self._store.threads.get(request.thread_id)
        if thread is None and request.if_not_exists == "create" and request.origin != "internal":
            return True
        if thread is None or thread.user_id != request.principal.user_id:
            raise NotFound(f"there is no thread {request.thread_id[:64]!r}")
        return False

    async def _check_checkpoint(self, request: RunRequest, named: NamedAssistant, *, missing: bool) -> None:
        state = None
        if not missing:
            state = await named.state(request.thread_id, checkpoint_id=request.checkpoint_id)
        if state is None:
            raise NotFound(f"thread {request.thread_id!r} has no such checkpoint")

    async def get(self, principal: Principal, thread_id: str, run_id: str) -> RunRecord:
        """Raises `NotFound`."""
        return hide_run(await self._owned(principal, thread_id, run_id))

    async def list(
        self,
        principal: Principal,
        thread_id: str,
        *,
        status: RunStatus | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Sequence[RunRecord]:
        """The thread's runs, newest first. Raises `NotFound`."""
        await self.threads.owned(principal, thread_id)
        runs = await self._store.runs.list(thread_id, status=status, limit=limit, offset=offset)
        return [hide_run(run) for run in runs]

    async def cancel(
        self,
        principal: Principal,
        thread_id: str,
        run_id: str,
        *,
        action: Literal["interrupt", "rollback"] = "interrupt",
        wait: bool = False,
    ) -> RunRecord:
        """End the run, wherever it executes; a run that has ended stays as it is.

        ``rollback`` also removes the run and what it wrote to the thread's state. ``wait`` returns only
        when nothing executes any more. Raises `NotFound`.
        """
        run = await self._owned(principal, thread_id, run_id)
        if run.status.terminal:
            return hide_run(run)
        await self._ender.end(run, rollback=action == "rollback", wait=wait)
        ended = await self._store.runs.get(run_id)
        return hide_run(ended or replace(run, status=RunStatus.INTERRUPTED))

    async def delete(self, principal: Principal, thread_id: str, run_id: str) -> None:
        """Remove a run, which is cancelled first where it is active. Raises `NotFound`."""
        run = await self._owned(principal, thread_id, run_id)
        if not run.status.terminal:
            await self._ender.end(run)
        await self._store.runs.delete(run_id)
        self._feeds.drop(run_id)

    async def join(self, principal: Principal, thread_id: str, run_id: str) -> RunResult:
        """Wait for the end of the run, wherever it executes. Raises `NotFound`."""
        feed = self._feeds.get(run_id)
        if feed is not None and _owns(principal, thread_id, feed.run):
            result = await feed.finished()
            if result.run.status.terminal:
                return result
        run = await self._owned(principal, thread_id, run_id)
        while not run.status.terminal:
            await self._clock.sleep(REMOTE_POLL_SECONDS)
            run = await self._owned(principal, thread_id, run_id)
        return RunResult(hide_run(run), await self.threads.values_after(run))

    async def stream(
        self,
        principal: Principal,
        thread_id: str,
        run_id: str,
        *,
        modes: frozenset[StreamMode] = frozenset(),
        last_event_id: str | None = None,
    ) -> AsyncIterator[StreamItem]:
        """The run's stream from its start or after an id, to its end (RUN-8).

        Where another process executes the run, its stream is followed through the store. Where nobody has it
        any more, the stream admits the gap, waits for the end and tells the truth about it. Raises
        `NotFound`.
        """
        last_id = last_event_id
        feed = self._feeds.get(run_id)
        if feed is not None and _owns(principal, thread_id, feed.run):
            async for item in feed.read(modes=modes, last_event_id=last_event_id):
                if is_elsewhere(item):
                    break
                last_id = item.id or last_id
                yield item
            else:
                return
        run = await self._owned(principal, thread_id, run_id)
        if (streams := streams_of(self._store)) is not None:
            remote = RemoteFeed(self._store, streams, self._clock, run, replica_id=self._replica_id)
            async for item in remote.read(modes=modes, last_event_id=last_id):
                yield item
            if remote.complete:
                return
            last_id = remote.last_id
        if last_id == last_event_id:
            yield StreamItem(None, "metadata", {"run_id": run_id, "attempt": 1})
        yield gap(after=last_id, first_kept=None, thread_id=thread_id)
        result = await self.join(principal, thread_id, run_id)
        if result.values is not None and (not modes or "values" in modes):
            yield StreamItem(None, "values", result.values)
        yield StreamItem(None, *end_item(result.run))

    async def events(
        self,
        principal: Principal,
        thread_id: str,
        *,
        run_id: str | None = None,
        event_types: Sequence[str] | None = None,
        task_id: str | None = None,
        after_seq: int = 0,
        limit: int = 100,
    ) -> Sequence[RunEvent]:
        """Rows of the thread's event log, or of one run's, ascending. Raises `NotFound`."""
        if run_id is not None:
            await self._owned(principal, thread_id, run_id)
        else:
            await self.threads.owned(principal, thread_id)
        rows = await self._store.events.list(
            thread_id,
            run_id=run_id,
            event_types=event_types,
            task_id=task_id,
            after_seq=after_seq,
            limit=limit,
        )
        return [hide_event(row) for row in rows]

    async def follow_events(
        self,
        principal: Principal,
        thread_id: str,
        *,
        event_types: Sequence[str] | None = None,
        after_seq: int = 0,
    ) -> AsyncGenerator[RunEvent, None]:
        """The thread's event log after ``after_seq``, and every new row as it comes, until closed.

        Raises `NotFound` at once, and in the stream when the thread is deleted.
        """
        await self.threads.owned(principal, thread_id)

        async def read(after: int) -> Sequence[RunEvent]:
            return await self.events(
                principal, thread_id, event_types=event_types, after_seq=after, limit=PAGE
            )

        return follow(self._store, thread_id, read, after_seq=after_seq)

    async def _owned(self, principal: Principal, thread_id: str, run_id: str) -> RunRecord:
        await self.threads.owned(principal, thread_id)
        run = await self._store.runs.get(run_id)
        if run is None or run.thread_id != thread_id:
            raise NotFound(f"thread {thread_id!r} has no run {run_id[:64]!r}")
        return run


def _with_thread(request: RunRequest) -> RunRequest:
    """A stateless run gets a thread of its own."""
    if request.thread_id:
        return request
    return replace(request, thread_id=str(uuid.uuid4()), if_not_exists="create")


def _launched(run: RunRecord, *, created: bool) -> LaunchedRun:
    return LaunchedRun(run.run_id, run.thread_id, run.status, created=created, error=run.error)


def _owns(principal: Principal, thread_id: str, run: RunRecord) -> bool:
    return run.user_id == principal.user_id and run.thread_id == thread_id
