"""Assistants in the LangGraph Platform's shapes (RUN-5, RUN-6)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct
from pydantic import BaseModel, Field


class AssistantSearch(BaseModel):
    metadata: dict[str, Any] | None = None
    graph_id: str | None = None
    name: str | None = None
    limit: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=1_000_000_000)


class AssistantCount(BaseModel):
    metadata: dict[str, Any] | None = None
    graph_id: str | None = None
    name: str | None = None


class Assistant(Struct, kw_only=True):
    assistant_id: Annotated[str, Meta(examples=["direct"])]
    graph_id: str
    name: str
    description: str
    config: Mapping[str, Any] = {}
    context: Mapping[str, Any] = {}
    metadata: Mapping[str, Any] = {}
    created_at: datetime
    updated_at: datetime
    version: int = 1
