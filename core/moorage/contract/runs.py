"""Runs, run admission and assistants (RUN)."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from moorage.contract.empty import empty
from moorage.contract.identity import CallContext, Principal
from moorage.contract.tools import GatewayTool

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext


class RunStatus(StrEnum):
    """LangGraph Platform's run states."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"

    @property
    def terminal(self) -> bool:
        return self not in (RunStatus.PENDING, RunStatus.RUNNING)


RunOrigin = Literal["api", "scheduled", "internal"]
MultitaskStrategy = Literal["reject", "enqueue", "interrupt", "rollback"]
StreamMode = Literal[
    "values", "updates", "messages", "messages-tuple", "custom", "events", "debug", "tasks", "checkpoints"
]
DEFAULT_STREAM_MODES: frozenset[StreamMode] = frozenset({"values", "updates", "messages-tuple", "custom"})


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run as asked for; nothing of it exists yet.

    ``metadata`` is the raw top-level value as submitted. ``principal`` comes from authentication (RUN-9).
    ``context`` is the caller's ``config.context`` (or ``context``) without ``secrets`` and without every
    key that claims an identity; ``config`` likewise.
    """

    thread_id: str
    assistant_id: str
    principal: Principal
    input: Any = field(default=None, repr=False)
    metadata: Any = None
    context: Mapping[str, Any] = field(default_factory=empty)
    secrets: Mapping[str, Any] = field(default_factory=empty, repr=False)
    config: Mapping[str, Any] = field(default_factory=empty)
    origin: RunOrigin = "api"
    idempotency_key: str | None = None
    multitask_strategy: MultitaskStrategy = "reject"
    checkpoint_id: str | None = None
    """Go on from this checkpoint instead of the latest."""
    command: Mapping[str, Any] | None = field(default=None, repr=False)
    """LangGraph's ``{"resume": …}``, ``update`` or ``goto``, instead of ``input``."""
    interrupt_before: Sequence[str] | Literal["*"] = ()
    interrupt_after: Sequence[str] | Literal["*"] = ()
    stream_modes: frozenset[StreamMode] = DEFAULT_STREAM_MODES
    """What the run's stream offers; a subscriber takes some of them."""
    stream_subgraphs: bool = False
    after_seconds: float = 0.0
    if_not_exists: Literal["reject", "create"] = "reject"
    """What a missing thread means."""
    on_completion: Literal["keep", "delete"] = "keep"
    """``delete`` removes the thread when the run has ended (stateless runs)."""
    webhook: str | None = None
    """An http(s) URL that is told of the run's end."""


class RunValidator(Protocol):
    """Admits or refuses a run before anything exists (RUN-2, RUN-3)."""

    async def validate(self, request: RunRequest) -> None:
        """Raises `AdmissionRejected`; runs under a deadline, and failing to answer refuses the run."""
        ...


@dataclass(frozen=True, slots=True)
class RunValidatorSpec:
    """Contributes a run validator; they run by precedence, the core's own rules first."""

    name: str
    precedence: int
    build: "Callable[[GatewayContext], RunValidator]"


@dataclass(frozen=True, slots=True)
class RunContext:
    """What an assistant gets of the run. ``call`` has principal and live secrets (RUN-1)."""

    thread_id: str
    run_id: str
    call: CallContext
    tools: Sequence[GatewayTool]
    internal: bool = False
    """Started by the gateway itself (a notification), by no body's word (RUN-9)."""
    metadata: Mapping[str, Any] = field(default_factory=empty)
    context: Mapping[str, Any] = field(default_factory=empty)
    """The caller's own context, without secrets and without what claims an identity (RUN-9)."""
    config: Mapping[str, Any] = field(default_factory=empty)
    recursion_limit: int = 25
    checkpoint_id: str | None = None
    command: Mapping[str, Any] | None = field(default=None, repr=False)
    interrupt_before: Sequence[str] | Literal["*"] = ()
    interrupt_after: Sequence[str] | Literal["*"] = ()
    stream_modes: frozenset[StreamMode] = DEFAULT_STREAM_MODES
    stream_subgraphs: bool = False
    redact: Callable[[str], str] = field(default=str, repr=False)
    """Takes the run's secrets, and those that the gateway knows, out of a text: for what the assistant
    itself stores or shows of an error (CRED-9)."""


@dataclass(frozen=True, slots=True)
class AssistantEvent:
    """One piece of a run's stream; ``data`` is JSON-compatible. ``messages-tuple`` carries ``[message,
    metadata]``, ``messages`` the Platform's accumulated messages with their kind in ``detail``."""

    mode: StreamMode
    data: Any
    namespace: tuple[str, ...] = ()
    detail: str | None = None
    """The second half of the Platform's event name (``messages/partial``)."""


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A checkpoint of a thread in LangGraph Platform's shape; values are JSON-compatible."""

    values: Mapping[str, Any]
    next: tuple[str, ...] = ()
    checkpoint_id: str | None = None
    parent_checkpoint_id: str | None = None
    checkpoint_ns: str = ""
    metadata: Mapping[str, Any] = field(default_factory=empty)
    created_at: datetime | None = None
    tasks: tuple[Mapping[str, Any], ...] = ()
    interrupts: tuple[Mapping[str, Any], ...] = ()


class Assistant(Protocol):
    """Answers the runs of a thread and keeps the thread's state."""

    def stream(self, run: RunContext, input: Any) -> AsyncIterator[AssistantEvent]:  # noqa: A002
        """Run once; the last ``values`` event is the run's result. ``input`` is LangGraph's state update
        (``{"messages": [...]}``), or None to go on from the checkpoint. Cancellation stops it."""
        ...

    async def state(self, thread_id: str, *, checkpoint_id: str | None = None) -> ThreadState | None:
        """The latest (or named) state; None where there is none."""
        ...

    def history(
        self, thread_id: str, *, limit: int = 10, before: str | None = None
    ) -> AsyncIterator[ThreadState]:
        """States, newest first."""
        ...

    async def update_state(
        self, thread_id: str, values: Any, *, as_node: str | None = None, checkpoint_id: str | None = None
    ) -> ThreadState:
        """Write a state update outside a run; raises `InvalidUpdate` for one that does not fit."""
        ...

    async def delete_thread(self, thread_id: str) -> None:
        """Forget the thread's states."""
        ...


@dataclass(frozen=True, slots=True)
class AssistantSpec:
    """Contributes an assistant."""

    name: str
    description: str
    build: "Callable[[GatewayContext], Assistant]"
    available: "Callable[[GatewayContext], str | None] | None" = None
    """Returns why it cannot be used here (no model configured, say), None where it can."""
    state_timeout_seconds: float = 60.0
    """What each call about a thread's state may take, in ``history`` each state (PLUG-7). A run has no such
    limit: it can be cancelled."""


@dataclass(frozen=True, slots=True)
class LaunchedRun:
    """A run that exists; ``created`` is false where the idempotency key was known already."""

    run_id: str
    thread_id: str
    status: RunStatus
    created: bool = True
    error: str | None = None


class RunLauncher(Protocol):
    """Launches runs for the gateway's own purposes; a service of the gateway.

    The same admission gate as everybody's (RUN-2).
    """

    async def launch(self, request: RunRequest) -> LaunchedRun:
        """Start it in the background, or find it by its idempotency key.

        Raises `NotFound` where the thread does not exist or is not the principal's (it is never created),
        `ThreadBusy`, `AdmissionRejected`.
        """
        ...
