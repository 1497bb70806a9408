"""Threads of a principal; somebody else's do not exist for them (API-2)."""

import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

from moorage.contract.empty import EMPTY
from moorage.contract.errors import Conflict, MoorageError, NotFound, ThreadBusy
from moorage.contract.identity import Principal
from moorage.contract.runs import RunStatus, ThreadState
from moorage.contract.stores import RunRecord, Store, ThreadRecord
from moorage.contract.tools import ToolSource
from moorage.runs.directory import AssistantDirectory, NamedAssistant
from moorage.runs.execution import ACTIVE, Executor
from moorage.runs.feeds import Feeds
from moorage.runs.identity import clean_input
from moorage.runs.journal import Journal
from moorage.runs.redaction import hide_state, hide_thread

log = logging.getLogger(__name__)

SEARCHED_STATES = 500

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class InvalidThreadId(MoorageError):
    """A thread id is 1 to 64 of letters, digits, ``-`` and ``_`` (RUN-5); answered with status 422."""


class ThreadService:
    """Creates, shows, changes and deletes threads, and their state."""

    def __init__(
        self,
        *,
        store: Store,
        directory: AssistantDirectory,
        tools: ToolSource,
        executor: Executor,
        journal: Journal,
        feeds: Feeds,
    ) -> None:
        self._store = store
        self._directory = directory
        self._tools = tools
        self._executor = executor
        self._journal = journal
        self._feeds = feeds

    async def create(
        self,
        principal: Principal,
        *,
        thread_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_exists: Literal["raise", "do_nothing"] = "raise",
    ) -> ThreadRecord:
        """A new thread, or with ``do_nothing`` the principal's existing one.

        Raises `Conflict` where the id is taken, `InvalidThreadId`.
        """
        thread_id = thread_id or str(uuid.uuid4())
        if not _ID.fullmatch(thread_id):
            raise InvalidThreadId("a thread id is 1 to 64 of letters, digits, '-' and '_'")
        thread, made = await self._store.threads.create(thread_id, principal.user_id, metadata or {})
        if made:
            # A deletion that was cut short may have left states under this id, and they were somebody's.
            await self._forget_states(thread_id)
        elif if_exists == "raise" or thread.user_id != principal.user_id:
            raise Conflict(f"thread id {thread_id!r} is taken")
        return hide_thread(thread)

    async def get(self, principal: Principal, thread_id: str) -> ThreadRecord:
        """Raises `NotFound`."""
        return hide_thread(await self.owned(principal, thread_id))

    async def owned(self, principal: Principal, thread_id: str) -> ThreadRecord:
        """The thread as stored, for the gateway's own use. Raises `NotFound`."""
        thread = await self._store.threads.get(thread_id)
        if thread is None or thread.user_id != principal.user_id:
            raise NotFound(f"there is no thread {thread_id[:64]!r}")
        return thread

    async def update(self, principal: Principal, thread_id: str, metadata: Mapping[str, Any]) -> ThreadRecord:
        """Merge top-level metadata keys; nothing else of the row is written (RUN-4). Raises `NotFound`."""
        await self.owned(principal, thread_id)
        thread = await self._store.threads.merge_metadata(thread_id, metadata)
        if thread is None:
            raise NotFound(f"there is no thread {thread_id!r}")
        return hide_thread(thread)

    async def search(
        self,
        principal: Principal,
        *,
        metadata: Mapping[str, Any] = EMPTY,
        status: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Sequence[ThreadRecord]:
        """The principal's threads, newest first."""
        found = await self._store.threads.search(
            principal.user_id, metadata=metadata, status=status, limit=limit, offset=offset
        )
        return [hide_thread(thread) for thread in found]

    async def delete(self, principal: Principal, thread_id: str, *, keep_feeds: bool = False) -> None:
        """End its runs, then remove thread, runs, events and states, and close its tool sessions.

        Its tasks go on; their notifications are dead-lettered (NOTE-3). ``keep_feeds``: who waits for a
        run of the thread may still read its end. Raises `NotFound`.
        """
        thread = await self.owned(principal, thread_id)
        await self.end_runs(thread_id, error="the thread was deleted")
        await self._store.threads.delete(thread_id)
        await self.end_local(thread_id)
        if not keep_feeds:
            self._feeds.drop_thread(thread_id)
        if self._store.durable:
            await self._store.tasks.delete_thread(thread.user_id, thread_id)
        await self._forget_states(thread_id)
        await self._quietly(
            "closing tool sessions", lambda: self._tools.close_thread(thread.user_id, thread_id)
        )

    async def forget_deleted(self, thread_id: str) -> None:
        """A run that executed here went on for a moment after its thread was deleted elsewhere: what it
        wrote meanwhile goes, too."""
        if await self._store.threads.get(thread_id) is None:
            await self._forget_states(thread_id)

    async def end_runs(self, thread_id: str, *, error: str) -> None:
        """Interrupt every active run of the thread."""
        for status in sorted(ACTIVE):
            for run in await self._store.runs.list(thread_id, status=status, limit=1_000):
                await self._journal.conclude(
                    run.run_id, expected=ACTIVE, to=RunStatus.INTERRUPTED, error=error
                )
                await self._executor.stop(run.run_id)

    async def end_local(self, thread_id: str) -> None:
        """Stop what still executes here for the thread."""
        for execution in self._executor.all():
            if execution.run.thread_id == thread_id:
                await self._executor.stop(execution.run.run_id)

    async def state(
        self, principal: Principal, thread_id: str, *, checkpoint_id: str | None = None
    ) -> ThreadState:
        """The latest state, empty where there is none yet; raises `NotFound` also for a named checkpoint
        that does not exist."""
        thread = await self.owned(principal, thread_id)
        named = self._reader(thread)
        state = await named.state(thread_id, checkpoint_id=checkpoint_id) if named else None
        if state is None:
            if checkpoint_id is not None:
                raise NotFound(f"thread {thread_id!r} has no such checkpoint")
            return ThreadState(values={})
        return hide_state(state)

    async def values_after(self, run: RunRecord) -> Mapping[str, Any] | None:
        """The values as the run left them, where its states are still known; else the latest."""
        named = self._directory.for_state(run.assistant_id)
        if named is None:
            return None
        latest: Mapping[str, Any] | None = None
        async for state in named.history(run.thread_id, limit=SEARCHED_STATES):
            latest = state.values if latest is None else latest
            if state.metadata.get("run_id") == run.run_id:
                return state.values
        return latest

    async def history(
        self, principal: Principal, thread_id: str, *, limit: int = 10, before: str | None = None
    ) -> Sequence[ThreadState]:
        """States, newest first; ``before`` is a checkpoint id. Raises `NotFound`."""
        named = self._reader(await self.owned(principal, thread_id))
        if named is None:
            return []
        return [hide_state(s) async for s in named.history(thread_id, limit=limit, before=before)]

    async def update_state(
        self,
        principal: Principal,
        thread_id: str,
        values: Any,
        *,
        as_node: str | None = None,
        checkpoint_id: str | None = None,
    ) -> ThreadState:
        """Write a state update; marks of the gateway's own are dropped from it (RUN-9).

        Raises `NotFound`, and `ThreadBusy` while a run is active.
        """
        thread = await self.owned(principal, thread_id)
        named = self._reader(thread)
        if named is None:
            raise Conflict("this gateway has no assistant that could keep a state")
        if thread.status == "busy":
            raise ThreadBusy(f"thread {thread_id!r} has an active run")
        state = await named.update_state(
            thread_id, clean_input(values), as_node=as_node, checkpoint_id=checkpoint_id
        )
        return hide_state(state)

    def _reader(self, thread: ThreadRecord) -> NamedAssistant | None:
        return self._directory.for_state(thread.last_assistant_id)

    async def _forget_states(self, thread_id: str) -> None:
        for named in self._directory.all():
            if named.unavailable is None:
                await self._quietly(
                    f"forgetting states of assistant {named.name!r}",
                    lambda named=named: named.delete_thread(thread_id),  # type: ignore[misc]
                )

    async def _quietly(self, what: str, do: Callable[[], Awaitable[None]]) -> None:
        """A plugin that fails here must not keep the thread from being deleted (PLUG-7)."""
        try:
            await do()
        except Exception:
            log.exception("%s failed", what)
