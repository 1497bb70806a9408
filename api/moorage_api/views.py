"""From records to answers. What they hold has been redacted by the run service (RUN-4)."""

from collections.abc import Mapping
from typing import Any

from moorage.contract.runs import ThreadState as State
from moorage.contract.stores import RunEvent as RunEventRecord
from moorage.contract.stores import RunRecord, ThreadRecord
from moorage_api.schemas.runs import Run, RunEvent
from moorage_api.schemas.threads import Checkpoint, Thread, ThreadState


def thread_view(record: ThreadRecord, state: State | None = None) -> Thread:
    """A thread, with its values where the state is at hand."""
    return Thread(
        thread_id=record.thread_id,
        created_at=record.created_at,
        updated_at=record.updated_at,
        metadata=record.metadata,
        status=record.status,
        values=state.values if state is not None else None,
        interrupts=_interrupts_by_task(state),
    )


def _interrupts_by_task(state: State | None) -> Mapping[str, Any]:
    tasks = state.tasks if state is not None else ()
    return {str(task["id"]): task["interrupts"] for task in tasks if task.get("interrupts") and "id" in task}


def state_view(thread_id: str, state: State | None) -> ThreadState:
    """A state; None is that of a thread in which nothing has happened."""
    state = state or State(values={})
    parent = state.parent_checkpoint_id
    return ThreadState(
        values=state.values,
        next=state.next,
        checkpoint=checkpoint_view(thread_id, state.checkpoint_id, state.checkpoint_ns),
        metadata=state.metadata,
        created_at=state.created_at,
        parent_checkpoint=checkpoint_view(thread_id, parent, state.checkpoint_ns) if parent else None,
        tasks=state.tasks,
        interrupts=state.interrupts,
    )


def checkpoint_view(thread_id: str, checkpoint_id: str | None, checkpoint_ns: str) -> Checkpoint:
    return Checkpoint(thread_id=thread_id, checkpoint_id=checkpoint_id, checkpoint_ns=checkpoint_ns)


def run_view(record: RunRecord) -> Run:
    return Run(
        run_id=record.run_id,
        thread_id=record.thread_id,
        assistant_id=record.assistant_id,
        created_at=record.created_at,
        updated_at=record.updated_at,
        status=record.status.value,
        metadata=record.metadata,
        kwargs=record.kwargs,
        multitask_strategy=record.multitask_strategy,
        error=record.error,
    )


def event_view(record: RunEventRecord) -> RunEvent:
    return RunEvent(
        seq=record.seq,
        thread_id=record.thread_id,
        run_id=record.run_id,
        task_id=record.task_id,
        event_type=record.event_type,
        metadata=record.metadata,
        payload=record.payload,
        created_at=record.created_at,
    )
