"""A remote that runs jobs, and fails in every way that a check asks for (DX-2).

It knows no protocol: what it means to say (`Said`) is spelled by the author's suite, and what reaches it
are `Operation`, remote id and payload.
"""

import asyncio
import itertools
import threading
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from moorage.contract import TaskStatus

SILENCE_SECONDS = 3.0
"""How long a silent remote keeps a caller waiting before it drops the connection."""


class Operation(StrEnum):
    """What a driver asks of its remote."""

    SUBMIT = "submit"
    STATUS = "status"
    CANCEL = "cancel"
    RESPOND = "respond"


class Trouble(StrEnum):
    """How an exchange goes wrong."""

    UNREACHABLE = "unreachable"
    """Nothing arrives at the remote."""
    OVERLOADED = "overloaded"
    """It arrives and has no effect; the remote asks to try later."""
    LOST = "lost"
    """It takes effect, and the connection breaks before the reply."""
    REFUSED = "refused"
    """A submit that the remote turns down for good: no job exists."""
    FORGOTTEN = "forgotten"
    """The remote says that it has no such job (any more)."""
    SILENT = "silent"
    """It takes effect, and no reply comes until `SILENCE_SECONDS` have passed."""


@dataclass(frozen=True, slots=True)
class Said:
    """One reply as the remote means it. In a bad one the fields hold what they must not hold."""

    operation: Operation
    remote_id: Any
    status: TaskStatus | str
    result: Any = None
    error: str | None = None
    input_required: Any = None
    poll_after_seconds: Any = None


@dataclass(slots=True)
class Job:
    """A job of the remote. A test changes it at will."""

    remote_id: str
    payload: Any = field(repr=False)
    status: TaskStatus = TaskStatus.WORKING
    result: Any = None
    error: str | None = None
    input_required: Any = None
    poll_after_seconds: Any = None
    answers: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What reached the remote."""

    operation: Operation
    remote_id: str | None
    payload: Any = field(repr=False)


class ReplyLost(ConnectionError):
    """The connection broke; what had been sent may have taken effect."""


class NotReached(ConnectionError):
    """There is no connection; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Slow:
    """The usual answer, after this long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wire:
    """These very bytes, that mapping, whatever the protocol's replies are made of. It takes effect."""

    reply: Any


Twist = Callable[[Said], Said]
"""Changes what the remote is about to say."""
Step = Trouble | Slow | Wire | Twist


class FaultyRemote:
    """Runs jobs and answers for them; `plan` makes the next exchanges go wrong, `always` all of them.

    ``spell`` turns `Said` into a reply of the protocol. ``fail`` returns what a caller gets in a `Trouble`:
    a reply, or an exception to raise; None stands for what is usual (`NotReached`, `ReplyLost`).
    """

    def __init__(
        self,
        spell: Callable[[Said], Any],
        fail: Callable[[Trouble, Operation, str | None], Any] = lambda trouble, operation, remote_id: None,
    ) -> None:
        self._spell = spell
        self._fail = fail
        self._ids = itertools.count(1)
        self._planned: dict[Operation, deque[Step]] = defaultdict(deque)
        self._always: dict[Operation, Step] = {}
        self._for_job: dict[str, Step] = {}
        self._lock = threading.Lock()
        self.jobs: dict[str, Job] = {}
        self.exchanges: list[Exchange] = []
        self.under_way = 0
        self.most_under_way = 0
        self.cancel_is_acknowledged_only = False
        self.next_id: Callable[[int], str] = lambda number: f"job-{number}"
        self.first_status: TaskStatus = TaskStatus.WORKING

    # --- what a test arranges

    def plan(self, operation: Operation, *steps: Step) -> None:
        """The next exchanges of this kind go so, one after the other; then all is well again."""
        self._planned[operation].extend(steps)

    def always(self, operation: Operation, step: Step | None) -> None:
        """From now on every exchange of this kind goes so; None ends it."""
        if step is None:
            self._always.pop(operation, None)
        else:
            self._always[operation] = step

    def always_for(self, remote_id: str, step: Step) -> None:
        """Every exchange about this job goes so."""
        self._for_job[remote_id] = step

    def count(self, operation: Operation, remote_id: str | None = None) -> int:
        """How many exchanges of this kind arrived."""
        return sum(
            e.operation is operation and (remote_id is None or e.remote_id == remote_id)
            for e in self.exchanges
        )

    @asynccontextmanager
    async def unreachable(self) -> AsyncIterator[None]:
        """Nothing arrives while the block runs."""
        kept = dict(self._always)
        self._always = dict.fromkeys(Operation, Trouble.UNREACHABLE)
        try:
            yield
        finally:
            self._always = kept

    # --- what the driver's transport calls

    async def exchange(self, operation: Operation, remote_id: str | None = None, payload: Any = None) -> Any:
        """One request and its reply in the protocol's own terms; raises what its transport would."""
        with self._lock:
            step = self._next_step(operation, remote_id)
            if step is Trouble.UNREACHABLE:
                self._raise(Trouble.UNREACHABLE, operation, remote_id, NotReached("no connection"))
            self.exchanges.append(Exchange(operation, remote_id, payload))
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await self._answered(step, operation, remote_id, payload)
        finally:
            with self._lock:
                self.under_way -= 1

    async def _answered(
        self, step: Step | None, operation: Operation, remote_id: str | None, payload: Any
    ) -> Any:
        if step in (Trouble.OVERLOADED, Trouble.REFUSED):
            return self._raise(step, operation, remote_id, ReplyLost("the remote asks to try later"))
        if isinstance(step, Slow):
            await asyncio.sleep(step.seconds)
        said = None if step is Trouble.FORGOTTEN else self._perform(operation, remote_id, payload)
        if said is None:
            return self._raise(Trouble.FORGOTTEN, operation, remote_id, ReplyLost("no such job"))
        if step is Trouble.LOST:
            return self._raise(step, operation, said.remote_id, ReplyLost("the connection broke"))
        if step is Trouble.SILENT:
            await asyncio.sleep(SILENCE_SECONDS)
            return self._raise(Trouble.LOST, operation, said.remote_id, ReplyLost("the connection broke"))
        if isinstance(step, Wire):
            return step.reply
        return self._spell(step(said) if callable(step) and not isinstance(step, Trouble | Slow) else said)

    def _next_step(self, operation: Operation, remote_id: str | None) -> Step | None:
        if remote_id is not None and remote_id in self._for_job:
            return self._for_job[remote_id]
        planned = self._planned[operation]
        return planned.popleft() if planned else self._always.get(operation)

    def _raise(self, trouble: Any, operation: Operation, remote_id: str | None, usual: BaseException) -> Any:
        reply = self._fail(trouble, operation, remote_id)
        reply = usual if reply is None else reply
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def _perform(self, operation: Operation, remote_id: str | None, payload: Any) -> Said | None:
        if operation is Operation.SUBMIT:
            made = Job(self.next_id(next(self._ids)), payload, self.first_status)
            job = self.jobs[made.remote_id] = made
        elif remote_id is None or remote_id not in self.jobs:
            return None
        else:
            job = self.jobs[remote_id]
        acknowledged = False
        if operation is Operation.CANCEL and not job.status.terminal:
            acknowledged = self.cancel_is_acknowledged_only
            if not acknowledged:
                job.status = TaskStatus.CANCELLED
        if operation is Operation.RESPOND:
            job.answers.append(payload)
            if job.status is TaskStatus.INPUT_REQUIRED:
                job.status, job.input_required = TaskStatus.WORKING, None
        return said_of(job, operation)


def said_of(job: Job, operation: Operation) -> Said:
    """What an honest remote says of the job."""
    return Said(
        operation=operation,
        remote_id=job.remote_id,
        status=job.status,
        result=job.result if job.status is TaskStatus.COMPLETED else None,
        error=job.error if job.status is TaskStatus.FAILED else None,
        input_required=job.input_required if job.status is TaskStatus.INPUT_REQUIRED else None,
        poll_after_seconds=None if job.status.terminal else job.poll_after_seconds,
    )


def twist(**changes: Any) -> Twist:
    """A `Twist` that replaces fields of what is said."""
    return lambda said: replace(said, **changes)
