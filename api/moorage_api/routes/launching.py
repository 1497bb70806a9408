"""What all launch routes share: the request, the headers, and the two lasting answers."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Annotated, Any, Literal

from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from litestar.response import Stream

from moorage.contract.identity import Principal
from moorage.contract.runs import RunRequest, RunStatus
from moorage.contract.stores import RunRecord
from moorage.runs.request import run_request, stream_modes
from moorage_api.problems import describe
from moorage_api.schemas.runs import RunCreate, StreamEvent
from moorage_api.streaming import JSON_BEAT, SSE_BEAT, SSE_MEDIA_TYPE, alive, ending_in_error, late_json, sse
from moorage_api.wiring import Runtime

Action = Annotated[Literal["interrupt", "rollback"], QueryParameter(description="How to end it.")]
EVENT_STREAM = {
    200: ResponseSpec(StreamEvent, description="Events", media_type=SSE_MEDIA_TYPE, generate_examples=False)
}
FINAL_VALUES = {200: ResponseSpec(dict[str, Any], description="The thread's values", generate_examples=False)}


def request_of(gateway: Any, principal: Principal, thread_id: str | None, body: RunCreate) -> RunRequest:
    """The core's request; raises `AdmissionRejected`. A stateless run's own thread goes when it has ended."""
    return run_request(
        body.model_dump(exclude_unset=True),
        thread_id=thread_id,
        principal=principal,
        limits=gateway.settings.limits,
        default_on_completion="keep" if thread_id is not None else "delete",
    )


def location_headers(run: RunRecord, again: str | None = None) -> dict[str, str]:
    """``Content-Location`` names the run. ``Location`` is where a broken answer can be had ``again``; it is
    relative to the API's base, which is how `langgraph_sdk` reads it."""
    path = f"/threads/{run.thread_id}/runs/{run.run_id}"
    headers = {"Content-Location": f"/api{path}"}
    if again is not None:
        headers["Location"] = f"{path}/{again}"
    return headers


async def start_stream(
    runtime: Runtime, principal: Principal, thread_id: str | None, body: RunCreate
) -> Stream:
    """Create the run and stream it from its first event on."""
    gateway = runtime.gateway
    run = await gateway.runs.create(request_of(gateway, principal, thread_id, body))
    modes = stream_modes(body.stream_mode or "values")
    items = gateway.runs.stream(principal, run.thread_id, run.run_id, modes=modes)
    return sse_answer(runtime, run, principal, items, cancel_on_disconnect=body.on_disconnect == "cancel")


def wait_answer(
    runtime: Runtime, run: RunRecord, principal: Principal, *, cancel_on_disconnect: bool = False
) -> Stream:
    """The run's final values once it has ended, or ``{"__error__": …}``."""
    source = late_json(_final_values(runtime, run, principal), error_document)
    return _lasting(
        runtime,
        run,
        principal,
        source,
        beat=JSON_BEAT,
        media_type="application/json",
        again="join",
        cancel_on_disconnect=cancel_on_disconnect,
    )


async def _final_values(runtime: Runtime, run: RunRecord, principal: Principal) -> Any:
    result = await runtime.gateway.runs.join(principal, run.thread_id, run.run_id)
    if result.run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
        return {"__error__": {"error": result.run.status.value, "message": result.run.error or ""}}
    # A run that ended before it wrote anything leaves a thread without values, not without an answer.
    return result.values or {}


def sse_answer(
    runtime: Runtime,
    run: RunRecord,
    principal: Principal,
    items: AsyncIterator[Any],
    *,
    cancel_on_disconnect: bool = False,
) -> Stream:
    """The run's events as they come; the last one is ``end`` or ``error``."""
    return _lasting(
        runtime,
        run,
        principal,
        ending_in_error(_events(items), error_event),
        beat=SSE_BEAT,
        media_type=SSE_MEDIA_TYPE,
        again="stream",
        cancel_on_disconnect=cancel_on_disconnect,
    )


def _lasting(
    runtime: Runtime,
    run: RunRecord,
    principal: Principal,
    source: AsyncGenerator[bytes, None],
    *,
    beat: bytes,
    media_type: str,
    again: str,
    cancel_on_disconnect: bool,
) -> Stream:
    pieces = alive(
        source,
        beat=beat,
        every_seconds=runtime.settings.heartbeat_seconds,
        stopping=runtime.stopping,
        whole=media_type != SSE_MEDIA_TYPE,
    )
    if cancel_on_disconnect:
        pieces = _watched(pieces, runtime, run, principal)
    headers = location_headers(run, again) | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Stream(pieces, media_type=media_type, headers=headers)


async def _watched(
    pieces: AsyncGenerator[bytes, None], runtime: Runtime, run: RunRecord, principal: Principal
) -> AsyncGenerator[bytes, None]:
    """Cancels the run where the client goes away before the end."""
    ended = False
    try:
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                yield piece
        ended = True
    finally:
        if not ended and not runtime.stopping.is_set():
            # This generator is being torn down and may not await; the cancellation goes on beside it.
            runtime.aside(runtime.gateway.runs.cancel(principal, run.thread_id, run.run_id))


async def _events(items: AsyncIterator[Any]) -> AsyncGenerator[bytes, None]:
    async for item in items:
        yield sse(item.event, item.data, item.id)


def error_event(error: Exception) -> Mapping[str, Any]:
    """How a stream says that something went wrong after the status was sent."""
    problem, _ = describe(error)
    return {"error": type(error).__name__, "message": problem.detail}


def error_document(error: Exception) -> Mapping[str, Any]:
    """How ``wait`` and ``join`` say it."""
    return {"__error__": error_event(error)}
