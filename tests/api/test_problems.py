"""Every error is a problem document and repeats nothing of the request (API-1, C38)."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from litestar import post
from litestar.params import JSONBody
from pydantic import BaseModel, field_validator
from support.api_fakes import FakeGateway
from support.http import serving
from support.runs import until

from moorage.contract import (
    AdmissionRejected,
    AmbiguousName,
    AuthenticationFailed,
    ConfigError,
    Conflict,
    CredentialDenied,
    InvalidUpdate,
    LaunchRefused,
    MoorageError,
    NotFound,
    NotSupported,
    PluginError,
    ServerUnavailable,
    StoreUnavailable,
    ThreadBusy,
    TransientDriverError,
)
from moorage_api.app import create_app
from moorage_api.problems import describe
from moorage_api.settings import ApiSettings

SECRET = "s3cr3t-value-of-nobody"
KEY = {"X-Api-Key": "an-admin-key-for-tests"}
BODY_LIMIT = 50_000

pytestmark = pytest.mark.req("API-1")


class Picky(BaseModel):
    header: str

    @field_validator("header")
    @classmethod
    def refuse(cls, value: str) -> str:
        raise ValueError(f"the header {value} is not good")


@post("/picky")
async def picky(data: JSONBody[Picky]) -> None:
    """Quotes what it was given, as careless validators do."""


@post("/failing")
async def failing() -> None:
    raise RuntimeError("an internal detail")


@pytest.fixture(params=[False, True], ids=["", "debug"])
async def http(request: pytest.FixtureRequest) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(
        FakeGateway().open,
        ApiSettings(admin_key=KEY["X-Api-Key"]),
        body_limit_bytes=BODY_LIMIT,
        debug=request.param,
    )
    app.register(picky)
    app.register(failing)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, headers=KEY) as client:
        yield client


def problem(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == status
    assert document["type"].startswith("urn:moorage:problem:")
    assert document["title"]
    assert document["detail"]
    assert SECRET not in answer.text
    assert "Traceback" not in answer.text
    return document


INVALID = [
    ("post", "/api/threads/t/runs", {"assistant_id": [SECRET]}, "assistant_id"),
    ("post", "/api/threads/t/runs", {"input": SECRET}, "assistant_id"),
    ("post", "/api/threads/t/runs", {"assistant_id": "x", "metadata": SECRET}, "metadata"),
    ("post", "/api/threads/t/runs", {"assistant_id": "x", "metadata": [SECRET]}, "metadata"),
    ("post", "/api/threads/t/runs", {"assistant_id": "x", "config": SECRET}, "config"),
    (
        "post",
        "/api/threads/t/runs",
        {"assistant_id": "x", "multitask_strategy": SECRET},
        "multitask_strategy",
    ),
    ("post", "/api/threads/t/runs", {"assistant_id": "x", "after_seconds": -1}, "after_seconds"),
    ("post", "/api/threads", {"thread_id": SECRET + "/"}, "thread_id"),
    ("post", "/api/threads", {"thread_id": "a\n"}, "thread_id"),
    ("post", "/api/threads", {"metadata": SECRET}, "metadata"),
    ("post", "/api/threads", [SECRET], ""),
    ("post", "/api/threads", SECRET, ""),
    ("post", "/api/threads", None, ""),
    ("post", "/api/threads/search", {"status": SECRET}, "status"),
    ("post", "/api/threads/search", {"limit": 0}, "limit"),
    ("post", "/picky", {"header": SECRET}, "header"),
    ("get", f"/api/threads/t/runs?status={SECRET}", None, "status"),
    ("get", f"/api/threads/t/runs?limit={SECRET}", None, "limit"),
    ("get", "/api/threads/t/runs?limit=1001", None, "limit"),
    ("get", f"/api/threads/{SECRET}.x", None, "thread_id"),
    ("get", "/api/threads/" + "a" * 65, None, "thread_id"),
    ("get", "/api/threads/a%0A", None, "thread_id"),
    ("get", "/api/threads/%C3%A4", None, "thread_id"),
]


@pytest.mark.req("API-1", "RUN-5")
@pytest.mark.parametrize(("method", "path", "body", "place"), INVALID)
async def test_an_invalid_request_is_422_with_paths_and_reasons(
    http: httpx.AsyncClient, method: str, path: str, body: Any, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    content = {} if method == "get" else {"json": body}
    document = problem(await http.request(method, path, **content), 422)
    assert place in [fault["path"] for fault in document["errors"]], document
    assert all(fault["reason"] for fault in document["errors"])
    # uvicorn's access log is switched off, which pytest undoes for itself.
    others = ("httpx", "httpcore", "uvicorn.access")
    ours = [record for record in caplog.records if not record.name.startswith(others)]
    assert not [record for record in ours if SECRET in record.getMessage() + str(record.exc_info)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"metadata": {"key": "' + SECRET.encode() + b'"',
        SECRET.encode(),
        b'{"metadata": {"a": "\xff' + SECRET.encode() + b'"}}',
        b'{"metadata": {"a": NaN}}',
        b'{"metadata": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
    ],
    ids=["empty", "cut", "secret", "no json", "bad utf-8", "NaN", "nested"],
)
async def test_a_malformed_body_is_422(http: httpx.AsyncClient, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    problem(await http.post("/api/threads", content=content, headers=headers), 422)


async def test_a_body_over_the_limit_is_413(http: httpx.AsyncClient) -> None:
    body = {"metadata": {"a": "x" * BODY_LIMIT}}
    problem(await http.post("/api/threads", json=body), 413)
    chunks = (b'{"metadata": {"a": "', *[b"x" * 1_000] * 80, b'"}}')

    async def unannounced() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    headers = {"Content-Type": "application/json"}
    problem(await http.post("/api/threads", content=unannounced(), headers=headers), 413)


async def test_addresses_and_methods_that_do_not_exist(http: httpx.AsyncClient) -> None:
    problem(await http.get(f"/{SECRET}"), 404)
    problem(await http.get("/schema/nothing.html"), 404)
    answer = await http.put("/api/threads")
    problem(answer, 405)
    assert "POST" in answer.headers["allow"]


async def test_an_internal_error_is_named_in_the_log_and_not_in_the_answer(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    document = problem(await http.post("/failing"), 500)
    assert "internal detail" not in str(document)
    record = next(one for one in caplog.records if document["instance"] in one.getMessage())
    assert record.exc_info is not None
    assert "an internal detail" in str(record.exc_info[1])


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (NotFound("no such thread"), 404, "not-found"),
        (Conflict("it is so"), 409, "conflict"),
        (ThreadBusy("the thread has an active run"), 409, "thread-busy"),
        (AmbiguousName("job", ["a", "b"]), 409, "ambiguous-name"),
        (AdmissionRejected("metadata.auth_token is refused"), 422, "run-refused"),
        (InvalidUpdate("it does not fit"), 422, "invalid-update"),
        (LaunchRefused("server 'x': no"), 422, "launch-refused"),
        (AuthenticationFailed("no such key"), 401, "unauthorized"),
        (CredentialDenied("no credential for this user"), 403, "credential-denied"),
        (ConfigError("wrong", where="moorage.toml"), 400, "invalid-configuration"),
        (StoreUnavailable("no store"), 503, "store-unavailable"),
        (ServerUnavailable("refused", server="jobs"), 502, "server-unavailable"),
        (NotSupported("it takes no answers"), 501, "not-supported"),
        (TransientDriverError("try again"), 502, "driver-error"),
        (PluginError("it raised", plugin="x"), 500, "plugin-error"),
        (MoorageError("unforeseen"), 500, "internal-error"),
        (RuntimeError("unforeseen"), 500, "internal-error"),
        (TimeoutError(), 504, "timeout"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_domain_error_has_its_status(error: Exception, status: int, kind: str) -> None:
    document, _ = describe(error)
    assert (document.status, document.type) == (status, f"urn:moorage:problem:{kind}")
    if status not in (500, 504):
        assert document.detail == str(error)


async def test_a_client_that_leaves_in_the_middle_of_its_request_is_no_fault(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    url = http.base_url
    _, writer = await asyncio.open_connection(url.host, url.port)
    head = "POST /api/threads HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n"
    writer.write(f"{head}X-Api-Key: {KEY['X-Api-Key']}\r\n\r\n{{".encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()

    async def counted() -> bool:
        return 'path="/api/threads",status_code="400"' in (await http.get("/metrics")).text

    await until(counted)
    assert "request failed" not in caplog.text
