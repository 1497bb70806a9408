"""Runs on a thread (RUN-5)."""

from typing import Annotated

from litestar import Router, delete, get, post
from litestar.params import HeaderParameter, JSONBody, QueryParameter
from litestar.response import Stream

from moorage.contract.runs import RunStatus as Status
from moorage.runs.request import stream_modes
from moorage_api.encoding import JsonResponse
from moorage_api.routes.documented import problems
from moorage_api.routes.launching import (
    EVENT_STREAM,
    FINAL_VALUES,
    Action,
    location_headers,
    request_of,
    sse_answer,
    start_stream,
    wait_answer,
)
from moorage_api.schemas.ids import Flag, Limit, Offset, RunId, Select, ThreadId
from moorage_api.schemas.runs import Run, RunCreate, RunEvent, RunStatus
from moorage_api.schemas.selection import next_page, selected
from moorage_api.views import event_view, run_view
from moorage_api.wiring import GatewayDep, PrincipalDep, RuntimeDep

LastEventId = Annotated[
    str | None, HeaderParameter(name="Last-Event-ID", max_length=128, description="Go on after this event.")
]
StreamModes = Annotated[list[str] | None, QueryParameter(description="Which modes; all where absent.")]
EventTypes = Annotated[
    list[str] | None, QueryParameter(max_items=50, description="Only these, repeated or comma-separated.")
]
AfterSeq = Annotated[int, QueryParameter(ge=0, le=2**62, description="The cursor: only later events.")]


@post("/", status_code=200, summary="Start a run", operation_id="create_run", responses=problems(404, 409))
async def create_run(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, data: JSONBody[RunCreate]
) -> JsonResponse[Run]:
    """In the background; the answer comes at once."""
    record = await gateway.runs.create(request_of(gateway, principal, thread_id, data))
    return JsonResponse(run_view(record), headers=location_headers(record))


@get("/", summary="List a thread's runs", operation_id="list_runs", responses=problems(404))
async def list_runs(
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    limit: Limit = 10,
    offset: Offset = 0,
    status: Annotated[RunStatus | None, QueryParameter(description="Only these.")] = None,
    select: Select = None,
) -> JsonResponse[list[Run]]:
    """Newest first."""
    wanted = Status(status) if status is not None else None
    runs = await gateway.runs.list(principal, thread_id, status=wanted, limit=limit, offset=offset)
    return JsonResponse(
        [selected(run_view(run), select) for run in runs], headers=next_page(offset, limit, len(runs))
    )


@get("/{run_id:str}", summary="Get a run", operation_id="get_run", responses=problems(404))
async def get_run(gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, run_id: RunId) -> Run:
    """As stored, without secrets (RUN-1)."""
    return run_view(await gateway.runs.get(principal, thread_id, run_id))


@delete("/{run_id:str}", summary="Delete a run", operation_id="delete_run", responses=problems(404, 409))
async def delete_run(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, run_id: RunId
) -> None:
    """Its record and events; an active run is cancelled first."""
    await gateway.runs.delete(principal, thread_id, run_id)


@post(
    "/{run_id:str}/cancel",
    status_code=202,
    summary="Cancel a run",
    operation_id="cancel_run",
    responses=problems(404, 409),
)
async def cancel_run(
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    run_id: RunId,
    wait: Flag = False,
    action: Action = "interrupt",
) -> Run:
    """``rollback`` also removes the run and what it wrote; ``wait`` answers once it has ended."""
    record = await gateway.runs.cancel(principal, thread_id, run_id, action=action, wait=wait)
    return run_view(record)


@post(
    "/wait",
    status_code=200,
    summary="Run and wait",
    operation_id="wait_run",
    responses=problems(404, 409) | FINAL_VALUES,
)
async def wait_run(
    runtime: RuntimeDep,
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    data: JSONBody[RunCreate],
) -> Stream:
    """Answers the thread's values when the run has ended, or ``{"__error__": …}``. Blank lines before the
    document keep the connection alive."""
    record = await gateway.runs.create(request_of(gateway, principal, thread_id, data))
    return wait_answer(runtime, record, principal, cancel_on_disconnect=data.on_disconnect == "cancel")


@post(
    "/stream",
    status_code=200,
    summary="Run and stream",
    operation_id="stream_run",
    responses=problems(404, 409) | EVENT_STREAM,
)
async def stream_run(
    runtime: RuntimeDep,
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    data: JSONBody[RunCreate],
) -> Stream:
    """Server-sent events in the modes asked for; resume them at ``Location`` with ``Last-Event-ID``."""
    return await start_stream(runtime, principal, thread_id, data)


@get(
    "/{run_id:str}/join",
    summary="Wait for a run",
    operation_id="join_run",
    responses=problems(404) | FINAL_VALUES,
)
async def join_run(
    runtime: RuntimeDep, gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, run_id: RunId
) -> Stream:
    """The thread's values once it has ended, or ``{"__error__": …}``."""
    record = await gateway.runs.get(principal, thread_id, run_id)
    return wait_answer(runtime, record, principal)


@get(
    "/{run_id:str}/stream",
    summary="Follow a run",
    operation_id="join_run_stream",
    responses=problems(404) | EVENT_STREAM,
)
async def join_run_stream(
    runtime: RuntimeDep,
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    run_id: RunId,
    stream_mode: StreamModes = None,
    cancel_on_disconnect: Flag = False,
    last_event_id: LastEventId = None,
) -> Stream:
    """From ``Last-Event-ID`` on, where it is still kept; otherwise one ``gap`` event says what is missing
    (RUN-8)."""
    record = await gateway.runs.get(principal, thread_id, run_id)
    modes = stream_modes([mode for mode in stream_mode or [] if mode])
    items = gateway.runs.stream(
        principal, thread_id, run_id, modes=modes, last_event_id=last_event_id or None
    )
    return sse_answer(runtime, record, principal, items, cancel_on_disconnect=cancel_on_disconnect)


@get(
    "/{run_id:str}/events", summary="A run's events", operation_id="list_run_events", responses=problems(404)
)
async def list_run_events(
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    run_id: RunId,
    event_types: EventTypes = None,
    task_id: Annotated[str | None, QueryParameter(max_length=128)] = None,
    limit: Limit = 100,
    after_seq: AfterSeq = 0,
) -> JsonResponse[list[RunEvent]]:
    """In order of ``seq``; the last one's is the next page's ``after_seq``."""
    names = [name for part in event_types or [] for name in part.split(",") if name]
    events = await gateway.runs.events(
        principal,
        thread_id,
        run_id=run_id,
        event_types=names or None,
        task_id=task_id,
        after_seq=after_seq,
        limit=limit,
    )
    headers = {"X-Pagination-Next": str(events[-1].seq)} if len(events) == limit else {}
    return JsonResponse([event_view(event) for event in events], headers=headers)


router = Router(
    "/api/threads/{thread_id:str}/runs",
    route_handlers=[
        create_run,
        list_runs,
        wait_run,
        stream_run,
        get_run,
        delete_run,
        cancel_run,
        join_run,
        join_run_stream,
        list_run_events,
    ],
    tags=["runs"],
)
