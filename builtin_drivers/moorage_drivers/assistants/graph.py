"""An assistant that is a LangGraph graph: runs, states and history (RUN-5, RUN-6)."""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypedDict

from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from moorage.contract import (
    AssistantEvent,
    CallContext,
    GatewayContext,
    InvalidUpdate,
    NotFound,
    RunContext,
    ThreadState,
)
from moorage_drivers.assistants.checkpoints import Checkpoints, discreet
from moorage_drivers.assistants.snapshots import check_messages, read_history, read_state, state_of
from moorage_drivers.assistants.streaming import events_of

log = logging.getLogger(__name__)


class GraphContext(TypedDict, total=False):
    """The runtime context of a graph. ``moorage`` and ``secrets`` are the gateway's own word (RUN-9); they
    travel here since whatever is in the config ends up in checkpoints and streams (RUN-1)."""

    moorage: CallContext
    secrets: Mapping[str, Any]
    internal: bool


Graph = CompiledStateGraph[Any, Any, Any, Any]


class GraphAssistant(ABC):
    """The `Assistant` protocol on a graph whose state has ``messages``."""

    def __init__(self, context: GatewayContext) -> None:
        self._context = context

    @abstractmethod
    def build(self, run: RunContext | None, saver: BaseCheckpointSaver[str]) -> Graph:
        """The compiled graph for a run, or (None) one of the same shape for reading and writing states."""

    async def stream(self, run: RunContext, input: Any) -> AsyncIterator[AssistantEvent]:  # noqa: A002
        graph = self.build(run, discreet(self._saver(), run.redact))
        config = self.config(run)
        if run.internal:
            await _drop_earlier(graph, run.thread_id, input)
        check_messages(run.command.get("update") if run.command else input)
        fed = Command(**run.command) if run.command else input
        async for event in events_of(graph, run, fed, config=config, context=_runtime_context(run)):
            yield event

    def config(self, run: RunContext) -> RunnableConfig:
        """The config of one run. Nothing of it is secret: it reaches checkpoints and streams."""
        configurable = {**run.config.get("configurable", {}), "thread_id": run.thread_id}
        if run.checkpoint_id is not None:
            configurable["checkpoint_id"] = run.checkpoint_id
        metadata = {
            **run.config.get("metadata", {}),
            **run.metadata,
            "run_id": run.run_id,
            "assistant_id": run.call.assistant_id,
        }
        config = RunnableConfig(
            configurable=_storable(configurable),
            metadata=_storable(metadata),
            recursion_limit=run.recursion_limit,
            tags=list(run.config.get("tags", ())),
        )
        if "run_name" in run.config:
            config["run_name"] = run.config["run_name"]
        return config

    async def state(self, thread_id: str, *, checkpoint_id: str | None = None) -> ThreadState | None:
        return await read_state(self._graph(), self._saver(), _at(thread_id, checkpoint_id))

    async def history(
        self, thread_id: str, *, limit: int = 10, before: str | None = None
    ) -> AsyncIterator[ThreadState]:
        graph, saver = self._graph(), self._saver()
        start = _at(thread_id, before) if before is not None else None
        async for state in read_history(graph, saver, _at(thread_id), limit=limit, before=start):
            yield state

    async def update_state(
        self, thread_id: str, values: Any, *, as_node: str | None = None, checkpoint_id: str | None = None
    ) -> ThreadState:
        if checkpoint_id is not None and await self.state(thread_id, checkpoint_id=checkpoint_id) is None:
            raise NotFound(f"thread {thread_id!r} has no such checkpoint")
        graph = self._graph()
        try:
            written = await graph.aupdate_state(_at(thread_id, checkpoint_id), values, as_node=as_node)
        except (InvalidUpdateError, ValueError, TypeError, NotImplementedError) as error:
            # LangGraph's own text quotes the values.
            raise InvalidUpdate(
                "the assistant cannot take this update: values must be an object of its state's keys with "
                "well-formed messages, and as_node one of its nodes"
            ) from error
        return state_of(await graph.aget_state(written))

    async def delete_thread(self, thread_id: str) -> None:
        await self._saver().adelete_thread(thread_id)

    def _graph(self) -> Graph:
        return self.build(None, self._saver())

    def _saver(self) -> BaseCheckpointSaver[str]:
        return self._context.service(Checkpoints).saver


def native_tools(run: RunContext | None) -> list[BaseTool]:
    """The run's tools that are LangChain's."""
    if run is None:
        return []
    return [tool.native for tool in run.tools if isinstance(tool.native, BaseTool)]


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _storable(value: Any) -> Any:
    """Both go into checkpoints as JSON columns, and databases refuse NUL and lone surrogates there."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list | tuple) else value


def _runtime_context(run: RunContext) -> dict[str, Any]:
    own: dict[str, Any] = {"moorage": run.call, "secrets": run.call.secrets, "internal": run.internal}
    return {**run.context, **own}


def _at(thread_id: str, checkpoint_id: str | None = None) -> RunnableConfig:
    configurable = {"thread_id": thread_id, "checkpoint_ns": ""}
    if checkpoint_id is not None:
        # A client's word: what no database takes names no checkpoint, instead of failing the query.
        configurable["checkpoint_id"] = _storable(checkpoint_id)
    return RunnableConfig(configurable=configurable)


async def _drop_earlier(graph: Graph, thread_id: str, input: Any) -> None:  # noqa: A002
    """Take out what an earlier attempt at the same notification left, so that its message is shown once
    and as the newest (NOTE-2)."""
    ids = {message.get("id") for message in _messages(input) if isinstance(message, Mapping)} - {None}
    if not ids:
        return
    # Not under the run's own config: LangGraph takes a run whose id is in the latest checkpoint's metadata
    # for a resumption, and drops its input.
    config = _at(thread_id)
    try:
        snapshot = await graph.aget_state(config)
    except Exception as error:  # a checkpoint whose writes do not fit; see `snapshots`
        log.warning("thread %s: the latest state cannot be read (%s)", thread_id, type(error).__name__)
        return
    present: Sequence[BaseMessage] = snapshot.values.get("messages", ())
    old = [RemoveMessage(id=message.id) for message in present if message.id and message.id in ids]
    if old:
        await graph.aupdate_state(config, {"messages": old}, as_node="__start__")


def _messages(input: Any) -> Sequence[Any]:  # noqa: A002
    messages = input.get("messages", ()) if isinstance(input, Mapping) else ()
    return messages if isinstance(messages, list | tuple) else [messages]
