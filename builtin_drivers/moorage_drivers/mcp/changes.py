"""What a run changed in its thread's workspace, told as run events (STDIO-2)."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

from moorage.contract import VIRTUAL_ROOT, GatewayContext, ServerConfig
from moorage_drivers.mcp.files import changed_since
from moorage_drivers.mcp.sessions import Owner
from moorage_drivers.mcp.workspace import UnsafeName, thread_root

logger = logging.getLogger(__name__)

EVENT_TYPE = "workspace.changed"
MAX_PATHS = 100
QUIET_SECONDS = 0.5
"""So long no further call of the run may come before what has changed is told."""


@dataclass(frozen=True, slots=True)
class _Subject:
    owner: Owner
    run_id: str


class ChangeSummaries:
    """Looks beside the calls, never before an answer: one event for calls in quick succession."""

    def __init__(self, gateway: GatewayContext) -> None:
        self._gateway = gateway
        self._since: dict[_Subject, int] = {}
        self._tasks: dict[_Subject, asyncio.Task[None]] = {}

    def note(self, server: ServerConfig, owner: Owner, run_id: str | None, start_ns: int) -> None:
        """A call of this run, which began at ``start_ns``, may have changed files."""
        told = self._gateway.store is not None and run_id is not None and owner.thread is not None
        if not told or server.transport != "stdio":
            return
        subject = _Subject(owner, run_id or "")
        self._since.setdefault(subject, start_ns)
        running = self._tasks.pop(subject, None)
        if running is not None:
            running.cancel()
        self._tasks[subject] = asyncio.create_task(self._later(subject))

    async def aclose(self) -> None:
        """Tell what is still to be told."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        for subject in list(self._since):
            await self._tell(subject)

    async def _later(self, subject: _Subject) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        self._tasks.pop(subject, None)
        await self._tell(subject)

    async def _tell(self, subject: _Subject) -> None:
        start_ns = self._since.pop(subject, None)
        store, thread = self._gateway.store, subject.owner.thread
        if start_ns is None or store is None or thread is None:
            return
        try:
            root = thread_root(self._gateway.home.resolve(), subject.owner.user, thread)
            paths = await asyncio.to_thread(_changed, root, start_ns)
            if paths:
                await store.events.append(
                    thread,
                    event_type=EVENT_TYPE,
                    run_id=subject.run_id,
                    metadata={"count": len(paths)},
                    payload={"paths": paths[:MAX_PATHS], "truncated": len(paths) > MAX_PATHS},
                )
        except UnsafeName:
            return
        except Exception:
            logger.exception("the changes of run %r could not be told", subject.run_id)


def _changed(root: Path, start_ns: int) -> list[str]:
    found = changed_since(root, start_ns)
    return sorted(f"{VIRTUAL_ROOT}/{path.relative_to(root).as_posix()}" for path in found)
