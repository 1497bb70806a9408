"""Threads in the LangGraph Platform's shapes (RUN-5). Unknown keys are tolerated, for newer clients."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct
from pydantic import BaseModel, Field

from moorage_api.schemas.ids import NewThreadId
from moorage_api.schemas.selection import Selectable

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
    thread_id: Selectable[Annotated[str, Meta(examples=["3f1c8d0e-thread"])]] = UNSET
    created_at: Selectable[datetime] = UNSET
    updated_at: Selectable[datetime] = UNSET
    metadata: Selectable[Mapping[str, Any]] = UNSET
    status: Selectable[ThreadStatus] = UNSET
    values: Selectable[Any] = UNSET
    interrupts: Selectable[Mapping[str, Any]] = UNSET


class Checkpoint(Struct, kw_only=True):
    thread_id: str
    checkpoint_ns: str = ""
    checkpoint_id: str | None = None
    checkpoint_map: Mapping[str, Any] | None = None


class ThreadState(Struct, kw_only=True):
    values: Selectable[Any] = UNSET
    next: Selectable[Sequence[str]] = UNSET
    checkpoint: Selectable[Checkpoint] = UNSET
    metadata: Selectable[Mapping[str, Any]] = UNSET
    created_at: Selectable[datetime | None] = UNSET
    parent_checkpoint: Selectable[Checkpoint | None] = UNSET
    tasks: Selectable[Sequence[Mapping[str, Any]]] = UNSET
    interrupts: Selectable[Sequence[Any]] = UNSET


class StateUpdated(Struct):
    checkpoint: Checkpoint
