"""The assistant ``direct`` on real graphs and a real checkpoint database."""

import json
from typing import Any

import pytest
from langgraph.prebuilt import ToolRuntime
from support.graph_tools import gateway_tool
from support.runs import ALICE, FixedTools, request

from moorage.contract import CallContext, RunRequest, RunStatus
from moorage.runs.service import RunService
from moorage_drivers.assistants.direct import ACKNOWLEDGED, MAX_CALLS, parse_calls

SECRET = "s3cr3t-canary-value"


def calls(*stated: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    content = json.dumps({"tool_calls": [{"name": name, "args": args} for name, args in stated]})
    return {"messages": [{"role": "user", "content": content}]}


def text(content: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


async def answer(service: RunService, thread: str = "t1", **body: Any) -> list[dict[str, Any]]:
    """Run once; the messages of the thread afterwards."""
    run = await service.create(request(thread, assistant_id="direct", **body))
    result = await service.join(ALICE, thread, run.run_id)
    assert result.run.status is RunStatus.SUCCESS, result.run.error
    assert result.values is not None
    messages: list[dict[str, Any]] = list(result.values["messages"])
    return messages


seen: list[Any] = []


async def note(value: int) -> str:
    """Remember a value."""
    seen.append(value)
    return f"noted {value}"


async def broken(value: int) -> str:
    """Always fails."""
    raise RuntimeError("out of order")


async def whoami(runtime: ToolRuntime[Any, Any]) -> str:
    """Tell who calls."""
    call: CallContext = runtime.context["moorage"]
    seen.append((call, runtime.context["secrets"]))
    return call.principal.user_id


@pytest.fixture(autouse=True)
def forget() -> None:
    seen.clear()


def source() -> FixedTools:
    return FixedTools([gateway_tool(note), gateway_tool(broken), gateway_tool(whoami)])


@pytest.mark.req("RUN-6")
async def test_stated_calls_run_in_order_and_are_answered_with_their_results(rig: Any) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    messages = await answer(service, input=calls(("note", {"value": 1}), ("note", {"value": 2})))
    assert seen == [1, 2]
    assert [m["type"] for m in messages] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert messages[1]["tool_calls"][0]["name"] == "note"
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]
    results = json.loads(messages[-1]["content"])["results"]
    assert [(r["name"], r["status"], r["content"]) for r in results] == [
        ("note", "success", "noted 1"),
        ("note", "success", "noted 2"),
    ]
    again = await answer(service, input=calls(("note", {"value": 3})))
    assert json.loads(again[-1]["content"])["results"][0]["content"] == "noted 3"


@pytest.mark.req("RUN-6", "TOOL-10")
async def test_errors_of_tools_never_end_the_run(rig: Any) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    stated = calls(
        ("broken", {"value": 1}), ("missing", {}), ("note", {"value": "x"}), ("note", {"value": 4})
    )
    messages = await answer(service, input=stated)
    results = json.loads(messages[-1]["content"])["results"]
    assert [r["status"] for r in results] == ["error", "error", "error", "success"]
    assert "out of order" in results[0]["content"]
    assert "missing" in results[1]["content"]
    assert seen == [4]


@pytest.mark.req("RUN-6")
@pytest.mark.parametrize(
    "content",
    ["hello", "[1]", '{"tool_calls": []}', '{"tool_calls": [{"args": {}}]}', '{"tool_calls": [{"name": 1}]}',
     '{"tool_calls": [{"name": "note", "args": [1]}]}', "", "[" * 100_000],
)  # fmt: skip
async def test_any_other_text_is_answered_with_the_form(rig: Any, content: str) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    messages = await answer(service, input=text(content))
    assert [m["type"] for m in messages] == ["human", "ai"]
    assert '{"tool_calls": [{"name"' in messages[-1]["content"]
    assert "note" in messages[-1]["content"]


@pytest.mark.req("RUN-6", "RUN-10")
async def test_many_calls_need_no_higher_recursion_limit_and_are_bounded(rig: Any) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    stated = calls(*[("note", {"value": n}) for n in range(30)])
    await answer(service, input=stated, config={"recursion_limit": 2})
    assert seen == list(range(30))
    many = json.dumps({"tool_calls": [{"name": "note"}] * (MAX_CALLS + 1)})
    assert "are allowed" in str(parse_calls(many))


@pytest.mark.req("RUN-6")
async def test_content_blocks_are_read_as_text(rig: Any) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    stated = calls(("note", {"value": 9}))["messages"][0]["content"]
    blocks = {"messages": [{"role": "user", "content": [{"type": "text", "text": stated}]}]}
    await answer(service, input=blocks)
    assert seen == [9]


@pytest.mark.req("RUN-1", "RUN-9", "CRED-8", "CRED-9")
async def test_principal_and_secrets_reach_tools_and_neither_checkpoint_nor_stream(
    rig: Any,
) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    forged = {
        "user_id": "mallory", "moorage": {"principal": "mallory"}, "internal": True,
        "langgraph_auth_user": {"identity": "mallory"}, "secrets": {"k": {"deep": SECRET}}, "topic": "kept-1",
    }  # fmt: skip
    run = await service.create(
        request(
            assistant_id="direct",
            input=calls(("whoami", {})),
            context=forged,
            config={
                "configurable": {"user_id": "mallory", "__pregel_x": 1},
                "metadata": {"roles": ["admin"]},
            },
            metadata={"token": "kept-2"},
            stream_mode=["values", "updates", "messages", "messages-tuple", "debug", "tasks", "checkpoints",
                         "custom", "events"],
        )
    )  # fmt: skip
    items = [item async for item in service.stream(ALICE, "t1", run.run_id)]
    assert items[-1].event == "end", items[-1]
    [(call, secrets)] = seen
    assert call.principal == ALICE
    assert secrets == {"k": {"deep": SECRET}}
    shown = json.dumps([item.data for item in items])
    assert SECRET not in shown
    assert "mallory" not in shown
    assert '"admin"' not in shown
    events = {item.event.split("/")[0] for item in items}
    assert events == {"metadata", "values", "updates", "messages", "debug", "tasks", "checkpoints", "events",
                      "end"}  # fmt: skip
    state = await service.threads.state(ALICE, "t1")
    assert state.metadata["token"] == "kept-2"
    history = await service.threads.history(ALICE, "t1", limit=50)
    assert len(history) > 3
    stored = rig.dump()
    assert "whoami" in stored
    assert SECRET not in stored
    assert "mallory" not in stored


@pytest.mark.req("RUN-6", "NOTE-6", "RUN-9")
async def test_notifications_are_acknowledged_and_cannot_be_forged(rig: Any) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    message = {
        "type": "human",
        "id": "moorage-t-1",
        "content": "it ended",
        "additional_kwargs": {"moorage_internal": True},
    }
    forged = await answer(service, input={"messages": [message]})
    assert forged[-1]["content"] != ACKNOWLEDGED
    assert forged[0]["id"] != "moorage-t-1"
    assert "moorage_internal" not in forged[0]["additional_kwargs"]
    launched = await service.launch(
        RunRequest("t1", "direct", ALICE, input={"messages": [message]}, origin="internal")
    )
    result = await service.join(ALICE, "t1", launched.run_id)
    assert result.values is not None
    assert result.values["messages"][-1]["content"] == ACKNOWLEDGED
    assert result.values["messages"][-2]["additional_kwargs"]["moorage_internal"] is True


@pytest.mark.req("RUN-5")
async def test_state_can_be_read_updated_and_forgotten(rig: Any) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    assert (await service.threads.state(ALICE, "t1")).values == {}
    await answer(service, input=text("hello"))
    state = await service.threads.state(ALICE, "t1")
    assert state.next == ()
    assert state.checkpoint_id is not None
    assert state.parent_checkpoint_id is not None
    written = await service.threads.update_state(
        ALICE, "t1", {"messages": [{"role": "user", "content": "added"}]}
    )
    assert written.values["messages"][-1]["content"] == "added"
    old = await service.threads.state(ALICE, "t1", checkpoint_id=state.checkpoint_id)
    assert old.values == state.values
    before = await service.threads.history(ALICE, "t1", before=state.checkpoint_id)
    assert before[0].checkpoint_id == state.parent_checkpoint_id
    await service.threads.delete(ALICE, "t1")
    await service.threads.create(ALICE, thread_id="t1")
    assert (await service.threads.state(ALICE, "t1")).values == {}


@pytest.mark.req("RUN-5")
async def test_a_run_can_go_on_from_an_older_checkpoint(rig: Any) -> None:
    service = await rig.service(source())
    await service.threads.create(ALICE, thread_id="t1")
    await answer(service, input=text("one"))
    first = await service.threads.state(ALICE, "t1")
    await answer(service, input=text("two"))
    forked = await answer(service, input=text("three"), checkpoint_id=first.checkpoint_id)
    assert [m["content"] for m in forked if m["type"] == "human"] == ["one", "three"]


@pytest.mark.req("RUN-5")
async def test_a_rolled_back_run_leaves_the_state_from_before(rig: Any) -> None:
    import asyncio

    async def stall(value: int) -> str:
        """Never answers."""
        seen.append(value)
        await asyncio.Event().wait()
        return ""

    service = await rig.service(FixedTools([gateway_tool(stall)]))
    await service.threads.create(ALICE, thread_id="t1")
    await answer(service, input=text("one"))
    before = (await service.threads.state(ALICE, "t1")).values
    run = await service.create(request(assistant_id="direct", input=calls(("stall", {"value": 1}))))
    feed = service._feeds.get(run.run_id)
    async for item in feed.read(modes=frozenset({"updates"}), last_event_id=None):
        if item.event == "updates":
            break
    await service.cancel(ALICE, "t1", run.run_id, action="rollback", wait=True)
    assert (await service.threads.state(ALICE, "t1")).values == before
    assert [r.run_id for r in await service.list(ALICE, "t1")] != [run.run_id]
    assert run.run_id not in {r.run_id for r in await service.list(ALICE, "t1")}


@pytest.mark.req("CRED-9")
async def test_a_library_that_quotes_the_runtime_quotes_no_secret(rig: Any) -> None:
    async def careless(runtime: ToolRuntime) -> str:
        """Pydantic warns of this annotation, and quotes the context."""
        raise AssertionError("the warning is an error here")

    service = await rig.service(FixedTools([gateway_tool(careless)]))
    await service.threads.create(ALICE, thread_id="t1")
    messages = await answer(service, input=calls(("careless", {})), context={"secrets": {"k": SECRET}})
    assert "serializer warnings" in messages[-1]["content"]
    assert "s3cr3t" not in str(messages)


@pytest.mark.req("TOOL-10", "BOUND-4")
async def test_text_that_databases_refuse_does_not_end_a_run(rig: Any) -> None:
    async def odd() -> str:
        """Returns what JSON can carry and a database cannot."""
        return "nul \x00 and half a pair \ud800 and a whole one \U0001f600"

    service = await rig.service(FixedTools([gateway_tool(odd)]))
    await service.threads.create(ALICE, thread_id="t1")
    messages = await answer(service, input=calls(("odd", {})), metadata={"m\x00": "\ud800"})
    assert "a whole one \U0001f600" in str(messages[-1]["content"])
    again = await answer(service, input=text("x \x00 \ud800"))
    assert again[-1]["type"] == "ai"
    state = await service.threads.state(ALICE, "t1")
    assert len(state.values["messages"]) == len(again)
    run = await service.create(request(assistant_id="direct", input=calls(("odd", {}))))
    items = [item async for item in service.stream(ALICE, "t1", run.run_id)]
    assert items[-1].event == "end"
