"""A thread's event log as server-sent events (API-3)."""

from collections.abc import AsyncGenerator
from typing import Annotated

from litestar import get
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from moorage.contract.errors import NotFound
from moorage.contract.stores import RunEvent as RunEventRecord
from moorage_api.routes.documented import problems
from moorage_api.schemas.ids import ThreadId
from moorage_api.schemas.runs import StreamEvent
from moorage_api.streaming import SSE_BEAT, SSE_MEDIA_TYPE, alive, sse
from moorage_api.views import event_view
from moorage_api.wiring import GatewayDep, PrincipalDep, RuntimeDep

LastSeq = Annotated[
    str | None, HeaderParameter(name="Last-Event-ID", max_length=128, description="Go on after this event.")
]
EventTypes = Annotated[
    list[str] | None, QueryParameter(max_items=50, description="Only these, repeated or comma-separated.")
]
AfterSeq = Annotated[int, QueryParameter(ge=0, le=2**62, description="Only later events.")]
EVENTS = {
    200: ResponseSpec(StreamEvent, description="Events", media_type=SSE_MEDIA_TYPE, generate_examples=False)
}


@get(
    "/api/threads/{thread_id:str}/events",
    summary="Follow a thread's events",
    operation_id="stream_thread_events",
    responses=problems(404) | EVENTS,
    tags=["threads"],
)
async def stream_thread_events(
    runtime: RuntimeDep,
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    event_types: EventTypes = None,
    after_seq: AfterSeq = 0,
    last_event_id: LastSeq = None,
) -> Stream:
    """The log from its start, or after ``Last-Event-ID`` (or ``after_seq``), and then each new event: runs,
    workspace changes, ``task.attention``. The log is durable: whoever comes back misses nothing. It ends
    with ``end`` when the thread is deleted."""
    names = [name for part in event_types or [] for name in part.split(",") if name]
    resumed = int(last_event_id) if last_event_id and last_event_id.isdecimal() else after_seq
    events = await gateway.runs.follow_events(
        principal, thread_id, event_types=names or None, after_seq=min(resumed, 2**62)
    )
    pieces = alive(
        _pieces(events),
        beat=SSE_BEAT,
        every_seconds=runtime.settings.heartbeat_seconds,
        stopping=runtime.stopping,
    )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Stream(pieces, media_type=SSE_MEDIA_TYPE, headers=headers)


async def _pieces(events: AsyncGenerator[RunEventRecord, None]) -> AsyncGenerator[bytes, None]:
    try:
        async for event in events:
            yield sse(event.event_type, event_view(event), str(event.seq))
    except NotFound:
        yield sse("end", None)
    finally:
        await events.aclose()
