"""Threads in the LangGraph Platform's shapes (RUN-5). Unknown keys are tolerated, for newer clients."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from pydantic import BaseModel, Field

from moorage_api.schemas.ids import NewThreadId

Metadata = dict[str, Any]
ThreadStatus = Literal["idle", "busy", "interrupted", "error"]


class ThreadCreate(BaseModel):
    thread_id: NewThreadId | None = Field(None, description="Made up where it is absent.")
    metadata: Metadata | None = Field(None, examples=[{"topic": "reports"}])
    if_exists: Literal["raise", "do_nothing"] = "raise"
    supersteps: list[Any] | None = Field(None, description="Not supported: 501.")


class ThreadPatch(BaseModel):
    metadata: Metadata = Field(examples=[{"topic": "reports"}])


class ThreadSearch(BaseModel):
    metadata: Metadata | None = None
    values: dict[str, Any] | None = Field(None, description="Not supported: 501.")
    ids: list[NewThreadId] | None = Field(None, max_length=1000)
    status: ThreadStatus | None = None
    limit: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=1_000_000_000)
    sort_by: Literal["thread_id", "status", "created_at", "updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = Field(None, max_length=50)
    extract: dict[str, str] | None = Field(None, description="Not supported: 501.")


class ThreadCount(BaseModel):
    metadata: Metadata | None = None
    values: dict[str, Any] | None = Field(None, description="Not supported: 501.")
    status: ThreadStatus | None = None


class CheckpointRef(BaseModel):
    thread_id: str | None = None
    checkpoint_ns: str = ""
    checkpoint_id: str | None = Field(None, max_length=128)


class StateUpdate(BaseModel):
    values: dict[str, Any] | list[dict[str, Any]] | None = Field(
        None, examples=[{"messages": [{"role": "user", "content": "noted"}]}]
    )
    as_node: str | None = Field(None, max_length=255)
    checkpoint: CheckpointRef | None = None
    checkpoint_id: str | None = Field(None, max_length=128)


class StateAt(BaseModel):
    checkpoint: CheckpointRef
    subgraphs: bool = False
    select: list[str] | None = Field(None, max_length=50)


class HistoryQuery(BaseModel):
    limit: int = Field(10, ge=1, le=1000)
    before: str | CheckpointRef | None = None
    metadata: Metadata | None = None
    checkpoint: CheckpointRef | None = None
    select: list[str] | None = Field(None, max_length=50)


class Thread(Struct, kw_only=True):
    thread_id: Annotated[str, Meta(examples=["3f1c8d0e-thread"])]
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, Any]
    status: ThreadStatus
    values: Any = None
    interrupts: Mapping[str, Any] = {}


class Checkpoint(Struct, kw_only=True):
    thread_id: str
    checkpoint_ns: str = ""
    checkpoint_id: str | None = None
    checkpoint_map: Mapping[str, Any] | None = None


class ThreadState(Struct, kw_only=True):
    values: Any
    next: Sequence[str]
    checkpoint: Checkpoint
    metadata: Mapping[str, Any]
    created_at: datetime | None
    parent_checkpoint: Checkpoint | None
    tasks: Sequence[Mapping[str, Any]]
    interrupts: Sequence[Any] = ()


class StateUpdated(Struct):
    checkpoint: Checkpoint
