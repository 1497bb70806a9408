"""The assistant ``direct``: runs tool calls that a message states, without any model (RUN-6)."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from moorage.contract import RunContext
from moorage_drivers.assistants.graph import Graph, GraphAssistant, GraphContext, native_tools
from moorage_drivers.assistants.task_tools import task_tools
from moorage_drivers.assistants.tool_errors import explain_for

FORM = (
    "I run tool calls that you state as JSON, in order, and answer with their results. Send a message whose "
    'content is of the form {"tool_calls": [{"name": "<tool>", "args": {}}]}.'
)
ACKNOWLEDGED = "Noted: the task notification above has been received."
MAX_CALLS = 100


class DirectAssistant(GraphAssistant):
    """One tool call a step, each through LangGraph's tool node, so that they happen in order."""

    def build(self, run: RunContext | None, saver: BaseCheckpointSaver[str]) -> Graph:
        tools = [*native_tools(run), *(task_tools(self._context) if run is not None else ())]
        graph = StateGraph(MessagesState, context_schema=GraphContext)
        graph.add_node("direct", _direct_step(sorted(tool.name for tool in tools)))
        graph.add_node("tools", ToolNode(tools, handle_tool_errors=explain_for(run)))
        graph.add_edge(START, "direct")
        graph.add_conditional_edges("direct", _next, ["tools", END])
        graph.add_edge("tools", "direct")
        return graph.compile(checkpointer=saver, name="direct")

    def config(self, run: RunContext) -> RunnableConfig:
        # Every stated call takes two steps, and the number of calls is bounded by itself.
        config = super().config(run)
        config["recursion_limit"] = max(run.recursion_limit, 2 * MAX_CALLS + 2)
        return config


def _direct_step(names: Sequence[str]) -> Any:
    async def direct(state: MessagesState, runtime: Runtime[GraphContext]) -> dict[str, Any]:
        if runtime.context.get("internal"):
            return {"messages": [AIMessage(ACKNOWLEDGED)]}
        request, since = _request(state["messages"])
        calls = parse_calls(request)
        if isinstance(calls, str):
            known = ", ".join(names) or "none"
            return {"messages": [AIMessage(f"{calls}\n\n{FORM}\n\nTools: {known}.")]}
        results = [message for message in since if isinstance(message, ToolMessage)]
        if len(results) < len(calls):
            call = {**calls[len(results)], "id": f"call_{uuid.uuid4().hex}", "type": "tool_call"}
            return {"messages": [AIMessage("", tool_calls=[call])]}
        return {"messages": [AIMessage(_answer(results))]}

    return direct


def _next(state: MessagesState) -> str:
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


def _request(messages: Sequence[AnyMessage]) -> tuple[str, Sequence[AnyMessage]]:
    """The text of the latest user message, and what came after it."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if isinstance(message, HumanMessage):
            return str(message.text), messages[position + 1 :]
    return "", ()


def parse_calls(text: str) -> list[dict[str, Any]] | str:
    """The stated calls, or why the text states none."""
    try:
        stated = json.loads(text)
    except (ValueError, RecursionError):
        return "The message is no JSON."
    calls = stated.get("tool_calls") if isinstance(stated, Mapping) else None
    if not isinstance(calls, list) or not calls:
        return 'The message has no list "tool_calls".'
    if len(calls) > MAX_CALLS:
        return f"The message states {len(calls)} calls; {MAX_CALLS} are allowed."
    found = []
    for number, call in enumerate(calls, 1):
        name = call.get("name") if isinstance(call, Mapping) else None
        args = call.get("args", {}) if isinstance(call, Mapping) else None
        if not isinstance(name, str) or not name or not isinstance(args, dict):
            return f'Call {number} needs a "name", and "args" that are an object.'
        found.append({"name": name, "args": args})
    return found


def _answer(results: Sequence[ToolMessage]) -> str:
    shown = [{"name": r.name, "status": r.status, "content": r.content} for r in results]
    return json.dumps({"results": shown}, ensure_ascii=False)
