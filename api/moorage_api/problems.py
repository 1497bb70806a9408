"""RFC 9457 problem documents, and the one place where an error becomes an answer (API-1).

No document quotes what a request contained: reasons come from fixed texts, from schema validation without
its inputs, and from domain errors, whose messages never carry a secret (CRED-9).
"""

import logging
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, SerializationException, ValidationException

from moorage.config.errors import ConfigRejected, ConfigWriteFailed, PreconditionFailed
from moorage.contract.errors import (
    AdmissionRejected,
    AmbiguousName,
    AuthenticationFailed,
    ConfigError,
    Conflict,
    CredentialDenied,
    DriverError,
    InvalidAnswer,
    InvalidUpdate,
    LaunchRefused,
    MoorageError,
    NotFound,
    NotSupported,
    PluginError,
    RemoteTaskConflict,
    ServerUnavailable,
    StoreUnavailable,
    ThreadBusy,
)
from moorage.runs.threads import InvalidThreadId
from moorage_api.encoding import JsonResponse
from moorage_api.schemas.problem import FieldFault, Problem

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:moorage:problem:"
_REASON_LIMIT = 300
_PATH_LIMIT = 200

log = logging.getLogger(__name__)


class ApiProblem(Exception):
    """An error of the HTTP layer itself. ``kind`` is the last part of the problem's type."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        errors: Sequence[FieldFault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})


def invalid(path: str, reason: str) -> ApiProblem:
    """A request that cannot be processed because of the value at ``path``, which is not quoted."""
    return ApiProblem(422, "invalid-request", "The request is invalid.", errors=[FieldFault(path, reason)])


# The most specific class first; the first match counts.
_DOMAIN: tuple[tuple[type[Exception], int, str], ...] = (
    (NotFound, 404, "not-found"),
    (ThreadBusy, 409, "thread-busy"),
    (AmbiguousName, 409, "ambiguous-name"),
    (RemoteTaskConflict, 409, "remote-task-conflict"),
    (PreconditionFailed, 412, "precondition-failed"),
    (Conflict, 409, "conflict"),
    (AdmissionRejected, 422, "run-refused"),
    (InvalidAnswer, 422, "invalid-answer"),
    (InvalidUpdate, 422, "invalid-update"),
    (InvalidThreadId, 422, "invalid-request"),
    (LaunchRefused, 422, "launch-refused"),
    (AuthenticationFailed, 401, "unauthorized"),
    (CredentialDenied, 403, "credential-denied"),
    (ConfigWriteFailed, 503, "configuration-not-written"),
    (ConfigError, 400, "invalid-configuration"),
    (StoreUnavailable, 503, "store-unavailable"),
    (ServerUnavailable, 502, "server-unavailable"),
    (NotSupported, 501, "not-supported"),
    (DriverError, 502, "driver-error"),
    (PluginError, 500, "plugin-error"),
    (MoorageError, 500, "internal-error"),
    (TimeoutError, 504, "timeout"),
)

_DETAILS: Mapping[int, str] = {
    400: "The request cannot be understood.",
    404: "There is nothing at this address.",
    405: "This address does not take this method.",
    413: "The request body is larger than this gateway accepts (limits.request_body_bytes).",
    500: "An internal error occurred; the gateway's log has it under this instance.",
}
_CLIENT_GONE = "client disconnected prematurely"
"""What Litestar says, with status 500, of a body that ends too early."""
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="moorage"'}


def describe(error: Exception) -> tuple[Problem, dict[str, str]]:
    """The document and the headers that answer this error; logs what is the gateway's own fault."""
    if isinstance(error, ApiProblem):
        return _problem(error.status, error.kind, error.detail, errors=error.errors), error.headers
    if isinstance(error, HTTPException):
        return _of_framework(error)
    if isinstance(error, RecursionError):
        return describe(invalid("", "the body is nested too deeply"))
    for kind_of_error, status, kind in _DOMAIN:
        if isinstance(error, kind_of_error):
            return _of_domain(error, status, kind)
    return _internal(error)


def _of_domain(error: Exception, status: int, kind: str) -> tuple[Problem, dict[str, str]]:
    headers = CHALLENGE if status == 401 else {"Retry-After": "5"} if status == 503 else {}
    if isinstance(error, PluginError):
        problem = _internal(error)[0]
        problem.type, problem.detail = TYPE_PREFIX + kind, f"The plugin {error.plugin!r} failed."
        return problem, dict(headers)
    if status == 500:
        return _internal(error)
    if isinstance(error, ConfigRejected):
        faults = [FieldFault(one.where[:_PATH_LIMIT], one.message[:_REASON_LIMIT]) for one in error.faults]
        return _problem(status, kind, "The configuration is not acceptable.", errors=faults), dict(headers)
    detail = str(error) or _DETAILS.get(status, HTTPStatus(status).description)
    return _problem(status, kind, detail), dict(headers)


def _of_framework(error: HTTPException) -> tuple[Problem, dict[str, str]]:
    headers = {str(name): str(value) for name, value in (error.headers or {}).items()}
    if isinstance(error, ValidationException):
        faults = list(_faults(error))
        return _problem(422, "invalid-request", "The request is invalid.", errors=faults), headers
    if isinstance(error.__cause__, SerializationException):
        return describe(invalid("", _malformed(error.__cause__)))
    if error.detail == _CLIENT_GONE:
        return _problem(400, "bad-request", _DETAILS[400]), headers  # nobody reads it, nobody is to blame
    status = error.status_code
    if status >= 500:
        return _internal(error)
    kind = re.sub(r"[^a-z]+", "-", HTTPStatus(status).phrase.lower())
    return _problem(status, kind, _DETAILS.get(status, HTTPStatus(status).description)), headers


def _malformed(error: SerializationException) -> str:
    position = re.search(r"\(byte (\d+)\)", str(error))
    return "the body is not valid JSON" + (f" (at byte {position[1]})" if position else "")


def _faults(error: ValidationException) -> Iterator[FieldFault]:
    """Path and reason of each fault; a body's come from pydantic, a parameter's from msgspec."""
    body_faults: Any = getattr(error.__cause__, "errors", None)
    if body_faults:
        for fault in body_faults:
            path = ".".join(str(part) for part in fault["loc"])
            reason = "invalid value" if fault["type"] == "value_error" else str(fault["msg"])
            yield FieldFault(path[:_PATH_LIMIT], reason[:_REASON_LIMIT])
        return
    extra: Any = error.extra
    for message in extra if isinstance(extra, list) else []:
        key = str(message.get("key", ""))
        path = "" if key == "data" else key[:_PATH_LIMIT]
        yield FieldFault(path, _reason(str(message.get("message", ""))))


def _reason(message: str) -> str:
    """msgspec's reason, without the value that it quotes for enumerations."""
    if message.startswith(("Expected", "Object")):
        return message[:_REASON_LIMIT]
    if message.startswith("Missing"):
        return "required"
    if message.startswith("Invalid enum value"):
        return "not one of the allowed values"
    return "invalid value"


def _problem(status: int, kind: str, detail: str, *, errors: Sequence[FieldFault] = ()) -> Problem:
    return Problem(
        type=TYPE_PREFIX + kind,
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        errors=list(errors) or msgspec.UNSET,
    )


def _internal(error: Exception) -> tuple[Problem, dict[str, str]]:
    instance = f"urn:uuid:{uuid.uuid4()}"
    log.error("request failed, instance %s", instance, exc_info=error)
    problem = _problem(500, "internal-error", _DETAILS[500])
    problem.instance = instance
    return problem, {}


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Litestar's exception handler for everything."""
    problem, headers = describe(error)
    return JsonResponse(problem, status_code=problem.status, headers=headers, media_type=MEDIA_TYPE)
