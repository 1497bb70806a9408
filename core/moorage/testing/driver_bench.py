"""What one check of a driver works with."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from moorage.contract import (
    CallContext,
    GatewayContext,
    Principal,
    ProtocolViolation,
    ServerConfig,
    SubmitCall,
    TaskBinding,
    TaskDriver,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
)
from moorage.testing.checks import Shortfall, outcome, told
from moorage.testing.remote import FaultyRemote, Operation, Said

CALL_SECONDS = 6.0
"""What one call of a driver may take in real time, also where its remote keeps silent."""
CANARY = "canary-4f1d7c"
SECRET = "secret-8b2e90aa51"  # noqa: S105 - a value that must not turn up anywhere


class DriverSubject(Protocol):
    """What a suite says of its driver, as the checks need it."""

    name: str
    poll_hints: bool
    ids_in_replies: bool
    input_required: bool
    done_at_once: bool
    refuses: bool
    forgets: bool
    cancels_by_acknowledgement: bool

    def spell(self, said: Said) -> Any: ...
    def garbled(self, said: Said) -> Any: ...


@dataclass
class DriverBench:
    """One driver on one remote."""

    remote: FaultyRemote
    gateway: GatewayContext
    server: ServerConfig
    tools: tuple[str, ...]
    driver: TaskDriver
    binding: TaskBinding
    arguments: Mapping[str, Any]
    rebuilt: Callable[[], AbstractAsyncContextManager[TaskDriver]]
    """The same driver as another process would build it."""

    def submit_call(self, number: int = 1, **arguments: Any) -> SubmitCall:
        context = CallContext(
            principal=Principal("alice"),
            thread_id="thread-1",
            run_id="run-1",
            secrets={"token": SECRET},
        )
        return SubmitCall(
            task_id=f"task-{number}",
            server=self.server.name,
            binding=self.binding,
            arguments={**self.arguments, **arguments},
            context=context,
        )

    def ref(self, remote_id: str, number: int = 1) -> TaskRef:
        """The task as the runtime knows it after a restart: its binding has been through JSON."""
        data = json.loads(json.dumps(dict(self.binding.data)))
        context = CallContext(principal=Principal("alice"), thread_id="thread-1", background=True)
        return TaskRef(
            task_id=f"task-{number}",
            server=self.server.name,
            binding=replace(self.binding, data=data),
            remote_id=remote_id,
            context=context,
        )

    async def submitted(self, number: int = 1) -> TaskRef:
        """A job under way on an honest remote."""
        handle = await self.submit(number)
        if isinstance(handle, BaseException):
            raise Shortfall(f"an ordinary submit raised {told(handle)}") from handle
        if not isinstance(handle, TaskHandle):
            raise Shortfall(f"an ordinary submit returned {told(handle)}, not a TaskHandle")
        if handle.remote_id not in self.remote.jobs:
            known = ", ".join(self.remote.jobs)
            raise Shortfall(f"the handle's id is {handle.remote_id!r}, and the remote's is {known}")
        return self.ref(handle.remote_id, number)

    async def submit(self, number: int = 1) -> Any:
        """What a submit came to: a handle, or the exception."""
        return await outcome(CALL_SECONDS, self.driver.submit(self.submit_call(number)), "the submit")

    async def status(self, ref: TaskRef) -> Any:
        return await outcome(CALL_SECONDS, self.driver.get_status(ref), "the status call")

    async def cancel(self, ref: TaskRef) -> Any:
        return await outcome(CALL_SECONDS, self.driver.cancel(ref), "the cancel call")

    async def asked(self, operation: Operation, ref: TaskRef) -> Any:
        """What a status or a cancel call came to."""
        return await (self.status(ref) if operation is Operation.STATUS else self.cancel(ref))


def snapshot(answer: Any, said: str) -> TaskSnapshot:
    """The answer as a snapshot; a `Shortfall` where it is none."""
    if isinstance(answer, BaseException):
        raise Shortfall(f"where {said}, the driver raised {told(answer)}") from answer
    if not isinstance(answer, TaskSnapshot):
        raise Shortfall(f"where {said}, the driver returned {told(answer)}, not a TaskSnapshot")
    return answer


def violation(answer: Any, said: str) -> ProtocolViolation:
    """The answer as a protocol violation; a `Shortfall` where it is none."""
    if isinstance(answer, ProtocolViolation):
        return answer
    if isinstance(answer, BaseException):
        raise Shortfall(
            f"where {said}, the driver raised {told(answer)} instead of ProtocolViolation"
        ) from answer
    raise Shortfall(f"where {said}, the driver returned {told(answer)} instead of raising ProtocolViolation")


def spelled(subject: DriverSubject, said: Said) -> bool:
    """Whether the protocol can say this at all."""
    try:
        subject.spell(said)
    except (TypeError, ValueError):
        return False
    return True
