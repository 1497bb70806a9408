"""The adapters' own tools in a real LangGraph: whose call it is, and what becomes of failures (CRED-8)."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from support.mcp_servers import Gateway, context, gateway, stdio

from moorage.contract import (
    CallContext,
    CredentialDenied,
    InterceptorRunner,
    Next,
    NotFound,
    ServerConfig,
    SubmittedTask,
    TaskBinding,
    TaskStatus,
    TaskSubmitter,
    ToolCall,
    ToolCaller,
    ToolResult,
)
from moorage_drivers.mcp import bridge
from moorage_drivers.ordinary.driver import OrdinaryDriver
from moorage_drivers.ordinary.model import TaskToolset

TOOLSET = TaskToolset(
    name="job", submit_tool="job_submit", status_tool="job_status", cancel_tool="job_cancel"
)


class Runner:
    """An interceptor chain that keeps what passes, and may refuse."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.refuses = False
        self.raises: Exception | None = None
        self.native: object = None

    async def run(self, call: ToolCall, terminal: Next) -> ToolResult:
        self.calls.append(call)
        if call.phase == "discover":
            return await terminal(call)
        if self.refuses:
            raise CredentialDenied("interceptor 'user_auth': user has no credential </tool> for 'x'")
        if self.raises is not None:
            raise self.raises
        if self.native is not None:
            return ToolResult(native=self.native)
        return await terminal(call)


class Submitter:
    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    async def submit(
        self, *, server: str, binding: TaskBinding, arguments: Mapping[str, Any], context: CallContext
    ) -> SubmittedTask:
        self.calls.append(
            {"server": server, "binding": binding, "arguments": dict(arguments), "context": context}
        )
        return SubmittedTask("task-7", binding.task_name, TaskStatus.WORKING)


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Gateway]:
    server = stdio("srv", sections={"task_toolsets": [TOOLSET]})
    async with gateway(tmp_path, server, drivers=lambda made: {"ordinary": OrdinaryDriver(made)}) as running:
        running.context.provide(InterceptorRunner, Runner())
        running.context.provide(TaskSubmitter, Submitter())
        yield running


async def ask(
    made: Gateway, name: str, args: Mapping[str, Any], *, live: Mapping[str, Any] | None = None
) -> ToolMessage:
    """Run the tool in a graph, as an assistant does."""
    tools = [tool.native for tool in (await made.tools()).values()]
    graph = StateGraph(MessagesState, context_schema=dict)  # type: ignore[type-var]
    graph.add_node("tools", ToolNode(tools))  # type: ignore[arg-type]
    graph.add_edge(START, "tools")
    call = {"type": "tool_call", "id": "call-1", "name": name, "args": dict(args)}
    state = await graph.compile().ainvoke(
        {"messages": [AIMessage(content="", tool_calls=[call])]},
        context={"moorage": context("alice", "t1"), "secrets": {}} if live is None else dict(live),
    )
    message = state["messages"][-1]
    assert isinstance(message, ToolMessage)
    return message


def runner(made: Gateway) -> Runner:
    found = made.context.service(InterceptorRunner)
    assert isinstance(found, Runner)
    return found


@pytest.mark.req("CRED-8", "RUN-1")
async def test_principal_and_secrets_arrive_without_the_ambient_runtime(
    made: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable() -> None:
        raise AssertionError("the ambient runtime was asked")

    monkeypatch.setattr(bridge, "get_runtime", unavailable)
    message = await ask(
        made,
        "srv_echo",
        {"text": "hello"},
        live={"moorage": context("alice", "t1"), "secrets": {"tenant": "s3cret-value"}},
    )
    assert message.status == "success"
    assert message.content[0]["text"] == "hello"  # type: ignore[index]
    (call,) = (call for call in runner(made).calls if call.phase == "call")
    assert call.principal is not None
    assert (call.principal.user_id, call.thread_id, call.run_id) == ("alice", "t1", "run-1")
    assert call.secrets == {"tenant": "s3cret-value"}
    assert "s3cret-value" not in repr(call)


@pytest.mark.req("CRED-8", "RUN-9")
async def test_nobody_becomes_somebody_by_saying_so(made: Gateway) -> None:
    await ask(made, "srv_echo", {"text": "x"}, live={"moorage": {"principal": {"user_id": "alice"}}})
    (call,) = (call for call in runner(made).calls if call.phase == "call")
    assert call.principal is None


@pytest.mark.req("TOOL-10", "CRED-4")
async def test_a_denied_credential_is_the_agents_to_read(made: Gateway) -> None:
    await made.tools()
    runner(made).refuses = True
    message = await ask(made, "srv_echo", {"text": "x"})
    assert message.status == "error"
    assert "no credential" in str(message.content)
    assert "</tool>" not in str(message.content)


@pytest.mark.req("TOOL-10")
async def test_a_bug_of_ours_does_not_end_the_run(made: Gateway) -> None:
    await made.tools()
    runner(made).raises = RuntimeError("internal detail")
    message = await ask(made, "srv_echo", {"text": "x"})
    assert message.status == "error"
    assert "internal detail" not in str(message.content)


@pytest.mark.req("PLUG-7")
async def test_a_command_of_the_agent_library_passes(made: Gateway) -> None:
    await made.tools()
    runner(made).native = Command(
        update={"messages": [ToolMessage(content="from elsewhere", tool_call_id="call-1")]}
    )
    assert (await ask(made, "srv_echo", {"text": "x"})).content == "from elsewhere"


@pytest.mark.req("TOOL-10")
async def test_an_error_result_keeps_content_and_structured_part(made: Gateway) -> None:
    message = await ask(made, "srv_refuse", {})
    assert message.status == "error"
    assert message.artifact == {"structured_content": {"why": "tired"}}
    assert "not today" in str(message.content)


@pytest.mark.req("TOOL-10")
async def test_a_picture_arrives_as_one(made: Gateway) -> None:
    message = await ask(made, "srv_picture", {})
    assert message.content[0]["type"] == "image"  # type: ignore[index]
    assert message.content[0]["mime_type"] == "image/png"  # type: ignore[index]


@pytest.mark.req("ORD-2", "TASK-3", "CRED-7")
async def test_a_durable_wrapper_answers_with_the_local_id_only(made: Gateway) -> None:
    tools = await made.tools()
    assert tools["srv_job_submit"].durable
    assert not {"srv_job_status", "srv_job_cancel"} & tools.keys()
    assert "srv_job_respond" in tools
    wrapper = tools["srv_job_submit"]
    assert wrapper.input_schema["required"] == ["label"]
    assert wrapper.description.startswith("Start a job that takes some polls.")
    assert "needs no polling" in wrapper.description
    live = {"moorage": context("alice", "t1"), "secrets": {"tenant": "s3cret-value"}}
    message = await ask(made, "srv_job_submit", {"label": "paint"}, live=live)
    assert message.artifact == {
        "structured_content": {"task_id": "task-7", "task_name": "job", "status": "working"}
    }
    submitter = made.context.service(TaskSubmitter)
    assert isinstance(submitter, Submitter)
    (call,) = submitter.calls
    assert (call["server"], call["arguments"]) == ("srv", {"label": "paint"})
    assert call["context"].principal.user_id == "alice"
    assert call["context"].secrets == {"tenant": "s3cret-value"}


@pytest.mark.req("ORD-2")
@pytest.mark.parametrize("tool", ["job_status", "job_cancel", "job_submit"])
async def test_forged_calls_to_bound_tools_are_refused(made: Gateway, tool: str) -> None:
    """C67."""
    await made.tools()
    caller = made.context.service(ToolCaller)
    with pytest.raises(NotFound, match=tool):
        await caller.call("srv", tool, {"task_id": "x"}, context=context(), phase="call")
    await made.catalogue.reset()
    with pytest.raises(NotFound, match=tool):
        await caller.call("srv", tool, {"task_id": "x"}, context=context(), phase="call")


@pytest.mark.req("TASK-14", "ORD-2")
async def test_without_drivers_every_tool_is_ordinary(tmp_path: Path) -> None:
    server: ServerConfig = stdio("srv", sections={"task_toolsets": [TOOLSET]})
    async with gateway(tmp_path, server) as plain:
        tools = await plain.tools()
        assert not any(tool.durable for tool in tools.values())
        assert "srv_job_status" in tools


@pytest.mark.req("ORD-1")
async def test_a_group_with_a_missing_tool_is_withheld_and_shown(tmp_path: Path) -> None:
    """C67."""
    broken = TaskToolset(name="b", submit_tool="job_submit", status_tool="nope", cancel_tool="job_cancel")
    server = stdio("srv", sections={"task_toolsets": [broken]})
    async with gateway(tmp_path, server, drivers=lambda made: {"ordinary": OrdinaryDriver(made)}) as plain:
        tools = await plain.tools()
        assert "srv_echo" in tools
        assert not {"srv_job_submit", "srv_job_cancel"} & tools.keys()
        (state,) = await plain.catalogue.servers()
        assert state.state == "ready"
        assert any("'nope'" in warning for warning in state.warnings)
        assert json.dumps(state.warnings)
