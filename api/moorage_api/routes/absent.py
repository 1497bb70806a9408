"""Parts of the LangGraph Platform that this gateway does not have: each answers 501 and says why.

`docs/reference/langgraph-compatibility.md` lists them; a test compares both with the public client.
"""

from collections.abc import Awaitable, Callable

from litestar import route
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler
from litestar.types import ControllerRouterHandler

from moorage_api.problems import ApiProblem
from moorage_api.routes.documented import problems
from moorage_api.schemas.ids import AnyId

TAG = "not supported"
_PLUGINS = "assistants are plugins; install or remove one and start the gateway anew"
_GRAPHS = "an assistant need not be a graph, and its inside is its own"
_CRONS = "this gateway has no scheduler for runs; start them from your own"
_STORE = "this gateway has no key-value store for clients"
_THIRD = "the third streaming protocol is not spoken; use runs.stream"

ABSENT: tuple[tuple[str, str, str], ...] = (
    ("POST", "/assistants", _PLUGINS),
    ("PATCH", "/assistants/{any_id:str}", _PLUGINS),
    ("DELETE", "/assistants/{any_id:str}", _PLUGINS),
    ("POST", "/assistants/{any_id:str}/versions", _PLUGINS),
    ("POST", "/assistants/{any_id:str}/latest", _PLUGINS),
    ("GET", "/assistants/{any_id:str}/graph", _GRAPHS),
    ("GET", "/assistants/{any_id:str}/schemas", _GRAPHS),
    ("GET", "/assistants/{any_id:str}/subgraphs", _GRAPHS),
    ("GET", "/assistants/{any_id:str}/subgraphs/{namespace:str}", _GRAPHS),
    ("POST", "/threads/prune", "delete the threads one by one"),
    ("POST", "/threads/{any_id:str}/copy", "start a new thread and write its state"),
    ("GET", "/threads/{any_id:str}/stream", "follow single runs instead, or the thread's tasks"),
    ("POST", "/threads/{any_id:str}/commands", _THIRD),
    ("POST", "/threads/{any_id:str}/stream/events", _THIRD),
    ("POST", "/threads/{any_id:str}/runs/crons", _CRONS),
    ("POST", "/runs/crons", _CRONS),
    ("POST", "/runs/crons/search", _CRONS),
    ("POST", "/runs/crons/count", _CRONS),
    ("PATCH", "/runs/crons/{any_id:str}", _CRONS),
    ("DELETE", "/runs/crons/{any_id:str}", _CRONS),
    ("PUT", "/store/items", _STORE),
    ("GET", "/store/items", _STORE),
    ("DELETE", "/store/items", _STORE),
    ("POST", "/store/items/search", _STORE),
    ("POST", "/store/namespaces", _STORE),
)
"""Method, path below ``/api``, and reason."""


def _absent(method: str, path: str, reason: str) -> HTTPRouteHandler:
    names = path.replace("{any_id:str}", "one").replace("{namespace:str}", "of")
    name = "_".join(part for part in f"{method.lower()}/{names}".split("/") if part)

    problem = ApiProblem(501, "not-supported", f"This is not supported here: {reason}.")
    refuse = _refusal(path, problem)
    refuse.__doc__ = f"Not supported: {reason}."
    return route(
        f"/api{path}",
        http_method=[HttpMethod(method)],
        status_code=204,
        summary="Not supported",
        operation_id=f"absent_{name}",
        tags=[TAG],
        responses=problems(501),
    )(refuse)


def _refusal(path: str, problem: ApiProblem) -> Callable[..., Awaitable[None]]:
    """A handler with the parameters that the path has, so that they are documented."""

    async def plain() -> None:
        raise problem

    async def of_one(any_id: AnyId) -> None:
        raise problem

    async def of_two(any_id: AnyId, namespace: AnyId) -> None:
        raise problem

    return of_two if "{namespace:" in path else of_one if "{any_id:" in path else plain


def absent_routes() -> list[ControllerRouterHandler]:
    """One handler each; somebody else's thread and none at all get the same answer."""
    return [_absent(*one) for one in ABSENT]
