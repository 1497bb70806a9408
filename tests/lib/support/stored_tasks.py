"""Short ways to bring tasks of a real repository into a state."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from moorage.contract import (
    AttentionKind,
    ClaimedTask,
    NewTask,
    TaskOutcome,
    TaskRecord,
    TaskRepository,
    TaskStatus,
    TaskUpdate,
)
from support.clock import FakeClock

WORKING = TaskOutcome(status=TaskStatus.WORKING)
COMPLETED = TaskOutcome(status=TaskStatus.COMPLETED, result_json='{"files":3}')
ASKING = TaskOutcome(status=TaskStatus.INPUT_REQUIRED, input_required_json='{"question":"?"}')


def new_task(task_id: str, **fields: Any) -> NewTask:
    given: dict[str, Any] = {
        "task_name": "count",
        "user_id": "alice",
        "thread_id": "thread-1",
        "run_id": "run-1",
        "assistant_id": "direct",
        "server_name": "files",
        "driver": "ordinary",
        "binding": {"status_tool": "count_status"},
        "lease_seconds": 30.0,
        **fields,
    }
    return NewTask(task_id=task_id, **given)


@dataclass
class Tasks:
    """A repository, the clock it was opened with, and its usual calls."""

    repository: TaskRepository
    clock: FakeClock
    owner: str = "replica-1"
    tokens: dict[str, str] = field(default_factory=dict)

    def in_seconds(self, seconds: float) -> datetime:
        return self.clock.now() + timedelta(seconds=seconds)

    async def intent(self, task_id: str, **fields: Any) -> str:
        self.tokens[task_id] = await self.repository.create_intent(new_task(task_id, **fields))
        return self.tokens[task_id]

    async def track(
        self,
        task_id: str,
        *,
        outcome: TaskOutcome = WORKING,
        due_in: float = 0.0,
        remote_id: str | None = None,
        attention: AttentionKind | None = None,
        fingerprint: str | None = None,
        **fields: Any,
    ) -> TaskRecord:
        token = await self.intent(task_id, **fields)
        assert await self.repository.record_handle(
            task_id,
            token,
            remote_id=remote_id or f"remote-{task_id}",
            outcome=outcome,
            next_poll_at=None if outcome.status.terminal else self.in_seconds(due_in),
            attention=attention,
            attention_fingerprint=fingerprint,
        )
        return await self.get(task_id)

    async def finish(self, task_id: str, outcome: TaskOutcome = COMPLETED) -> TaskRecord:
        """From nothing to a terminal state, with its notification pending."""
        return await self.track(
            task_id, outcome=outcome, attention=AttentionKind.TERMINAL, fingerprint=f"end of {task_id}"
        )

    async def claim(
        self, limit: int = 100, *, lease_seconds: float = 10.0, **options: Any
    ) -> list[ClaimedTask]:
        owner = options.pop("owner", self.owner)
        return [*await self.repository.claim(owner, limit=limit, lease_seconds=lease_seconds, **options)]

    async def claim_one(self, **options: Any) -> ClaimedTask:
        (claim,) = await self.claim(**options)
        return claim

    def polled(self, claim: ClaimedTask, outcome: TaskOutcome | None = WORKING, **fields: Any) -> TaskUpdate:
        """A good poll, whose next one is due in five seconds."""
        over = outcome is not None and outcome.status.terminal
        given: dict[str, Any] = {
            "next_poll_at": None if over else self.in_seconds(5),
            "polled_at": self.clock.now(),
            "poll_error_count": 0,
            **fields,
        }
        return TaskUpdate(task_id=claim.task.task_id, token=claim.token, outcome=outcome, **given)

    async def apply(self, *updates: TaskUpdate) -> set[str]:
        return set(await self.repository.apply(updates))

    async def get(self, task_id: str) -> TaskRecord:
        task = await self.repository.get(task_id)
        assert task is not None
        return task
