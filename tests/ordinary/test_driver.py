"""The ordinary driver against real servers: the whole contract of a task (ORD)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import Gateway, context, gateway, http_server, remote, stdio

from moorage.contract import (
    GatewayContext,
    NotSupported,
    ProtocolViolation,
    ServerConfig,
    SubmitCall,
    SubmitRejected,
    TaskAnswer,
    TaskDriver,
    TaskRef,
    TaskStatus,
    TransientDriverError,
)
from moorage_drivers.ordinary.driver import OrdinaryDriver
from moorage_drivers.ordinary.model import TaskToolset

JOBS = TaskToolset(
    name="job",
    submit_tool="job_submit",
    status_tool="job_status",
    cancel_tool="job_cancel",
    respond_tool="job_respond",
)
SECTIONS = {"task_toolsets": [JOBS]}


def drivers(made: GatewayContext) -> dict[str, TaskDriver]:
    return {"ordinary": OrdinaryDriver(made)}


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerConfig]:
    if request.param == "stdio":
        yield stdio("jobs", sections=SECTIONS)
    else:
        with http_server("good", "--http", "--json") as url:
            yield remote("jobs", url, sections=SECTIONS)


async def submit(made: Gateway, server: ServerConfig, **arguments: Any) -> tuple[OrdinaryDriver, TaskRef]:
    driver = OrdinaryDriver(made.context)
    await made.tools()
    names = ["job_submit", "job_status", "job_cancel", "job_respond"]
    binding = driver.claim(server, names).submit["job_submit"]
    handle = await driver.submit(SubmitCall("task-1", server.name, binding, arguments, context()))
    assert handle.snapshot.status is TaskStatus.WORKING
    background = replace(context(), background=True)
    return driver, TaskRef("task-1", server.name, binding, handle.remote_id, background)


@pytest.mark.req("ORD-3", "ORD-6", "TASK-1", "STDIO-6")
async def test_submits_polls_and_completes(server: ServerConfig, tmp_path: Path) -> None:
    async with gateway(tmp_path, server, drivers=drivers) as made:
        driver, ref = await submit(made, server, label="paint", polls=2)
        first = await driver.get_status(ref)
        assert (first.status, first.poll_after_seconds) == (TaskStatus.WORKING, 0.5)
        assert first.remote_id == ref.remote_id
        second = await driver.get_status(ref)
        assert second.status is TaskStatus.COMPLETED
        assert second.result == {"label": "paint"}


@pytest.mark.req("ORD-3", "TASK-17")
async def test_cancels(server: ServerConfig, tmp_path: Path) -> None:
    async with gateway(tmp_path, server, drivers=drivers) as made:
        driver, ref = await submit(made, server, label="paint", polls=100)
        assert (await driver.cancel(ref)).status is TaskStatus.CANCELLED
        assert (await driver.get_status(ref)).status is TaskStatus.CANCELLED


@pytest.mark.req("TASK-16", "ORD-1")
async def test_answers_only_with_a_respond_tool(server: ServerConfig, tmp_path: Path) -> None:
    async with gateway(tmp_path, server, drivers=drivers) as made:
        driver, ref = await submit(made, server, label="paint", polls=100)
        answer = TaskAnswer("a1", {"label": "green"})
        assert (await driver.respond(ref, answer)).status is TaskStatus.WORKING
        assert (await driver.get_status(ref)).result == {"label": "green"}
        data = {key: value for key, value in ref.binding.data.items() if key != "respond_tool"}
        mute = replace(ref, binding=replace(ref.binding, data=data))
        with pytest.raises(NotSupported, match="respond_tool"):
            await driver.respond(mute, answer)


@pytest.mark.req("ORD-3", "ORD-4", "TASK-9")
async def test_what_the_remote_does_not_know(server: ServerConfig, tmp_path: Path) -> None:
    async with gateway(tmp_path, server, drivers=drivers) as made:
        driver, ref = await submit(made, server, label="paint", polls=100)
        with pytest.raises(ProtocolViolation, match="no longer knows") as caught:
            await driver.get_status(replace(ref, remote_id="somebody-else"))
        assert caught.value.code == "task_not_found"
        with pytest.raises(TransientDriverError, match="somebody-else"):
            await driver.cancel(replace(ref, remote_id="somebody-else"))


@pytest.mark.req("TASK-22", "TASK-23")
async def test_what_never_reached_the_server_is_a_refusal(tmp_path: Path) -> None:
    servers = [
        replace(stdio("gone", sections=SECTIONS), command="/no/such/command"),
        remote("dark", "http://127.0.0.1:9/mcp", sections=SECTIONS),
    ]
    async with gateway(tmp_path, *servers, drivers=drivers) as made:
        driver = OrdinaryDriver(made.context)
        for server in servers:
            binding = driver.claim(server, list(JOBS.roles.values())).submit["job_submit"]
            with pytest.raises(SubmitRejected, match=server.name):
                await driver.submit(SubmitCall("t", server.name, binding, {"label": "x"}, context()))
            ref = TaskRef("t", server.name, binding, "r", replace(context(), background=True))
            with pytest.raises(TransientDriverError, match=server.name):
                await driver.get_status(ref)
