"""LangGraph's stream as assistant events, in all of the Platform's modes (RUN-5)."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
from langchain_core.runnables import RunnableConfig

from moorage.contract import AssistantEvent, RunContext
from moorage_drivers.assistants.encoding import to_json

if TYPE_CHECKING:
    from moorage_drivers.assistants.graph import Graph


async def events_of(
    graph: "Graph", run: RunContext, fed: Any, *, config: RunnableConfig, context: Mapping[str, Any]
) -> AsyncIterator[AssistantEvent]:
    """Run the graph once."""
    modes = _graph_modes(run)
    options: dict[str, Any] = {
        "context": context,
        "interrupt_before": run.interrupt_before or None,
        "interrupt_after": run.interrupt_after or None,
    }
    whole = _Whole()
    if "events" in run.stream_modes:
        stream = graph.astream_events(fed, config, version="v2", stream_mode=modes, subgraphs=True, **options)
        async with aclosing(stream) as raw:  # type: ignore[type-var]
            async for one in raw:
                chunk = _own_chunk(one)
                if chunk is None:
                    yield AssistantEvent("events", _redacted(_event(one), run.redact))
                    continue
                namespace, mode, data = chunk
                if not namespace or run.stream_subgraphs:
                    for event in _events(namespace, mode, data, run, whole):
                        yield event
        return
    chunks = graph.astream(fed, config, stream_mode=modes, subgraphs=True, **options)
    async with aclosing(chunks) as parts:  # type: ignore[type-var]
        async for namespace, mode, data in parts:
            if namespace and not run.stream_subgraphs:
                continue
            for event in _events(namespace, mode, data, run, whole):
                yield event


def _graph_modes(run: RunContext) -> list[Any]:
    named = {"messages" if mode == "messages-tuple" else mode for mode in run.stream_modes}
    return sorted((named - {"events"}) | {"values", "updates"})


def _events(
    namespace: tuple[str, ...], mode: str, data: Any, run: RunContext, whole: "_Whole"
) -> list[AssistantEvent]:
    if mode != "messages":
        shown = to_json(data)
        if mode in ("debug", "tasks"):
            shown = _redacted(shown, run.redact)
        return [AssistantEvent(mode, shown, namespace)]  # type: ignore[arg-type]
    message, metadata = data
    found: list[AssistantEvent] = []
    if "messages-tuple" in run.stream_modes:
        pair = [to_json(message), to_json(metadata)]
        found.append(AssistantEvent("messages-tuple", pair, namespace))
    if "messages" in run.stream_modes:
        found.extend(whole.add(message, metadata, namespace))
    return found


class _Whole:
    """Puts the pieces of messages together: mode ``messages`` shows each message as far as it has come."""

    def __init__(self) -> None:
        self._messages: dict[str, BaseMessage] = {}

    def add(
        self, message: BaseMessage, metadata: Mapping[str, Any], namespace: tuple[str, ...]
    ) -> list[AssistantEvent]:
        key = message.id or ""
        known = self._messages.get(key)
        found = []
        if known is None:
            shown = {key: {"metadata": to_json(metadata)}}
            found.append(AssistantEvent("messages", shown, namespace, "metadata"))
        if isinstance(known, BaseMessageChunk) and isinstance(message, BaseMessageChunk):
            self._messages[key] = known + message
        else:
            self._messages[key] = message
        now = self._messages[key]
        partial = isinstance(now, BaseMessageChunk)
        data = [to_json(message_chunk_to_message(now) if isinstance(now, BaseMessageChunk) else now)]
        found.append(AssistantEvent("messages", data, namespace, "partial" if partial else "complete"))
        return found


def _redacted(shown: Any, redact: Callable[[str], str]) -> Any:
    """These modes show errors as they were raised, which may quote the run's secrets."""
    if isinstance(shown, str):
        return redact(shown)
    if isinstance(shown, dict):
        return {key: _redacted(item, redact) for key, item in shown.items()}
    return [_redacted(item, redact) for item in shown] if isinstance(shown, list) else shown


def _event(raw: Mapping[str, Any]) -> Any:
    """One of LangChain's events. Its data may hold a tool's runtime, and with it the run's secrets."""
    shown = dict(raw)
    shown["data"] = {key: _without_runtime(item) for key, item in raw.get("data", {}).items()}
    return to_json(shown)


def _without_runtime(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _without_runtime(item) for key, item in value.items() if key not in ("runtime", "context")
        }
    return value


def _own_chunk(raw: Mapping[str, Any]) -> tuple[tuple[str, ...], str, Any] | None:
    """The graph's own stream travels within LangChain's events, as chunks of the root."""
    if raw.get("event") != "on_chain_stream" or raw.get("parent_ids"):
        return None
    chunk = raw["data"].get("chunk")
    if not isinstance(chunk, tuple) or len(chunk) not in (2, 3):
        return None
    return (chunk[0] if len(chunk) == 3 else ()), chunk[-2], chunk[-1]
