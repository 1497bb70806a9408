"""Assistants, which are plugins: they are read here, never written (RUN-5, RUN-6)."""

from typing import Annotated, Any

from litestar import Router, get, post
from litestar.params import JSONBody, PathParameter

from moorage.contract.errors import NotFound
from moorage_api.encoding import JsonResponse
from moorage_api.routes.documented import problems
from moorage_api.schemas.assistants import Assistant, AssistantCount, AssistantSearch
from moorage_api.wiring import Runtime, RuntimeDep

AssistantId = Annotated[str, PathParameter(max_length=255)]


def _view(runtime: Runtime, named: Any) -> Assistant:
    metadata = {"created_by": "system"}
    if named.unavailable is not None:
        metadata["unavailable"] = named.unavailable
    return Assistant(
        assistant_id=named.name,
        graph_id=named.name,
        name=named.name,
        description=named.description,
        metadata=metadata,
        created_at=runtime.started_at,
        updated_at=runtime.started_at,
    )


def _matching(runtime: Runtime, asked: AssistantSearch | AssistantCount) -> list[Assistant]:
    found = [_view(runtime, named) for named in runtime.gateway.runs.assistants()]
    wanted = (asked.metadata or {}).items()
    return [
        one
        for one in sorted(found, key=lambda one: one.name)
        if (asked.graph_id is None or one.graph_id == asked.graph_id)
        and (asked.name is None or asked.name.lower() in one.name.lower())
        and all(one.metadata.get(key) == value for key, value in wanted)
    ]


@post(
    "/search",
    status_code=200,
    summary="Search assistants",
    operation_id="search_assistants",
    responses=problems(),
)
async def search_assistants(
    runtime: RuntimeDep, data: JSONBody[AssistantSearch]
) -> JsonResponse[list[Assistant]]:
    """Those that plugins contribute; one that cannot be used here says why in its metadata."""
    found = _matching(runtime, data)
    page = found[data.offset : data.offset + data.limit]
    more = data.offset + data.limit < len(found)
    headers = {"X-Pagination-Next": str(data.offset + data.limit)} if more else {}
    return JsonResponse(page, headers=headers)


@post(
    "/count",
    status_code=200,
    summary="Count assistants",
    operation_id="count_assistants",
    responses=problems(),
)
async def count_assistants(runtime: RuntimeDep, data: JSONBody[AssistantCount]) -> int:
    """How many a search would find."""
    return len(_matching(runtime, data))


@get("/{assistant_id:str}", summary="Get an assistant", operation_id="get_assistant", responses=problems(404))
async def get_assistant(runtime: RuntimeDep, assistant_id: AssistantId) -> Assistant:
    """By its name."""
    for named in runtime.gateway.runs.assistants():
        if named.name == assistant_id:
            return _view(runtime, named)
    raise NotFound("no such assistant")


router = Router(
    "/api/assistants",
    route_handlers=[search_assistants, count_assistants, get_assistant],
    tags=["assistants"],
)
