"""Task drivers: long-running remote work behind three or four calls (TASK-1, TASK-2).

A driver is stateless about tasks: everything that it needs to find the remote work again is in the
`TaskRef` that the runtime hands it. It may be called for many tasks at once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from moorage.contract.empty import empty
from moorage.contract.errors import ProtocolViolation
from moorage.contract.identity import CallContext
from moorage.contract.servers import ServerConfig

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext


class TaskStatus(StrEnum):
    """The states of a task (TASK-1)."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Terminal states never change again and are never polled (TASK-9)."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSnapshot:
    """What a remote says of one task at one moment.

    Raises `ProtocolViolation` when built from values that the contract forbids (TASK-2), so that every
    driver obeys. ``remote_id`` is the id that the remote's reply carried; the runtime fails the task
    permanently where it differs from the persisted one (ORD-5).
    """

    status: TaskStatus
    remote_id: str | None = None
    result: Any = None
    """JSON-compatible; meaningful where completed."""
    result_artifact: Mapping[str, Any] | None = None
    error: str | None = None
    error_code: str | None = None
    input_required: Mapping[str, Any] | None = None
    """The request that must be answered; may hold a JSON schema of the answer under ``schema``."""
    poll_after_seconds: float | None = None
    status_message: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.status, TaskStatus):
            raise ProtocolViolation(f"unknown task status {str(self.status)[:100]!r}")
        hint = self.poll_after_seconds
        if hint is not None and (
            isinstance(hint, bool)
            or not isinstance(hint, int | float)
            or not math.isfinite(hint)
            or hint <= 0
        ):
            raise ProtocolViolation("poll_after_seconds must be a finite positive number")
        if self.status is TaskStatus.INPUT_REQUIRED and not isinstance(self.input_required, Mapping):
            raise ProtocolViolation("status input_required needs an input_required object")


@dataclass(frozen=True, slots=True)
class TaskHandle:
    """What a submit yields: the remote's id, and its first snapshot, which may already be terminal.

    Raises `ProtocolViolation` where the id is no non-blank text (TASK-2). Its length is judged by the
    runtime, which can then still compensate (BOUND-3).
    """

    remote_id: str
    snapshot: TaskSnapshot = field(default_factory=lambda: TaskSnapshot(status=TaskStatus.WORKING))

    def __post_init__(self) -> None:
        if not isinstance(self.remote_id, str) or not self.remote_id.strip():
            raise ProtocolViolation("the remote task id is no non-blank text")


@dataclass(frozen=True, slots=True)
class TaskBinding:
    """How one agent-visible tool is bound to a driver.

    ``data`` is the driver's own, JSON-compatible, stored with the task and handed back in `TaskRef`.
    ``sticky``: the remote work lives in a session that only the submitting replica holds (stdio), so that
    replica polls it for as long as its heartbeat lasts (TASK-19).
    """

    driver: str
    task_name: str
    data: Mapping[str, Any] = field(default_factory=empty)
    sticky: bool = False


@dataclass(frozen=True, slots=True)
class ServerClaim:
    """What a driver takes of a server's tools at discovery (ORD-1, ORD-2).

    ``submit``: raw tool name → binding; the tool is replaced by a durable wrapper. ``hidden``: raw tools
    that agents neither see nor may call. ``errors``: one message a broken group, naming server and tool.
    """

    submit: Mapping[str, TaskBinding] = field(default_factory=empty)
    hidden: frozenset[str] = frozenset()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SubmitCall:
    """One submission. ``context`` carries the run's principal and secrets (CRED-7)."""

    task_id: str
    server: str
    binding: TaskBinding
    arguments: Mapping[str, Any] = field(repr=False)
    context: CallContext


@dataclass(frozen=True, slots=True)
class TaskRef:
    """How a driver finds the remote work again. ``context.background`` is true and it has no secrets."""

    task_id: str
    server: str
    binding: TaskBinding
    remote_id: str
    context: CallContext


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """The answer to an ``input_required`` request; sent at most once per ``answer_id`` (TASK-16)."""

    answer_id: str
    response: Any = field(repr=False)


class TaskDriver(Protocol):
    """Submits, polls and cancels remote work over one protocol.

    Every call runs under a deadline and may be cancelled at any await. It raises `TransientDriverError`
    for what is worth another try, `ProtocolViolation` for a reply that breaks the contract,
    `SubmitRejected` where the remote certainly accepted nothing. Any other exception counts as transient
    for status and cancel, and as an unknown outcome for submit.
    """

    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        """What this driver takes of the server, given its raw tool names. No I/O."""
        ...

    async def submit(self, call: SubmitCall) -> TaskHandle:
        """Start the work once; never retried by the runtime (TASK-22)."""
        ...

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        """The present state."""
        ...

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        """Ask for cancellation. A non-terminal snapshot is a mere acknowledgement (TASK-17)."""
        ...


@runtime_checkable
class RespondingDriver(Protocol):
    """A `TaskDriver` that can also answer an ``input_required`` task (TASK-16)."""

    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        """Send the answer; raises `NotSupported` where this binding takes none."""
        ...


@dataclass(frozen=True, slots=True)
class TaskDriverSpec:
    """Contributes a driver. ``section``: the server section that turns it on for a server."""

    name: str
    build: "Callable[[GatewayContext], TaskDriver]"
    section: str | None = None


class TaskDriverRegistry(Protocol):
    """The task drivers that this process has installed; a service of the gateway (TASK-15)."""

    def drivers(self) -> Mapping[str, TaskDriver]:
        """Driver name → driver."""
        ...

    def claim(self, driver: str, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        """What the driver of this name takes of the server (`TaskDriver.claim`).

        Raises `PluginError` for what the driver does wrong (PLUG-7).
        """
        return self.drivers()[driver].claim(server, tool_names)


class TaskSubmitter(Protocol):
    """What a durable tool wrapper needs of the task runtime; a service of the gateway."""

    async def submit(
        self, *, server: str, binding: TaskBinding, arguments: Mapping[str, Any], context: CallContext
    ) -> "SubmittedTask":
        """Submit and track; returns once the row is committed (TASK-3).

        Raises `DriverError` kinds, `RemoteTaskConflict`, `CredentialDenied`, `StoreUnavailable`.
        """
        ...


@dataclass(frozen=True, slots=True)
class SubmittedTask:
    """All that an agent gets to know of a submission (ORD-2)."""

    task_id: str
    task_name: str
    status: TaskStatus
