"""Runs in the LangGraph Platform's shapes (RUN-5)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct
from pydantic import BaseModel, Field

from moorage_api.schemas.selection import Selectable

RunStatus = Literal["pending", "running", "success", "error", "timeout", "interrupted"]
MultitaskStrategy = Literal["reject", "enqueue", "interrupt", "rollback"]
StreamMode = Literal[
    "values", "updates", "messages", "messages-tuple", "custom", "events", "debug", "tasks", "checkpoints"
]


class RunCreate(BaseModel):
    """A run as asked for. Credentials go into ``config.context.secrets``, or ``context.secrets`` (RUN-1)."""

    assistant_id: str = Field(min_length=1, max_length=255, examples=["direct"])
    input: Any = Field(None, examples=[{"messages": [{"role": "user", "content": "hello"}]}])
    command: dict[str, Any] | None = Field(None, description="Resumes or updates a graph.")
    metadata: dict[str, Any] | None = Field(None, examples=[{"topic": "reports"}])
    config: dict[str, Any] | None = Field(None, examples=[{"recursion_limit": 25}])
    context: dict[str, Any] | None = None
    stream_mode: StreamMode | list[StreamMode] | None = Field(None, examples=["values"])
    stream_subgraphs: bool = False
    stream_resumable: bool = False
    interrupt_before: Literal["*"] | list[str] | None = None
    interrupt_after: Literal["*"] | list[str] | None = None
    checkpoint: dict[str, Any] | None = None
    checkpoint_id: str | None = Field(None, max_length=128)
    webhook: str | None = Field(None, max_length=2048)
    multitask_strategy: MultitaskStrategy = "reject"
    if_not_exists: Literal["create", "reject"] = "reject"
    on_disconnect: Literal["cancel", "continue"] = "continue"
    on_completion: Literal["delete", "keep"] = "delete"
    after_seconds: float | None = Field(None, ge=0, le=31_536_000, allow_inf_nan=False, strict=True)


class RunsCancel(BaseModel):
    thread_id: str | None = None
    run_ids: list[str] | None = Field(None, max_length=1000)
    status: Literal["pending", "running", "all"] | None = None


class Run(Struct, kw_only=True):
    run_id: Selectable[str] = UNSET
    thread_id: Selectable[str] = UNSET
    assistant_id: Selectable[Annotated[str, Meta(examples=["direct"])]] = UNSET
    created_at: Selectable[datetime] = UNSET
    updated_at: Selectable[datetime] = UNSET
    status: Selectable[RunStatus] = UNSET
    metadata: Selectable[Mapping[str, Any]] = UNSET
    kwargs: Selectable[Mapping[str, Any]] = UNSET
    multitask_strategy: Selectable[str] = UNSET
    error: Selectable[str | None] = UNSET


class RunEvent(Struct, kw_only=True):
    seq: int
    thread_id: str
    run_id: str | None
    task_id: str | None
    event_type: Annotated[str, Meta(examples=["run_start"])]
    metadata: Mapping[str, Any]
    payload: Any
    created_at: datetime


class StreamEvent(Struct, kw_only=True):
    """One server-sent event; ``data`` is JSON."""

    event: Annotated[str, Meta(examples=["values"])]
    data: str
    id: str | None = None
