"""The problem answers of a route, for the OpenAPI document."""

from litestar.openapi.datastructures import ResponseSpec

from moorage_api.problems import MEDIA_TYPE
from moorage_api.schemas.problem import Problem

_MEANING = {
    400: "The request cannot be understood.",
    401: "Credentials are missing or wrong.",
    403: "The caller's role does not allow this.",
    404: "There is no such thing, or it is somebody else's.",
    409: "It contradicts the present state.",
    412: "It is not what `If-Match` names any more.",
    413: "The body is too large.",
    422: "The request is invalid, or a run was refused; nothing has happened.",
    500: "An internal error; the log has it under the given instance.",
    501: "This gateway does not do that; the detail says why.",
    502: "An MCP server could not be reached.",
    503: "The durable store or the task runtime is not available.",
}


def problems(*statuses: int) -> dict[int, ResponseSpec]:
    """Problem documents with these statuses, and those that every closed route can answer."""
    return {status: _spec(status) for status in sorted({400, 401, 403, 413, 422, 503, *statuses})}


def public_problems(*statuses: int) -> dict[int, ResponseSpec]:
    """The same for a route that needs no credentials."""
    return {status: _spec(status) for status in statuses}


def _spec(status: int) -> ResponseSpec:
    return ResponseSpec(
        data_container=Problem,
        description=_MEANING[status],
        media_type=MEDIA_TYPE,
        generate_examples=False,
    )
