"""Durable tasks of a thread (API-3). The remote id is never part of them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from pydantic import BaseModel, Field

TaskStatus = Literal["submitted", "working", "input_required", "completed", "failed", "cancelled"]


class TaskRow(Struct, kw_only=True):
    task_id: Annotated[str, Meta(examples=["task_01"])]
    task_name: Annotated[str, Meta(examples=["hash-folder"])]
    server_name: Annotated[str, Meta(examples=["jobs"])]
    driver: Annotated[str, Meta(examples=["ordinary"])]
    status: TaskStatus
    created_at: datetime
    updated_at: datetime
    error: str | None
    tracking_degraded: bool
    cancel_requested: bool


class TaskDetail(TaskRow, kw_only=True):
    last_polled_at: datetime | None
    last_poll_error: str | None
    last_cancel_error: str | None
    cancel_attempt_count: int
    notification_status: Literal["none", "pending", "delivered", "dead_letter"]
    notification_error: str | None
    notification_attempt_count: int
    result: Any
    result_preview: str | None
    result_truncated: bool
    result_artifact: Any
    input_required: Any


class TaskPage(Struct):
    items: list[TaskRow]
    next_cursor: str | None = None


class TaskResponse(BaseModel):
    """The answer to a task in ``input_required``; sent at most once per ``answer_id`` (TASK-16)."""

    response: Any = Field(description="Judged against the request's JSON schema where it gives one.")
    answer_id: str | None = Field(None, min_length=1, max_length=128)


class TaskAnswered(Struct, kw_only=True):
    task_id: str
    answer_id: str
    state: Annotated[str, Meta(examples=["sent"])]
    error: str | None
    created_at: datetime
