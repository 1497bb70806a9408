"""Every kind of answer that a server may give, read strictly (ORD-3…5, cases C64, C65)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.mcp_servers import context

from moorage.contract import (
    ProtocolViolation,
    ServerConfig,
    ServerUnavailable,
    SubmitCall,
    SubmitRejected,
    TaskBinding,
    TaskRef,
    TaskStatus,
    ToolCaller,
    ToolResult,
    TransientDriverError,
)
from moorage_drivers.ordinary.driver import OrdinaryDriver
from moorage_drivers.ordinary.model import TaskToolset

BINDING = TaskBinding(
    "ordinary", "job", {"submit_tool": "s", "status_tool": "q", "cancel_tool": "c", "respond_tool": "r"}
)
REF = TaskRef("local", "srv", BINDING, "R1", context())
SUBMIT = SubmitCall("local", "srv", BINDING, {}, context())


class Answering:
    """A gateway whose tool caller gives one answer."""

    def __init__(self, answer: ToolResult | Exception) -> None:
        self._answer = answer

    def service(self, protocol: type[Any]) -> Any:
        assert protocol is ToolCaller
        return self

    async def call(self, *_: Any, **__: Any) -> ToolResult:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def driver(answer: ToolResult | Exception | Mapping[str, Any]) -> OrdinaryDriver:
    result = ToolResult(structured=answer) if isinstance(answer, Mapping) else answer
    return OrdinaryDriver(Answering(result))  # type: ignore[arg-type]


def status(**fields: Any) -> dict[str, Any]:
    return {"task_id": "R1", "status": "running", **fields}


@pytest.mark.req("ORD-3")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("running", TaskStatus.WORKING),
        ("completed", TaskStatus.COMPLETED),
        ("failed", TaskStatus.FAILED),
        ("cancelled", TaskStatus.CANCELLED),
    ],
)
async def test_states(said: str, meant: TaskStatus) -> None:
    snapshot = await driver(status(status=said, surprise=1)).get_status(REF)
    assert (snapshot.status, snapshot.remote_id) == (meant, "R1")


@pytest.mark.req("ORD-3", "TASK-2")
async def test_all_fields() -> None:
    snapshot = await driver(
        status(
            status="input_required",
            input_required={"ask": "colour?"},
            result_artifact={"uri": "file:///x", "mime_type": "text/plain"},
            poll_after_seconds=1e12,
            error="e",
            error_code="c",
        )
    ).get_status(REF)
    assert snapshot.input_required == {"ask": "colour?"}
    assert snapshot.result_artifact == {"uri": "file:///x", "mime_type": "text/plain"}
    assert (snapshot.poll_after_seconds, snapshot.error, snapshot.error_code) == (1e12, "e", "c")


@pytest.mark.req("ORD-3", "ORD-5", "TASK-2", "TASK-9")
@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ({}, "status"),
        (status(status="SUCCEEDED"), "SUCCEEDED"),
        (status(status="done"), "done"),
        (status(status=None), "status"),
        (status(status=7), "status"),
        (status(task_id="R2"), "another task"),
        (status(task_id=None), "task_id"),
        (status(task_id=7), "task_id"),
        (status(task_id=" "), "task_id"),
        (status(status="input_required"), "input_required"),
        (status(status="input_required", input_required="now"), "input_required"),
        (status(result_artifact="x"), "result_artifact"),
        (status(result_artifact={"mime_type": "x"}), "uri"),
        (status(error=["x"]), "error"),
        (status(error_code="task_not_found"), "no longer knows"),
        *((status(poll_after_seconds=hint), "poll_after") for hint in ("NaN", "5", True, 0, -1)),
        *((status(poll_after_seconds=hint), "poll_after") for hint in (float("inf"), float("nan"))),
    ],
)
@pytest.mark.parametrize("operation", ["get_status", "cancel"])
async def test_a_broken_answer_is_permanent_and_named(
    answer: Mapping[str, Any], names: str, operation: str
) -> None:
    with pytest.raises(ProtocolViolation, match=names) as caught:
        await getattr(driver(answer), operation)(REF)
    assert "'srv'" in str(caught.value)


@pytest.mark.req("ORD-3")
async def test_text_is_never_parsed() -> None:
    text = ToolResult(content=({"type": "text", "text": '{"task_id": "R1", "status": "completed"}'},))
    with pytest.raises(ProtocolViolation, match="structuredContent"):
        await driver(text).get_status(REF)


@pytest.mark.req("ORD-4", "TASK-8")
async def test_an_error_result_is_worth_another_try_and_keeps_its_reason() -> None:
    content = ({"type": "image", "data": ""}, {"type": "text", "text": "rate limited " * 100})
    failed = ToolResult(content=content, is_error=True, structured=status(status="completed"))
    with pytest.raises(TransientDriverError) as caught:
        await driver(failed).get_status(REF)
    assert str(caught.value).startswith("rate limited")
    assert len(str(caught.value)) == 500


@pytest.mark.req("TASK-8")
@pytest.mark.parametrize("error", [ServerUnavailable("down", server="srv"), TimeoutError("late")])
async def test_an_unreachable_server_is_worth_another_try(error: Exception) -> None:
    with pytest.raises(TransientDriverError):
        await driver(error).get_status(REF)


@pytest.mark.req("TASK-3")
async def test_a_submit_may_end_at_once() -> None:
    handle = await driver(status(status="completed", result=5)).submit(SUBMIT)
    assert (handle.remote_id, handle.snapshot.status) == ("R1", TaskStatus.COMPLETED)


@pytest.mark.req("TASK-23")
@pytest.mark.parametrize(
    ("answer", "remote_id"),
    [
        (ToolResult(structured=status(status="nonsense")), "R1"),
        (ToolResult(structured=status(poll_after_seconds=-1)), "R1"),
        (ToolResult(structured=status(), is_error=True), "R1"),
        (ToolResult(structured={"status": "running"}), None),
        (ToolResult(structured={"task_id": 5, "status": "running"}), None),
        (ToolResult(structured=[1]), None),
    ],
)
async def test_a_broken_submit_names_the_remote_task_where_it_can(
    answer: ToolResult, remote_id: str | None
) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        await driver(answer).submit(SUBMIT)
    assert caught.value.remote_id == remote_id


@pytest.mark.req("TASK-23")
async def test_a_reply_that_the_client_library_rejects_still_names_the_remote_task() -> None:
    violation = ProtocolViolation("malformed")
    violation.__dict__["reply"] = {
        "id": 1,
        "result": {"structuredContent": {"task_id": "R9"}, "content": "\ud800"},
    }
    with pytest.raises(ProtocolViolation) as caught:
        await driver(violation).submit(SUBMIT)
    assert caught.value.remote_id == "R9"


@pytest.mark.req("TASK-22")
async def test_a_refused_submit() -> None:
    refused = ToolResult(content=({"type": "text", "text": "quota"},), is_error=True)
    with pytest.raises(SubmitRejected, match="quota"):
        await driver(refused).submit(SUBMIT)
    with pytest.raises(SubmitRejected):
        await driver(ServerUnavailable("down", server="srv", sent=False)).submit(SUBMIT)
    with pytest.raises(ServerUnavailable):
        await driver(ServerUnavailable("cut off", server="srv")).submit(SUBMIT)


def toolset(name: str, **tools: str) -> TaskToolset:
    roles = {f"{role}_tool": tools.get(role, f"{name}_{role}") for role in ("submit", "status", "cancel")}
    return TaskToolset(name=name, **roles)


def server(*groups: TaskToolset) -> ServerConfig:
    return ServerConfig(name="srv", transport="stdio", command="x", sections={"task_toolsets": list(groups)})


@pytest.mark.req("ORD-1", "ORD-2")
def test_claims_by_exact_raw_names() -> None:
    claim = driver({}).claim(server(toolset("a")), ["a_submit", "a_status", "a_cancel", "other"])
    assert set(claim.submit) == {"a_submit"}
    assert claim.submit["a_submit"].task_name == "a"
    assert claim.hidden == {"a_status", "a_cancel"}
    assert claim.errors == ()


@pytest.mark.req("TASK-19")
@pytest.mark.parametrize(("transport", "sticky"), [("stdio", True), ("http", False), ("sse", False)])
def test_only_work_over_stdio_stays_with_its_replica(transport: Any, sticky: bool) -> None:
    of = replace(server(toolset("a")), transport=transport)
    claim = driver({}).claim(of, ["a_submit", "a_status", "a_cancel"])
    assert claim.submit["a_submit"].sticky is sticky


@pytest.mark.req("ORD-1")
def test_a_faulty_group_is_withheld_and_named_and_the_others_work() -> None:
    """C67."""
    groups = (toolset("a"), toolset("b", status="b_state"), toolset("c"), toolset("d", status="c_status"))
    names = [f"{n}_{r}" for n in "abcd" for r in ("submit", "status", "cancel")]
    claim = driver({}).claim(server(*groups), names)
    assert set(claim.submit) == {"a_submit"}
    assert {"b_submit", "b_state", "b_cancel", "c_submit", "c_status", "d_submit"} <= claim.hidden
    missing, *shared = claim.errors
    assert "'b_state'" in missing
    assert "'srv'" in missing
    assert all("'c_status'" in error for error in shared)
    assert len(shared) == 2


@pytest.mark.req("ORD-1")
def test_one_tool_in_two_roles_of_a_group_is_refused_at_load() -> None:
    """C67."""
    with pytest.raises(ValueError, match="two roles"):
        toolset("a", status="a_cancel")
