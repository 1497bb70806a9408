"""Reading a graph's states, also those that LangGraph itself cannot put together (RUN-5).

LangGraph stores a run's input before it applies it. Where applying fails (a message to be removed that is not
there, say), the run ends in an error, and every later look at that checkpoint would apply the same writes and
fail again. Such a checkpoint is shown as it is stored, without the writes that do not fit.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from moorage.contract import InvalidUpdate, ThreadState
from moorage_drivers.assistants.encoding import to_json

Graph = CompiledStateGraph[Any, Any, Any, Any]
Saver = BaseCheckpointSaver[str]

log = logging.getLogger(__name__)


def check_messages(fed: Any) -> None:
    """Raises `InvalidUpdate`, which quotes nothing, for messages that are none: before they are stored."""
    messages = fed.get("messages") if isinstance(fed, Mapping) else None
    if messages is None:
        return
    try:
        convert_to_messages(messages if isinstance(messages, list | tuple) else [messages])
    except Exception:
        raise InvalidUpdate("the input's messages are not well-formed") from None


async def read_state(graph: Graph, saver: Saver, config: RunnableConfig) -> ThreadState | None:
    """The state at the config's checkpoint, or the latest; None where there is none."""
    try:
        snapshot = await graph.aget_state(config)
    except Exception as error:
        stored = await saver.aget_tuple(config)
        if stored is None:
            raise
        return _as_stored(stored, error)
    return None if snapshot.created_at is None else state_of(snapshot)


async def read_history(
    graph: Graph, saver: Saver, config: RunnableConfig, *, limit: int, before: RunnableConfig | None
) -> AsyncIterator[ThreadState]:
    """States, newest first, from ``before`` on."""
    while limit > 0:
        try:
            async for snapshot in graph.aget_state_history(config, limit=limit, before=before):
                before, limit = snapshot.config, limit - 1
                yield state_of(snapshot)
            return
        except Exception as error:
            stored = await anext(saver.alist(config, before=before, limit=1), None)
            if stored is None:
                raise
            before, limit = stored.config, limit - 1
            yield _as_stored(stored, error)


def state_of(snapshot: StateSnapshot) -> ThreadState:
    """In the contract's shape."""
    configurable = snapshot.config.get("configurable", {})
    parent = (snapshot.parent_config or {}).get("configurable", {})
    return ThreadState(
        values=to_json(snapshot.values),
        next=tuple(snapshot.next),
        checkpoint_id=configurable.get("checkpoint_id"),
        parent_checkpoint_id=parent.get("checkpoint_id"),
        checkpoint_ns=configurable.get("checkpoint_ns", ""),
        metadata=to_json(snapshot.metadata or {}),
        created_at=datetime.fromisoformat(snapshot.created_at) if snapshot.created_at else None,
        tasks=tuple(_task(task) for task in snapshot.tasks),
        interrupts=tuple(to_json(interrupt) for interrupt in snapshot.interrupts),
    )


def _as_stored(stored: CheckpointTuple, error: Exception) -> ThreadState:
    configurable = stored.config.get("configurable", {})
    parent = (stored.parent_config or {}).get("configurable", {})
    checkpoint_id = configurable.get("checkpoint_id")
    log.info("checkpoint %s is shown as it is stored: %s", checkpoint_id, type(error).__name__)
    channels = stored.checkpoint["channel_values"]
    return ThreadState(
        values=to_json({name: value for name, value in channels.items() if _is_a_value(name)}),
        checkpoint_id=checkpoint_id,
        parent_checkpoint_id=parent.get("checkpoint_id"),
        checkpoint_ns=configurable.get("checkpoint_ns", ""),
        metadata=to_json(stored.metadata or {}),
        created_at=datetime.fromisoformat(stored.checkpoint["ts"]),
    )


def _is_a_value(channel: str) -> bool:
    """LangGraph's own channels are no part of the state's values."""
    return not channel.startswith(("__", "branch:"))


def _task(task: Any) -> Mapping[str, Any]:
    return {
        "id": task.id,
        "name": task.name,
        "path": to_json(task.path),
        "error": str(task.error) if task.error else None,
        "interrupts": to_json(task.interrupts),
        "checkpoint": None,
        "state": None,
        "result": to_json(task.result),
    }
