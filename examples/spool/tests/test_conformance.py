"""Held to what Moorage asks of task drivers, with a spool that fails on demand in place of the disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage.contract import GatewayContext, TaskDriver, TaskStatus
from moorage.testing import DriverConformance, FaultyRemote, Operation, Said, Trouble

from moorage_spool.driver import NAME, SECTION, STATES, SpoolDriver
from moorage_spool.section import Section

WORDS = {status: word for word, status in STATES.items()}


class RemoteQueue:
    """Asks the suite's remote instead of a disk."""

    def __init__(self, remote: FaultyRemote) -> None:
        self._remote = remote

    async def put(self, job_id: str, job: Any) -> Any:
        return await self._remote.exchange(Operation.SUBMIT, None, job)

    async def look(self, job_id: str) -> Any:
        return await self._remote.exchange(Operation.STATUS, job_id)

    async def withdraw(self, job_id: str) -> Any:
        return await self._remote.exchange(Operation.CANCEL, job_id)


class TestSpoolDriver(DriverConformance):
    name = NAME
    poll_hints = False
    input_required = False
    refuses = False

    def build(self, gateway: GatewayContext, remote: FaultyRemote) -> TaskDriver:
        return SpoolDriver(gateway, lambda folder: RemoteQueue(remote))

    def sections(self, remote: FaultyRemote) -> Mapping[str, Any]:
        return {SECTION: Section(folder=Path("unused"))}

    def spell(self, said: Said) -> dict[str, Any]:
        if said.status is TaskStatus.INPUT_REQUIRED:
            raise ValueError("a spool asks nothing")
        word = WORDS.get(said.status, said.status) if isinstance(said.status, TaskStatus) else said.status
        fields = {"id": said.remote_id, "state": word, "result": said.result, "error": said.error}
        return {key: value for key, value in fields.items() if value is not None}

    def garbled(self, said: Said) -> Sequence[Any]:
        return (None, 7, [], {}, {"state": 7}, "text")

    def fail(self, trouble: Trouble, operation: Operation, remote_id: str | None) -> Any:
        return {"id": remote_id, "state": "gone"} if trouble is Trouble.FORGOTTEN else None
