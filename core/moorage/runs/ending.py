"""Ending runs before their time, wherever they execute."""

from collections.abc import Awaitable, Callable

from moorage.contract.clock import Clock
from moorage.contract.runs import RunStatus
from moorage.contract.stores import RunRecord, Store
from moorage.runs.directory import AssistantDirectory, NamedAssistant
from moorage.runs.execution import ACTIVE, Executor
from moorage.runs.journal import Journal
from moorage.settings import RunSettings

CANCELLED = "the run was cancelled"
SEARCHED_STATES = 10_000


class Ender:
    """Interrupts runs and takes back what they wrote."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        executor: Executor,
        directory: AssistantDirectory,
        journal: Journal,
        settings: RunSettings,
    ) -> None:
        self._store = store
        self._clock = clock
        self._executor = executor
        self._directory = directory
        self._journal = journal
        self._settings = settings

    async def end(self, run: RunRecord, *, rollback: bool = False, wait: bool = True) -> None:
        """Interrupt the run. With ``wait`` or ``rollback``, return when nothing executes any more."""
        await self._journal.conclude(run.run_id, expected=ACTIVE, to=RunStatus.INTERRUPTED, error=CANCELLED)
        elsewhere = self._executor.cancel(run.run_id) is None and run.status is RunStatus.RUNNING
        if wait or rollback:
            await self._executor.stop(run.run_id)
            if elsewhere:
                # The process that executes it learns of it at its next heartbeat.
                await self._clock.sleep(2 * self._settings.heartbeat_seconds)
        if rollback:
            await self._roll_back(run)

    def room_for(self, run: RunRecord) -> Callable[[], Awaitable[None]] | None:
        """What is to be done before the run's turn: end the older runs, where its strategy says so."""
        if run.multitask_strategy not in ("interrupt", "rollback"):
            return None

        async def make_room() -> None:
            for status in sorted(ACTIVE):
                for other in await self._store.runs.list(run.thread_id, status=status, limit=1_000):
                    if (other.created_at, other.run_id) < (run.created_at, run.run_id):
                        await self.end(other, rollback=run.multitask_strategy == "rollback")

        return make_room

    async def _roll_back(self, run: RunRecord) -> None:
        """Make the state from before the run the latest again, and remove the run."""
        named = self._directory.for_state(run.assistant_id)
        if named is not None:
            await _restore_state(named, run)
        await self._store.runs.delete(run.run_id)


async def _restore_state(named: NamedAssistant, run: RunRecord) -> None:
    touched = False
    async for state in named.history(run.thread_id, limit=SEARCHED_STATES):
        if state.metadata.get("run_id") != run.run_id:
            if touched:
                await named.update_state(
                    run.thread_id, None, as_node="__copy__", checkpoint_id=state.checkpoint_id
                )
            return
        touched = True
    if touched:
        await named.delete_thread(run.thread_id)
