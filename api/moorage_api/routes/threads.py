"""Threads: create, read, change, forget, search; their state and history (RUN-5)."""

from collections.abc import Sequence
from typing import Annotated, Any

from litestar import Router, delete, get, patch, post
from litestar.params import JSONBody, PathParameter, QueryParameter

from moorage.contract.identity import Principal
from moorage.contract.stores import ThreadRecord
from moorage_api.encoding import JsonResponse
from moorage_api.problems import ApiProblem
from moorage_api.routes.documented import problems
from moorage_api.schemas.ids import Flag, Limit, Select, ThreadId
from moorage_api.schemas.selection import next_page, selected
from moorage_api.schemas.threads import (
    CheckpointRef,
    HistoryQuery,
    StateAt,
    StateUpdate,
    StateUpdated,
    Thread,
    ThreadCount,
    ThreadCreate,
    ThreadPatch,
    ThreadSearch,
    ThreadState,
)
from moorage_api.views import checkpoint_view, state_view, thread_view
from moorage_api.wiring import GatewayDep, PrincipalDep

ALL = 100_000
CheckpointId = Annotated[str, PathParameter(max_length=128)]


def unsupported(what: str, why: str) -> ApiProblem:
    """501: a part of the LangGraph Platform that this gateway does not have."""
    return ApiProblem(501, "not-supported", f"{what} is not supported: {why}.")


@post(
    "/",
    status_code=200,
    summary="Create a thread",
    operation_id="create_thread",
    responses=problems(409, 501),
)
async def create_thread(gateway: GatewayDep, principal: PrincipalDep, data: JSONBody[ThreadCreate]) -> Thread:
    """With ``if_exists: do_nothing`` the caller's own existing thread is returned as it is."""
    if data.supersteps:
        raise unsupported("supersteps", "a thread starts empty; update its state instead")
    record = await gateway.runs.threads.create(
        principal, thread_id=data.thread_id, metadata=data.metadata, if_exists=data.if_exists
    )
    return thread_view(record)


@get("/{thread_id:str}", summary="Get a thread", operation_id="get_thread", responses=problems(404))
async def get_thread(gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId) -> Thread:
    """With the present values of its state."""
    record = await gateway.runs.threads.get(principal, thread_id)
    return thread_view(record, await gateway.runs.threads.state(principal, thread_id))


@patch(
    "/{thread_id:str}",
    summary="Change a thread's metadata",
    operation_id="patch_thread",
    responses=problems(404),
)
async def patch_thread(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, data: JSONBody[ThreadPatch]
) -> Thread:
    """Merges top-level keys."""
    return thread_view(await gateway.runs.threads.update(principal, thread_id, data.metadata))


@delete(
    "/{thread_id:str}", summary="Delete a thread", operation_id="delete_thread", responses=problems(404, 409)
)
async def delete_thread(gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId) -> None:
    """With its runs, events and state; its sessions are closed."""
    await gateway.runs.threads.delete(principal, thread_id)


@post(
    "/search",
    status_code=200,
    summary="Search threads",
    operation_id="search_threads",
    responses=problems(501),
)
async def search_threads(
    gateway: GatewayDep,
    principal: PrincipalDep,
    data: JSONBody[ThreadSearch],
) -> JsonResponse[list[Thread]]:
    """The caller's own, newest first."""
    found = await _found(gateway, principal, data, everything=_needs_everything(data))
    if _needs_everything(data):
        found = _ordered(found, data)[data.offset : data.offset + data.limit]
    return JsonResponse(
        [selected(thread_view(record), data.select) for record in found],
        headers=next_page(data.offset, data.limit, len(found)),
    )


@post(
    "/count",
    status_code=200,
    summary="Count threads",
    operation_id="count_threads",
    responses=problems(501),
)
async def count_threads(gateway: GatewayDep, principal: PrincipalDep, data: JSONBody[ThreadCount]) -> int:
    """How many of the caller's own a search would find."""
    return len(await _found(gateway, principal, data, everything=True))


async def _found(
    gateway: Any, principal: Principal, asked: ThreadSearch | ThreadCount, *, everything: bool
) -> Sequence[ThreadRecord]:
    if asked.values or getattr(asked, "extract", None):
        raise unsupported("searching by values", "states are kept as opaque checkpoints")
    limit, offset = ALL, 0
    if isinstance(asked, ThreadSearch) and not everything:
        limit, offset = asked.limit, asked.offset
    found: Sequence[ThreadRecord] = await gateway.runs.threads.search(
        principal,
        metadata=asked.metadata or {},
        status=asked.status,
        limit=limit,
        offset=offset,
    )
    return found


def _needs_everything(asked: ThreadSearch) -> bool:
    """Whether order or choice differ from what the store offers: newest first."""
    return asked.ids is not None or asked.sort_by is not None or asked.sort_order is not None


def _ordered(found: Sequence[ThreadRecord], asked: ThreadSearch) -> list[ThreadRecord]:
    chosen = [one for one in found if asked.ids is None or one.thread_id in asked.ids]
    key = asked.sort_by or "created_at"
    return sorted(chosen, key=lambda one: str(getattr(one, key)), reverse=asked.sort_order != "asc")


@get(
    "/{thread_id:str}/state",
    summary="Get a thread's state",
    operation_id="get_state",
    responses=problems(404),
)
async def get_state(
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    subgraphs: Flag = False,
    select: Select = None,
) -> JsonResponse[ThreadState]:
    """The latest checkpoint; an empty one for a thread without runs."""
    state = await gateway.runs.threads.state(principal, thread_id)
    return JsonResponse(selected(state_view(thread_id, state), select))


@get(
    "/{thread_id:str}/state/{checkpoint_id:str}",
    summary="Get a thread's state at a checkpoint",
    operation_id="get_state_at",
    responses=problems(404),
)
async def get_state_at(
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    checkpoint_id: CheckpointId,
    subgraphs: Flag = False,
    select: Select = None,
) -> JsonResponse[ThreadState]:
    """That checkpoint, where the thread has it."""
    state = await gateway.runs.threads.state(principal, thread_id, checkpoint_id=checkpoint_id)
    return JsonResponse(selected(state_view(thread_id, state), select))


@post(
    "/{thread_id:str}/state/checkpoint",
    status_code=200,
    summary="Get a thread's state at a checkpoint, by body",
    operation_id="post_state_at",
    responses=problems(404),
)
async def post_state_at(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, data: JSONBody[StateAt]
) -> JsonResponse[ThreadState]:
    """The same as by path."""
    checkpoint_id = data.checkpoint.checkpoint_id
    state = await gateway.runs.threads.state(principal, thread_id, checkpoint_id=checkpoint_id)
    return JsonResponse(selected(state_view(thread_id, state), data.select))


@post(
    "/{thread_id:str}/state",
    status_code=200,
    summary="Update a thread's state",
    operation_id="update_state",
    responses=problems(404, 409),
)
async def update_state(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, data: JSONBody[StateUpdate]
) -> StateUpdated:
    """Writes a checkpoint outside a run; a busy thread answers 409."""
    checkpoint_id = data.checkpoint_id or (data.checkpoint.checkpoint_id if data.checkpoint else None)
    state = await gateway.runs.threads.update_state(
        principal, thread_id, data.values, as_node=data.as_node, checkpoint_id=checkpoint_id
    )
    return StateUpdated(checkpoint_view(thread_id, state.checkpoint_id, state.checkpoint_ns))


@post(
    "/{thread_id:str}/history",
    status_code=200,
    summary="A thread's history",
    operation_id="post_history",
    responses=problems(404, 501),
)
async def post_history(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, data: JSONBody[HistoryQuery]
) -> JsonResponse[list[ThreadState]]:
    """Checkpoints, newest first."""
    if data.metadata or data.checkpoint:
        raise unsupported("choosing states by metadata or subgraph", "states belong to the assistant")
    before = data.before.checkpoint_id if isinstance(data.before, CheckpointRef) else data.before
    states = await _history(gateway, principal, thread_id, limit=data.limit, before=before)
    return JsonResponse([selected(state, data.select) for state in states])


@get(
    "/{thread_id:str}/history",
    summary="A thread's history, by query",
    operation_id="get_history",
    responses=problems(404),
)
async def get_history(
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    limit: Limit = 10,
    before: Annotated[str | None, QueryParameter(max_length=128, description="A checkpoint id.")] = None,
) -> list[ThreadState]:
    """The same as by body."""
    return await _history(gateway, principal, thread_id, limit=limit, before=before)


async def _history(
    gateway: Any, principal: Principal, thread_id: str, *, limit: int, before: str | None
) -> list[ThreadState]:
    states = await gateway.runs.threads.history(principal, thread_id, limit=limit, before=before)
    return [state_view(thread_id, state) for state in states]


router = Router(
    "/api/threads",
    route_handlers=[
        create_thread,
        search_threads,
        count_threads,
        get_thread,
        patch_thread,
        delete_thread,
        get_state,
        get_state_at,
        post_state_at,
        update_state,
        get_history,
        post_history,
    ],
    tags=["threads"],
)
