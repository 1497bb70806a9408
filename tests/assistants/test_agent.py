"""The default agent on a scripted model: tools, tasks, notifications, and runs that were cut short."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.prebuilt import ToolRuntime
from support.chat_models import ScriptedModel, call
from support.fake_driver import asking, completed, working
from support.graph_tools import gateway_tool
from support.rig import Replica
from support.runs import ALICE, FixedTools, request, until

from moorage.clock import SystemClock
from moorage.contract import (
    AttentionKind,
    ConfigError,
    GatewayContext,
    RunStatus,
    TaskBinding,
    TaskRecord,
    TaskStatus,
    TaskSubmitter,
)
from moorage.settings import AssistantSettings, TaskSettings
from moorage_drivers.assistants.agent import AgentAssistant
from moorage_drivers.assistants.plugin import moorage_assistants
from moorage_drivers.thread_sink.sink import ThreadSink

SECRET = "s3cr3t-canary-value"


def says(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def answer(service: Any, thread: str = "t1", **body: Any) -> list[dict[str, Any]]:
    run = await service.create(request(thread, assistant_id="agent", **body))
    result = await service.join(ALICE, thread, run.run_id)
    assert result.run.status is RunStatus.SUCCESS, result.run.error
    messages: list[dict[str, Any]] = list(result.values["messages"])
    return messages


@asynccontextmanager
async def task_runtime(rig: Any) -> AsyncIterator[Replica[SystemClock]]:
    """A real task runtime on the rig's store, whose sink is the real thread sink."""
    sink: Any = ThreadSink(rig.context)
    settings = TaskSettings(poll_interval_seconds=0.05)
    replica = Replica(rig.store.tasks, SystemClock(), sink=sink, settings=settings)
    rig.context.provide(TaskSubmitter, replica.service)
    loops = [asyncio.create_task(replica.scheduler.run()), asyncio.create_task(replica.notifier.run())]
    try:
        yield replica
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await replica.service.aclose()


def submit_tool(context: GatewayContext, **fields: Any) -> Any:
    """What the catalogue makes of a submit tool: a wrapper that answers with the local id."""

    async def start_report(runtime: ToolRuntime[Any, Any]) -> str:
        """Starts a report in the background."""
        submitted = await context.service(TaskSubmitter).submit(
            server="files",
            binding=TaskBinding(driver="fake", task_name="report"),
            arguments={},
            context=runtime.context["moorage"],
        )
        return f"started {submitted.task_id}"

    return gateway_tool(start_report, durable=True, **fields)


@pytest.mark.req("RUN-6", "NOTE-2", "NOTE-6", "TASK-3")
async def test_submit_notification_and_answer_in_one_thread(rig: Any) -> None:
    model = ScriptedModel(script=[call("start_report"), "It is under way.", "The report is done: 3 files."])
    agent = AgentAssistant(rig.context, lambda: model)
    service = await rig.service(FixedTools([submit_tool(rig.context)]), {"agent": agent})
    await service.threads.create(ALICE, thread_id="t1")
    async with task_runtime(rig) as replica:
        go = asyncio.Event()

        async def finish(_: object) -> Any:
            return completed({"files": 3}) if go.is_set() else working()

        replica.driver.on_poll["*"] = [finish]
        first = await answer(service, input=says("report, please"))
        assert first[-1]["content"] == "It is under way."
        [task] = (await replica.service.list(ALICE, _filter())).items
        assert f"started {task.task_id}" in str(first)
        go.set()

        async def delivered() -> bool:
            record = await replica.task(task.task_id)
            return record.notification_status == "delivered"

        await until(delivered)
    messages = (await service.threads.state(ALICE, "t1")).values["messages"]
    assert [m["type"] for m in messages] == ["human", "ai", "tool", "ai", "human", "ai"]
    assert messages[-2]["additional_kwargs"]["moorage_internal"] is True
    assert "3" in messages[-2]["content"]
    assert messages[-1]["content"] == "The report is done: 3 files."
    assert len(await service.list(ALICE, "t1")) == 2
    assert {"start_report", "list_tasks", "cancel_task", "respond_to_task"} == set(model.tools[0])


def _filter() -> Any:
    from moorage.contract import TaskFilter

    return TaskFilter()


@pytest.mark.req("TASK-20", "TASK-17")
async def test_an_agent_lists_and_cancels_its_threads_tasks(rig: Any) -> None:
    model = ScriptedModel()
    agent = AgentAssistant(rig.context, lambda: model)
    service = await rig.service(FixedTools([submit_tool(rig.context)]), {"agent": agent})
    for thread in ("t1", "t2"):
        await service.threads.create(ALICE, thread_id=thread)
    async with task_runtime(rig) as replica:
        model.script[:] = [call("start_report"), "ok"]
        await answer(service, "t2", input=says("elsewhere"))
        model.script[:] = [call("start_report", 1), call("start_report", 2), call("list_tasks", 3), "ok"]
        listed = await answer(service, input=says("two"))
        text = next(m["content"] for m in listed if m["type"] == "tool" and m["name"] == "list_tasks")
        mine = [t for t in (await replica.service.list(ALICE, _filter())).items if t.thread_id == "t1"]
        assert all(task.task_id in text for task in mine)
        assert text.count("\n- ") == 2
        model.script[:] = [call("cancel_task", 4, task="report"), "which one?"]
        ambiguous = await answer(service, input=says("cancel the report"))
        assert all(task.task_id in str(ambiguous[-2]["content"]) for task in mine)
        model.script[:] = [call("cancel_task", 5, task=mine[0].task_id), "done"]
        await answer(service, input=says("the first"))

        async def ended() -> bool:
            return (await replica.task(mine[0].task_id)).status is TaskStatus.CANCELLED

        await until(ended)
        assert (await replica.task(mine[1].task_id)).status is not TaskStatus.CANCELLED


@pytest.mark.req("TASK-16")
async def test_an_agent_answers_a_task_that_requires_input(rig: Any) -> None:
    model = ScriptedModel(script=[call("start_report"), "ok"])
    agent = AgentAssistant(rig.context, lambda: model)
    service = await rig.service(FixedTools([submit_tool(rig.context)]), {"agent": agent})
    await service.threads.create(ALICE, thread_id="t1")
    async with task_runtime(rig) as replica:
        replica.driver.on_poll["*"] = [asking({"question": "which folder?"})]
        await answer(service, input=says("go"))
        [task] = (await replica.service.list(ALICE, _filter())).items
        await replica.until(task.task_id, _told)
        model.script[:] = [call("respond_to_task", 2, task_id=task.task_id, response="/srv"), "sent"]
        messages = await answer(service, input=says("/srv"))
    # The fake driver takes no answers: the agent is told so, and the run goes on.
    assert "not answered" in messages[-2]["content"]
    assert messages[-1]["content"] == "sent"


def _told(task: TaskRecord) -> bool:
    return task.event_kind is AttentionKind.INPUT_REQUIRED and task.notification_status == "delivered"


@pytest.mark.req("TASK-14", "TASK-15")
async def test_without_a_task_runtime_there_is_no_task_tool(rig: Any) -> None:
    model = ScriptedModel()

    async def plain() -> str:
        """Plain."""
        return "ok"

    service = await rig.service(
        FixedTools([gateway_tool(plain)]), {"agent": AgentAssistant(rig.context, lambda: model)}
    )
    await service.threads.create(ALICE, thread_id="t1")
    await answer(service, input=says("hi"))
    assert model.tools == [["plain"]]


@pytest.mark.req("TOOL-10", "CRED-9")
async def test_a_failing_tool_or_a_made_up_one_never_ends_the_run(rig: Any) -> None:
    async def broken() -> str:
        """Fails."""
        raise RuntimeError("out of order")

    model = ScriptedModel(script=[call("broken", 1), call("imagined", 2), "sorry"])
    agent = AgentAssistant(rig.context, lambda: model)
    service = await rig.service(FixedTools([gateway_tool(broken)]), {"agent": agent})
    await service.threads.create(ALICE, thread_id="t1")
    messages = await answer(service, input=says("try"))
    failures = [m for m in messages if m["type"] == "tool"]
    assert [m["status"] for m in failures] == ["error", "error"]
    assert "out of order" in failures[0]["content"]
    assert messages[-1]["content"] == "sorry"


@pytest.mark.req("RUN-1", "RUN-5")
async def test_a_call_that_was_cut_short_does_not_poison_the_thread(rig: Any) -> None:
    async def hang() -> str:
        """Hangs."""
        await asyncio.Event().wait()
        return ""

    def picky(messages: list[BaseMessage]) -> AIMessage:
        """Models refuse a conversation in which a tool call has no answer."""
        calls = [c["id"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
        answered = [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]
        assert calls == answered
        return AIMessage("fine again")

    model = ScriptedModel(script=[call("hang"), picky])
    agent = AgentAssistant(rig.context, lambda: model)
    service = await rig.service(FixedTools([gateway_tool(hang)]), {"agent": agent})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request(assistant_id="agent", input=says("hang")))
    async for item in service.stream(ALICE, "t1", run.run_id):
        if item.event == "updates":
            break
    await service.cancel(ALICE, "t1", run.run_id, wait=True)
    messages = await answer(service, input=says("are you there?"))
    assert messages[-1]["content"] == "fine again"


@pytest.mark.req("CRED-9", "RUN-1")
async def test_a_model_that_fails_ends_its_run_with_a_clean_error(rig: Any) -> None:
    model = ScriptedModel(script=[RuntimeError(f"401 for key {SECRET}")])
    service = await rig.service(assistants={"agent": AgentAssistant(rig.context, lambda: model)})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(
        request(
            assistant_id="agent",
            input=says("hi"),
            context={"secrets": {"k": SECRET}},
            stream_mode=["debug", "tasks", "events", "updates"],
        )
    )
    items = [item async for item in service.stream(ALICE, "t1", run.run_id)]
    result = await service.join(ALICE, "t1", run.run_id)
    assert result.run.status is RunStatus.ERROR
    assert result.run.error == "RuntimeError: 401 for key ***"
    state = await service.threads.state(ALICE, "t1")
    assert "401 for key ***" in str(state.tasks[0]["error"])
    assert "401 for key ***" in rig.dump()
    assert SECRET not in rig.dump() + str(items) + str(state)
    assert SECRET not in str(model.shown)


@pytest.mark.req("ROUTE-3")
async def test_routing_hints_are_in_the_prompt(rig: Any) -> None:
    async def pay() -> str:
        """Pays."""
        return "ok"

    hint = {"moorage_routing": {"mode": "prefer", "priority": 5, "keywords": ["invoices"]}}
    model = ScriptedModel()
    agent = AgentAssistant(rig.context, lambda: model)
    service = await rig.service(FixedTools([gateway_tool(pay, metadata=hint)]), {"agent": agent})
    await service.threads.create(ALICE, thread_id="t1")
    await answer(service, input=says("hi"))
    assert "- pay: invoices" in str(model.shown[0][0].content)


@pytest.mark.req("RUN-10")
async def test_the_recursion_limit_ends_a_loop_as_an_error(rig: Any) -> None:
    async def again() -> str:
        """Again."""
        return "again"

    model = ScriptedModel(script=[call("again", number) for number in range(50)])
    agent = AgentAssistant(rig.context, lambda: model)
    service = await rig.service(FixedTools([gateway_tool(again)]), {"agent": agent})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request(assistant_id="agent", input=says("x"), config={"recursion_limit": 5}))
    result = await service.join(ALICE, "t1", run.run_id)
    assert result.run.status is RunStatus.ERROR
    assert "GraphRecursionError" in (result.run.error or "")


@pytest.mark.req("RUN-6")
def test_without_a_model_the_agent_says_what_to_set(rig_context: GatewayContext) -> None:
    agent = next(spec for spec in moorage_assistants() if spec.name == "agent")
    assert agent.available is not None
    assert "assistants.model" in (agent.available(rig_context) or "")
    with pytest.raises(ConfigError, match="no model"):
        AgentAssistant(rig_context)._model()


@pytest.mark.req("RUN-6")
def test_with_a_model_the_agent_is_available(rig_context: GatewayContext) -> None:
    from dataclasses import replace

    context = replace(rig_context, settings={"assistants": AssistantSettings(model="openai:gpt-x")})
    agent = next(spec for spec in moorage_assistants() if spec.name == "agent")
    assert agent.available is not None
    assert agent.available(context) is None


@pytest.mark.req("RUN-5")
async def test_tokens_arrive_as_messages(rig: Any) -> None:
    model = ScriptedModel(script=["Hello there"])
    service = await rig.service(assistants={"agent": AgentAssistant(rig.context, lambda: model)})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(
        request(assistant_id="agent", input=says("hi"), stream_mode=["messages", "messages-tuple"])
    )
    items = [item async for item in service.stream(ALICE, "t1", run.run_id)]
    pieces = [item.data for item in items if item.event == "messages"]
    assert "".join(message["content"] for message, _ in pieces if message["type"].startswith("AI")) or pieces
    whole = [item for item in items if item.event in ("messages/partial", "messages/complete")]
    assert whole[-1].data[0]["content"] == "Hello there"
    assert any(item.event == "messages/metadata" for item in items)


async def test_interrupts_of_tools_pause_a_run_and_a_command_resumes_it(rig: Any) -> None:
    from langgraph.types import interrupt

    async def approve() -> str:
        """Asks a human."""
        return f"human said {interrupt({'question': 'sure?'})}"

    model = ScriptedModel(script=[call("approve"), "done"])
    agent = AgentAssistant(rig.context, lambda: model)
    service = await rig.service(FixedTools([gateway_tool(approve)]), {"agent": agent})
    await service.threads.create(ALICE, thread_id="t1")
    await answer(service, input=says("go"))
    state = await service.threads.state(ALICE, "t1")
    assert state.next == ("tools",)
    assert state.interrupts[0]["value"] == {"question": "sure?"}
    messages = await answer(service, command={"resume": "yes"})
    assert messages[-2]["content"] == "human said yes"
    assert messages[-1]["content"] == "done"
