"""Runs without a thread: each gets one of its own, which goes when the run has ended (RUN-5)."""

from typing import Any

from litestar import Router, post
from litestar.params import JSONBody
from litestar.response import Stream

from moorage.contract.identity import Principal
from moorage.contract.runs import RunStatus
from moorage_api.encoding import JsonResponse
from moorage_api.problems import invalid
from moorage_api.routes.documented import problems
from moorage_api.routes.launching import (
    EVENT_STREAM,
    FINAL_VALUES,
    Action,
    location_headers,
    request_of,
    start_stream,
    wait_answer,
)
from moorage_api.schemas.runs import Run, RunCreate, RunsCancel
from moorage_api.views import run_view
from moorage_api.wiring import GatewayDep, PrincipalDep, RuntimeDep

BATCH_LIMIT = 100
EVERY = 100_000


@post(
    "/",
    status_code=200,
    summary="Start a run",
    operation_id="create_stateless_run",
    responses=problems(404, 409),
)
async def create_stateless_run(
    gateway: GatewayDep,
    principal: PrincipalDep,
    data: JSONBody[RunCreate],
) -> JsonResponse[Run]:
    """On a thread of its own."""
    record = await gateway.runs.create(request_of(gateway, principal, None, data))
    return JsonResponse(run_view(record), headers=location_headers(record))


@post(
    "/wait",
    status_code=200,
    summary="Run and wait",
    operation_id="wait_stateless_run",
    responses=problems(404, 409) | FINAL_VALUES,
)
async def wait_stateless_run(
    runtime: RuntimeDep, gateway: GatewayDep, principal: PrincipalDep, data: JSONBody[RunCreate]
) -> Stream:
    """The values when the run has ended, or ``{"__error__": …}``."""
    record = await gateway.runs.create(request_of(gateway, principal, None, data))
    return wait_answer(runtime, record, principal, cancel_on_disconnect=data.on_disconnect == "cancel")


@post(
    "/stream",
    status_code=200,
    summary="Run and stream",
    operation_id="stream_stateless_run",
    responses=problems(404, 409) | EVENT_STREAM,
)
async def stream_stateless_run(
    runtime: RuntimeDep,
    principal: PrincipalDep,
    data: JSONBody[RunCreate],
) -> Stream:
    """Server-sent events in the modes asked for."""
    return await start_stream(runtime, principal, None, data)


@post(
    "/batch",
    status_code=200,
    summary="Start several runs",
    operation_id="create_run_batch",
    responses=problems(404, 409),
)
async def create_run_batch(
    gateway: GatewayDep,
    principal: PrincipalDep,
    data: JSONBody[list[RunCreate]],
) -> list[Run]:
    """All of them pass admission before the first is created."""
    if len(data) > BATCH_LIMIT:
        raise invalid("", f"at most {BATCH_LIMIT} runs at once")
    requests = [request_of(gateway, principal, None, one) for one in data]
    for request in requests:
        await gateway.runs.admit(request)
    return [run_view(await gateway.runs.create(request)) for request in requests]


@post(
    "/cancel",
    status_code=204,
    summary="Cancel several runs",
    operation_id="cancel_runs",
    responses=problems(404),
)
async def cancel_runs(
    gateway: GatewayDep, principal: PrincipalDep, data: JSONBody[RunsCancel], action: Action = "interrupt"
) -> None:
    """Either the named runs of one thread, or all of the caller's with that status."""
    if data.status is None and not (data.thread_id and data.run_ids):
        raise invalid("", "give thread_id and run_ids, or status")
    threads = [data.thread_id] if data.thread_id else await _busy_threads(gateway, principal)
    for thread_id in threads:
        for run_id in data.run_ids or await _active_runs(gateway, principal, thread_id, data.status):
            await gateway.runs.cancel(principal, thread_id, run_id, action=action)


async def _busy_threads(gateway: Any, principal: Principal) -> list[str]:
    found = await gateway.runs.threads.search(principal, status="busy", limit=EVERY)
    return [thread.thread_id for thread in found]


async def _active_runs(gateway: Any, principal: Principal, thread_id: str, status: Any) -> list[str]:
    wanted = (RunStatus.PENDING, RunStatus.RUNNING) if status == "all" else (RunStatus(status),)
    found = [await gateway.runs.list(principal, thread_id, status=one, limit=EVERY) for one in wanted]
    return [run.run_id for runs in found for run in runs]


router = Router(
    "/api/runs",
    route_handlers=[
        create_stateless_run,
        wait_stateless_run,
        stream_stateless_run,
        create_run_batch,
        cancel_runs,
    ],
    tags=["stateless runs"],
)
