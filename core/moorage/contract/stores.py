"""Durable stores: records, and the repositories that keep them (TASK-6, TASK-14, OPS-2).

All times are aware UTC datetimes, in and out. Every transition is one conditional update whose return
value says whether it landed. Opaque JSON is kept as text and survives NUL and lone surrogates (BOUND-4).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from moorage.contract.empty import EMPTY, empty
from moorage.contract.runs import RunStatus
from moorage.contract.sinks import AttentionKind
from moorage.contract.tasks import TaskStatus

if TYPE_CHECKING:
    from moorage.contract.clock import Clock

T = TypeVar("T")

NotificationStatus = Literal["none", "pending", "delivered", "dead_letter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One row of a durable task, without its leases."""

    task_id: str
    task_name: str
    user_id: str
    thread_id: str | None
    run_id: str | None
    assistant_id: str | None
    server_name: str
    driver: str
    binding: Mapping[str, Any]
    remote_id: str | None
    status: TaskStatus
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    next_poll_at: datetime | None = None
    last_polled_at: datetime | None = None
    poll_error_count: int = 0
    last_poll_error: str | None = None
    tracking_degraded: bool = False
    cancel_requested_at: datetime | None = None
    next_cancel_at: datetime | None = None
    cancel_attempt_count: int = 0
    last_cancel_error: str | None = None
    error: str | None = None
    error_code: str | None = None
    result: Any = None
    result_preview: str | None = None
    result_truncated: bool = False
    result_artifact: Any = None
    input_required: Any = None
    event_version: int = 0
    """Counts attention events (NOTE-1)."""
    event_kind: AttentionKind | None = None
    event_fingerprint: str | None = None
    notification_status: NotificationStatus = "none"
    notification_attempt: int = 0
    notification_failure_count: int = 0
    notification_error: str | None = None
    holder: str | None = None
    """The replica whose session the remote work lives in, where it lives in one (TASK-19)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """An intent row, committed before the remote submit and leased by its submitter (TASK-22)."""

    task_id: str
    task_name: str
    user_id: str
    thread_id: str | None
    run_id: str | None
    assistant_id: str | None
    server_name: str
    driver: str
    binding: Mapping[str, Any]
    lease_seconds: float
    holder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """The bounded, storable form of a snapshot: what a submit, poll or cancel makes of the row.

    Values have been checked and cut already (BOUND); ``result_json`` and the like are serialised, so that
    one odd value cannot fail a batch (TASK-10).
    """

    status: TaskStatus
    error: str | None = None
    error_code: str | None = None
    result_json: str | None = None
    result_preview: str | None = None
    result_truncated: bool = False
    result_artifact_json: str | None = None
    input_required_json: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTask:
    """A task under the claimer's lease. ``token`` is new for every claim."""

    task: TaskRecord
    token: str
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUpdate:
    """What the holder of a lease writes back; it ends the lease.

    None leaves a field as it is, unless the field's comment says otherwise. The repository raises the
    event version, sets the notification pending and frees the schedule by itself: ``attention`` with a
    fingerprint that differs from the stored one is a new event (NOTE-1).
    """

    task_id: str
    token: str
    outcome: TaskOutcome | None = None
    next_poll_at: datetime | None = None
    """None where the outcome is terminal; else required where a poll was made."""
    polled_at: datetime | None = None
    poll_error: str | None = None
    poll_error_count: int | None = None
    """0 after a good poll, which also clears the error and degraded tracking."""
    tracking_degraded: bool | None = None
    cancel_attempted: bool = False
    next_cancel_at: datetime | None = None
    """Written where ``cancel_attempted``: None means that no further cancel call is due."""
    cancel_error: str | None = None
    cancel_attempt_count: int | None = None
    attention: AttentionKind | None = None
    attention_fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedNotification:
    """A notification under the claimer's lease."""

    task: TaskRecord
    version: int
    attempt: int
    token: str
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationUpdate:
    """What the notifier writes back of one delivery; it ends the lease.

    Lands only while lease and version are still the claimed ones, so that a newer event is never marked
    delivered by an older delivery.
    """

    task_id: str
    token: str
    version: int
    status: NotificationStatus
    attempt: int
    failure_count: int
    error: str | None = None
    next_at: datetime | None = None


AnswerState = Literal["recorded", "sent", "failed", "unknown"]
"""``recorded``: about to be sent, or its sender died; ``failed``: certainly not taken; ``unknown``: it may
have been taken. None of them is ever sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """One answer to an ``input_required`` task (TASK-16)."""

    task_id: str
    answer_id: str
    state: AnswerState
    response: Any = field(repr=False)
    error: str | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Narrows a listing; None means any."""

    user_id: str | None = None
    thread_id: str | None = None
    statuses: frozenset[TaskStatus] | None = None
    name_or_id: str | None = None
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page; ``next_cursor`` is None on the last one. Cursors are opaque."""

    items: Sequence[T]
    next_cursor: str | None = None


class TaskRepository(Protocol):
    """Durable tasks (TASK).

    ``owner`` is the replica's id. Where the database has a clock that replicas share, leases use it.
    """

    async def create_intent(self, task: NewTask) -> str:
        """Commit an intent row in status ``submitted``; returns the submitter's lease token (TASK-22)."""
        ...

    async def record_handle(
        self,
        task_id: str,
        token: str,
        *,
        remote_id: str,
        outcome: TaskOutcome,
        next_poll_at: datetime | None,
        attention: AttentionKind | None = None,
        attention_fingerprint: str | None = None,
    ) -> bool:
        """Turn the intent into a tracked task; False where the submitter's lease was lost.

        Raises `RemoteTaskConflict` for exactly the unique key ``(user, server, remote id)`` (TASK-5).
        """
        ...

    async def fail_intent(
        self, task_id: str, token: str | None, *, error: str, error_code: str, remote_id: str | None = None
    ) -> bool:
        """Make the intent ``failed`` with an attention event (TASK-22); ``token`` None skips the check,
        for a submitter whose lease may have lapsed. False where the row is no open intent any more."""
        ...

    async def discard_intent(self, task_id: str, token: str) -> bool:
        """Remove the intent: the remote certainly got nothing, or another task owns the handle."""
        ...

    async def expire_intents(self) -> int:
        """Fail open intents whose lease lapsed with ``submission_unknown``; returns how many (TASK-22)."""
        ...

    async def get(self, task_id: str) -> TaskRecord | None: ...

    async def list(self, filter: TaskFilter) -> Page[TaskRecord]:  # noqa: A002
        """Newest first."""
        ...

    async def claim(
        self, owner: str, *, limit: int, lease_seconds: float, drivers: Sequence[str] | None = None
    ) -> Sequence[ClaimedTask]:
        """Lease up to ``limit`` tracked tasks whose poll or cancel is due, the longest due first (TASK-6).

        ``drivers`` narrows to these drivers' tasks. Skips rows under a live lease, and rows whose holder is
        another replica with a live heartbeat; a held row's claimer becomes its holder (TASK-19).
        """
        ...

    async def heartbeat(self, owner: str, lease_seconds: float) -> None:
        """Say that the replica lives, for ``lease_seconds`` from now (TASK-19); 0 says farewell, and what
        it held is free for the others at once."""
        ...

    async def apply(self, updates: Sequence[TaskUpdate]) -> frozenset[str]:
        """Write a batch back; returns the ids that landed: token matches, lease not expired, row not
        terminal (TASK-6, TASK-9). One poisoned row never fails its siblings (TASK-10)."""
        ...

    async def release(self, claims: Mapping[str, str]) -> frozenset[str]:
        """Give leases (task id → token) back with nothing counted; due times stay (TASK-11)."""
        ...

    async def request_cancel(self, task_id: str) -> TaskRecord | None:
        """Record the request once and make the cancel due now (TASK-17); returns the row as it is after
        that, unchanged where terminal or already requested; None where there is none."""
        ...

    async def record_answer(
        self, task_id: str, answer_id: str, *, response_json: str
    ) -> tuple[AnswerRecord, bool]:
        """Commit an answer before it is sent (TASK-16): the row, and whether it was made now.

        A known ``(task_id, answer_id)`` returns the existing row, untouched. Raises `NotFound` where there
        is no such task and `Conflict` where it is not ``input_required``.
        """
        ...

    async def finish_answer(
        self, task_id: str, answer_id: str, *, state: AnswerState, error: str | None = None
    ) -> bool:
        """Write what became of a ``recorded`` answer and make the task's poll due now; False where the
        answer is not ``recorded`` any more."""
        ...

    async def next_due_at(self) -> datetime | None:
        """When the next poll, cancel or intent expiry is due, leases included; None where nothing is."""
        ...

    async def claim_notifications(
        self, owner: str, *, limit: int, lease_seconds: float
    ) -> Sequence[ClaimedNotification]:
        """Lease pending notifications that are due."""
        ...

    async def apply_notification(self, update: NotificationUpdate) -> bool:
        """Write one delivery's outcome back; False where lease or version moved on."""
        ...

    async def next_notification_at(self) -> datetime | None: ...

    async def purge(self, *, finished_before: datetime, limit: int) -> int:
        """Delete up to ``limit`` tasks that finished before then and have no notification pending, with
        their answers; returns how many."""
        ...

    async def delete_thread(self, user_id: str, thread_id: str) -> None:
        """The thread is gone: its undelivered notifications are dead-lettered; tasks stay."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRecord:
    thread_id: str
    user_id: str
    metadata: Mapping[str, Any]
    status: Literal["idle", "busy", "interrupted", "error"]
    created_at: datetime
    updated_at: datetime
    last_assistant_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """``kwargs`` is the stored request: input, config and context without secrets (RUN-1)."""

    run_id: str
    thread_id: str
    user_id: str
    assistant_id: str
    status: RunStatus
    metadata: Mapping[str, Any]
    kwargs: Mapping[str, Any] = field(default_factory=empty, repr=False)
    multitask_strategy: str = "reject"
    idempotency_key: str | None = None
    error: str | None = None
    owner: str | None = None
    internal: bool = False
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """A row of a thread's event log; ``seq`` grows within the thread."""

    seq: int
    thread_id: str
    run_id: str | None
    task_id: str | None
    event_type: str
    metadata: Mapping[str, Any]
    payload: Any
    created_at: datetime


class ThreadRepository(Protocol):
    async def create(
        self, thread_id: str, user_id: str, metadata: Mapping[str, Any]
    ) -> tuple[ThreadRecord, bool]:
        """The row, and whether it was made now; an existing row (whoever's) is returned unchanged."""
        ...

    async def get(self, thread_id: str) -> ThreadRecord | None: ...

    async def merge_metadata(self, thread_id: str, metadata: Mapping[str, Any]) -> ThreadRecord | None:
        """Merge top-level keys in one transaction."""
        ...

    async def delete(self, thread_id: str) -> bool:
        """Remove the thread, its runs and events; its tasks stay (`TaskRepository.delete_thread`)."""
        ...

    async def search(
        self,
        user_id: str,
        *,
        metadata: Mapping[str, Any] = EMPTY,
        status: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Sequence[ThreadRecord]:
        """Newest first; ``metadata`` matches top-level keys by equality."""
        ...


class RunRepository(Protocol):
    async def create(
        self, run: RunRecord, *, exclusive: bool, lease_seconds: float = 60.0
    ) -> tuple[RunRecord, bool]:
        """The row, and whether it was made now: a known ``(thread, idempotency key)`` returns the
        existing row, also where the thread is busy. ``exclusive`` raises `ThreadBusy` where the thread
        has an active run. Raises `NotFound` where the thread does not exist. Sets the thread busy.
        ``run.owner`` gets a lease of ``lease_seconds``."""
        ...

    async def get(self, run_id: str) -> RunRecord | None: ...

    async def list(
        self, thread_id: str, *, status: RunStatus | None = None, limit: int = 10, offset: int = 0
    ) -> Sequence[RunRecord]:
        """Newest first."""
        ...

    async def begin(self, run_id: str, owner: str) -> bool:
        """Make a pending run of ``owner`` running, unless another run of its thread is: at most one run of
        a thread executes, however many processes try at once. False where it did not land."""
        ...

    async def transition(
        self, run_id: str, *, expected: frozenset[RunStatus], to: RunStatus, error: str | None = None
    ) -> bool:
        """One conditional update; also sets the thread's status when no active run is left."""
        ...

    async def heartbeat(self, owner: str, run_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        """Extend the leases of the runs that ``owner`` executes; returns the ids that are still active
        and its own. What is missing was cancelled or taken over elsewhere: stop executing it."""
        ...

    async def take_over(self, owner: str, *, lease_seconds: float, limit: int = 100) -> Sequence[RunRecord]:
        """Active runs whose owner's lease lapsed, now leased by ``owner``, each by one conditional update.

        The records are as stored but for the owner: the status tells whether it had begun. The taker ends
        them truthfully or starts what never began (RUN-1)."""
        ...

    async def delete(self, run_id: str) -> bool:
        """Remove a run that is not active, and its events; False where there is no such run."""
        ...


class EventRepository(Protocol):
    async def append(
        self,
        thread_id: str,
        *,
        event_type: str,
        run_id: str | None = None,
        task_id: str | None = None,
        metadata: Mapping[str, Any] = EMPTY,
        payload: Any = None,
    ) -> RunEvent | None:
        """None where the thread does not exist (it is never created by this)."""
        ...

    async def list(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        event_types: Sequence[str] | None = None,
        task_id: str | None = None,
        after_seq: int = 0,
        limit: int = 100,
    ) -> Sequence[RunEvent]:
        """By ``seq``, ascending."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyRecord:
    """A key as stored: hashed (API-2)."""

    key_id: str
    name: str
    user_id: str
    roles: frozenset[str]
    created_at: datetime
    revoked_at: datetime | None = None


class KeyRepository(Protocol):
    async def create(self, *, name: str, user_id: str, roles: frozenset[str], key_hash: str) -> ApiKeyRecord:
        """Raises `Conflict` for a live key of that name."""
        ...

    async def find(self, key_hash: str) -> ApiKeyRecord | None:
        """The live key with this hash."""
        ...

    async def list(self) -> Sequence[ApiKeyRecord]: ...

    async def revoke(self, key_id_or_name: str) -> ApiKeyRecord | None: ...

    async def roles_of(self, user_id: str) -> frozenset[str]:
        """The union of the live keys' roles: the owner's current roles (NOTE-6)."""
        ...


class MemoRepository(Protocol):
    """Small durable facts by name (the sections that were in force, say: PLUG-4)."""

    async def get(self, name: str) -> Any: ...

    async def put(self, name: str, value: Any) -> None: ...

    async def swap(self, name: str, expected: Any, value: Any) -> bool:
        """Put ``value`` only where the present one equals ``expected`` (None: there is none), atomically.

        One conditional statement; returns whether it landed. Replicas that share a database settle by it
        who renews a token (CRED-3).
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """One item of a run's stream. ``mode`` None concerns every subscriber."""

    number: int
    event: str
    mode: str | None
    data_json: str


class StreamRepository(Protocol):
    """Streams of runs, for clients of replicas that do not execute them (RUN-5, RUN-8).

    Who follows a run elsewhere asks for its stream; the replica that executes it copies it here meanwhile,
    from its start. What nobody asks for any more is removed.
    """

    async def ask(self, run_id: str, seconds: float) -> str | None:
        """Say that the run's stream is wanted for ``seconds`` from now. Returns the copy's token, which stays
        while somebody keeps asking; None where there is no such run."""
        ...

    async def asked(self) -> Mapping[str, str]:
        """The runs whose streams are wanted now, and their tokens."""
        ...

    async def append(self, token: str, rows: Sequence[StreamRow], *, thread_id: str) -> bool:
        """Add to a copy; numbers that it has already stay as they are. False where the copy is gone."""
        ...

    async def list(self, token: str, *, after: int, limit: int) -> Sequence[StreamRow]:
        """By number, ascending."""
        ...

    async def clear(self) -> int:
        """Remove the copies that nobody asks for any more; returns how many."""
        ...


SignalKind = Literal["tasks", "notifications", "events", "streams", "followers"]


@dataclass(frozen=True, slots=True)
class StoreSignal:
    """A hint that another look is worth it: a poll, cancel or lease may be due earlier than expected, a
    notification may be pending, events or rows of a run's stream were appended to ``thread_id`` (None: to
    any), or somebody asks for a stream."""

    kind: SignalKind
    thread_id: str | None = None


class Store(Protocol):
    """An open store."""

    @property
    def durable(self) -> bool:
        """False for a memory store: tasks are unavailable then (TASK-14)."""
        ...

    @property
    def tasks(self) -> TaskRepository: ...
    @property
    def threads(self) -> ThreadRepository: ...
    @property
    def runs(self) -> RunRepository: ...
    @property
    def events(self) -> EventRepository: ...
    @property
    def keys(self) -> KeyRepository: ...
    @property
    def memos(self) -> MemoRepository: ...
    @property
    def streams(self) -> StreamRepository | None:
        """None where streams stay with the replica that executes the run."""
        return None

    async def ping(self) -> None:
        """Raises `StoreUnavailable`."""
        ...

    def watch(self, heard: Callable[[StoreSignal], None]) -> AbstractAsyncContextManager[None]:
        """While entered, ``heard`` is called for what this process changes, and for what other replicas on
        the database change where it can tell (TASK-19). It must be quick and may be called from any thread.

        A hint, never a promise: a signal may come late, twice or not at all. Who waits for one also looks
        once in a while.
        """
        return nullcontext()


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """Contributes a store for database URLs of these schemes (``sqlite``, ``postgresql``).

    ``open(url, clock, migrate)``: opens the database; with ``migrate`` it is brought up to date first,
    otherwise one that is not raises `StoreUnavailable` that names ``moorage db upgrade``.
    """

    name: str
    schemes: frozenset[str]
    open: "Callable[[str, Clock, bool], AbstractAsyncContextManager[Store]]"
    upgrade: Callable[[str], str]
    """Migrate the database (synchronous); returns the revision it is at."""
