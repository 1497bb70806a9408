"""LangChain tools whose calls go through our sessions (TOOL-1, CRED-8, ORD-2)."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from langchain_mcp_adapters.interceptors import MCPToolCallRequest
from langchain_mcp_adapters.sessions import Connection as AdapterConnection
from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime
from mcp.types import Tool

from moorage.contract import (
    CallContext,
    GatewayContext,
    MoorageError,
    TaskBinding,
    TaskSubmitter,
    ToolResult,
)
from moorage_drivers.mcp.caller import McpToolCaller, OnBehalf
from moorage_drivers.mcp.listing import RawTool
from moorage_drivers.mcp.naming import argument_aliases
from moorage_drivers.mcp.results import OutputSchema, artifact_of, blocks_of, message_of
from moorage_drivers.mcp.sessions import Sessions
from moorage_drivers.mcp.text import neutral

logger = logging.getLogger(__name__)

DURABLE_SENTENCE = (
    "This starts durable background work and answers at once with a local task id: it needs no polling,"
    " the thread is told when the work has ended."
)
# The adapters want to know where a tool comes from; our interceptor answers before they would connect.
_NOWHERE: AdapterConnection = {"transport": "stdio", "command": "", "args": []}

Answer = Callable[[OnBehalf, Mapping[str, Any]], Awaitable[ToolResult]]


def behalf_of(runtime: object) -> OnBehalf:
    """For whom a tool is called, from LangGraph's runtime context (CRED-8).

    ``runtime`` is what LangGraph injected; the ambient runtime is the fall-back. The context is a mapping
    with the gateway's `CallContext` under ``moorage`` and the run's live secrets under ``secrets``.
    """
    context = getattr(runtime, "context", None)
    if context is None:
        try:
            context = getattr(get_runtime(), "context", None)
        except (RuntimeError, LookupError):
            return OnBehalf()
    if not isinstance(context, Mapping):
        return OnBehalf()
    secrets = context.get("secrets")
    live = secrets if isinstance(secrets, Mapping) else {}
    call = context.get("moorage")
    if not isinstance(call, CallContext):
        return OnBehalf(secrets=live)
    return OnBehalf.of(replace(call, secrets=live) if live else call)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a tool looks to an agent, and how its arguments are called on the server."""

    name: str
    description: str
    schema: Mapping[str, Any]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def raw_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {self.aliases.get(name, name): value for name, value in arguments.items()}


def shape_of(name: str, tool: RawTool, *, durable: bool) -> _Shape:
    """The visible side of a tool; arguments that injection would swallow are renamed."""
    properties: Mapping[str, Any] = tool.input_schema["properties"]
    aliases = argument_aliases(properties)
    schema = dict(tool.input_schema)
    if aliases:
        back = {raw: alias for alias, raw in aliases.items()}
        schema["properties"] = {back.get(key, key): value for key, value in properties.items()}
        required = schema.get("required")
        if isinstance(required, list):
            schema["required"] = [back.get(key, key) for key in required]
    description = tool.description or tool.title or ""
    if durable:
        description = f"{description}\n\n{DURABLE_SENTENCE}".strip()
    return _Shape(name, description, schema, aliases)


def ordinary_tool(
    caller: McpToolCaller,
    sessions: Sessions,
    server: str,
    shape: _Shape,
    tool: RawTool,
    title: Mapping[str, Any],
) -> BaseTool:
    """Calls the raw tool through interceptors and pooled sessions."""
    schema = OutputSchema(tool.output_schema)

    async def answer(behalf: OnBehalf, arguments: Mapping[str, Any]) -> ToolResult:
        result = await caller.invoke(server, tool.name, arguments, behalf=behalf, phase="call")
        if result.native is None and (complaint := schema.complaint(result)) is not None:
            said = {"type": "text", "text": f"Error: {complaint}."}
            return replace(result, content=(said, *result.content), is_error=True)
        return result

    return _tool(sessions, server, shape, answer, title)


def durable_tool(
    gateway: GatewayContext,
    sessions: Sessions,
    server: str,
    shape: _Shape,
    binding: TaskBinding,
    title: Mapping[str, Any],
) -> BaseTool:
    """Submits a durable task; an agent gets to know its local id, name and status (ORD-2)."""

    async def answer(behalf: OnBehalf, arguments: Mapping[str, Any]) -> ToolResult:
        if behalf.context is None:
            return failure("A durable task can only be started within a run of the gateway.")
        if not gateway.has(TaskSubmitter):
            return failure("Durable tasks are off in this gateway.")
        submitter: TaskSubmitter = gateway.service(TaskSubmitter)
        task = await submitter.submit(
            server=server, binding=binding, arguments=arguments, context=behalf.context
        )
        facts = {"task_id": task.task_id, "task_name": task.task_name, "status": task.status.value}
        text = f"Started task {task.task_id} ({neutral(task.task_name, 255)}), status {task.status.value}."
        return ToolResult(content=({"type": "text", "text": text},), structured=facts)

    return _tool(sessions, server, shape, answer, title)


def failure(text: str) -> ToolResult:
    """An error of ours, as a result."""
    return ToolResult(content=({"type": "text", "text": f"Error: {text}"},), is_error=True)


def _tool(
    sessions: Sessions, server: str, shape: _Shape, answer: Answer, title: Mapping[str, Any]
) -> BaseTool:
    async def bridge(request: MCPToolCallRequest, handler: object) -> Any:
        behalf = behalf_of(request.runtime)
        arguments = shape.raw_arguments(request.args)
        result = await sessions.at_home(lambda: _answered(answer, behalf, arguments, shape.name))
        if result.native is not None:
            return result.native
        call_id = getattr(request.runtime, "tool_call_id", None)
        return message_of(
            blocks_of(result), artifact_of(result), call_id=call_id, name=shape.name, error=result.is_error
        )

    tool = convert_mcp_tool_to_langchain_tool(
        None,
        Tool(name=shape.name, description=shape.description, inputSchema=dict(shape.schema)),
        connection=_NOWHERE,
        tool_interceptors=[bridge],
        server_name=server,
    )
    tool.metadata = dict(title)
    if isinstance(tool, StructuredTool):
        tool.func = _synchronous(tool, sessions)
    return tool


def _synchronous(tool: StructuredTool, sessions: Sessions) -> Callable[..., Any]:
    """The same call for agents that run without an event loop (TOOL-6)."""
    coroutine = tool.coroutine
    assert coroutine is not None

    def call_tool(runtime: Annotated[object | None, InjectedToolArg()] = None, **arguments: Any) -> Any:
        return sessions.from_sync(lambda: coroutine(runtime=runtime, **arguments))

    return call_tool


async def _answered(answer: Answer, behalf: OnBehalf, arguments: Mapping[str, Any], name: str) -> ToolResult:
    """Whatever goes wrong with a call is the agent's to read and never ends the run (TOOL-10)."""
    try:
        return await answer(behalf, arguments)
    except GraphBubbleUp:
        raise
    except (MoorageError, TimeoutError) as error:
        return failure(neutral(str(error), 2_000))
    except Exception as error:
        logger.exception("tool %r failed within the gateway", name)
        return failure(f"the call failed within the gateway ({type(error).__name__}).")
