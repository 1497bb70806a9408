"""Jobs of a spool folder as durable tasks: any gateway that sees the folder goes on where another stopped."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from moorage.contract import (
    GatewayContext,
    ProtocolViolation,
    ServerClaim,
    ServerConfig,
    SubmitCall,
    TaskBinding,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
    TaskStatus,
    TransientDriverError,
)

from moorage_spool.section import Section
from moorage_spool.spool import Spool

NAME = "spool"
SECTION = "spool"
STATES = {
    "queued": TaskStatus.SUBMITTED,
    "running": TaskStatus.WORKING,
    "done": TaskStatus.COMPLETED,
    "failed": TaskStatus.FAILED,
    "cancelled": TaskStatus.CANCELLED,
}
Reply = Mapping[str, Any]


class Queue(Protocol):
    """What the driver asks of a spool; raises `OSError` for trouble."""

    async def put(self, job_id: str, job: Any) -> Any: ...

    async def look(self, job_id: str) -> Any: ...

    async def withdraw(self, job_id: str) -> Any: ...


class DiskQueue:
    """A `Spool` that is asked in threads, since disks block."""

    def __init__(self, folder: Path) -> None:
        self._spool = Spool(folder)

    async def put(self, job_id: str, job: Any) -> Any:
        return await asyncio.to_thread(self._spool.put, job_id, job)

    async def look(self, job_id: str) -> Any:
        return await asyncio.to_thread(self._spool.look, job_id)

    async def withdraw(self, job_id: str) -> Any:
        return await asyncio.to_thread(self._spool.withdraw, job_id)


class SpoolDriver:
    """A task driver (`moorage.contract.TaskDriver`)."""

    def __init__(self, gateway: GatewayContext, queue: Callable[[Path], Queue] = DiskQueue) -> None:
        self._gateway = gateway
        self._queue = queue

    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        section = server.sections.get(SECTION)
        if not isinstance(section, Section):
            return ServerClaim()
        if tool_names and section.tool not in tool_names:
            return ServerClaim(errors=(f"server {server.name!r} has no tool {section.tool!r}",))
        # The job lies in the folder, not in a session: any replica may ask about it.
        return ServerClaim(submit={section.tool: TaskBinding(NAME, section.tool)})

    async def submit(self, call: SubmitCall) -> TaskHandle:
        """Queue the job under the task's own id: should this be repeated, it is the same job."""
        where = f"server {call.server!r}"
        reply = await self._ask(call.server, lambda queue: queue.put(call.task_id, dict(call.arguments)))
        remote_id = reply.get("id")
        named = isinstance(remote_id, str) and bool(remote_id.strip())
        try:
            snapshot = _snapshot(reply, where)
        except ProtocolViolation as error:
            raise ProtocolViolation(str(error), remote_id=str(remote_id) if named else None) from None
        if not named:
            raise ProtocolViolation(f"{where}: the reply names no job")
        return TaskHandle(str(remote_id), snapshot)

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        reply = await self._ask(ref.server, lambda queue: queue.look(ref.remote_id))
        return _snapshot(reply, f"server {ref.server!r}")

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        reply = await self._ask(ref.server, lambda queue: queue.withdraw(ref.remote_id))
        return _snapshot(reply, f"server {ref.server!r}")

    async def _ask(self, server: str, ask: Callable[[Queue], Any]) -> Reply:
        entry = self._gateway.extensions.current().servers.get(server)
        section = entry.sections.get(SECTION) if entry is not None else None
        if not isinstance(section, Section):
            raise TransientDriverError(f"server {server!r} is not configured for {NAME} any more")
        try:
            reply = await ask(self._queue(section.folder))
        except (OSError, ValueError) as error:
            raise TransientDriverError(f"server {server!r}: {type(error).__name__}") from error
        if not isinstance(reply, Mapping):
            raise ProtocolViolation(f"server {server!r}: the reply is no object")
        return reply


def _snapshot(reply: Reply, where: str) -> TaskSnapshot:
    state = reply.get("state")
    if not isinstance(state, str) or state not in STATES:
        raise ProtocolViolation(f"{where}: the job is gone" if state == "gone" else f"{where}: unknown state")
    remote_id = reply.get("id")
    error = reply.get("error")
    return TaskSnapshot(
        status=STATES[state],
        remote_id=remote_id if isinstance(remote_id, str) else None,
        result=reply.get("result"),
        error=error if isinstance(error, str) else None,
    )
