"""The reference page lists exactly the routes there are, and who may call them."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar.testing import TestClient
from support.api_fakes import FakeGateway
from support.routes import METHODS

from moorage_api.app import create_app
from moorage_api.auth.middleware import PUBLIC, ROLE
from moorage_api.routes.absent import TAG as ABSENT
from moorage_api.settings import ApiSettings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "http-api.md"


def listed() -> dict[tuple[str, str], set[str]]:
    rows = re.findall(r"^\| `([A-Z]+) (/[^`]*)` \| ([^|]+) \|", PAGE.read_text(), flags=re.MULTILINE)
    return {(method, path): set(re.findall(r"`(\w+)`", who)) for method, path, who in rows}


@pytest.mark.req("API-1", "API-2")
def test_every_route_is_listed_with_the_role_that_it_wants() -> None:
    app = create_app(FakeGateway().open, ApiSettings())
    document = app.openapi_schema.to_schema()
    there = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item and item[method]["tags"] != [ABSENT]
    }
    assert there == set(listed())
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            for method in handler.http_methods & {one.upper() for one in METHODS}:
                if (roles := listed().get((method, route.path_format or "/"))) is not None:
                    assert roles == _allowed(handler.opt), (method, route.path_format)


def _allowed(opt: Any) -> set[str]:
    if opt.get(PUBLIC):
        return set()
    role = opt.get(ROLE, "user")
    return {role, "admin"} if role == "metrics" else {role}


@pytest.mark.req("API-1")
def test_the_document_has_examples() -> None:
    with TestClient(create_app(FakeGateway().open)) as client:
        answer: httpx.Response = client.get("/schema")
    schemas = answer.json()["components"]["schemas"]
    with_examples = {name for name, schema in schemas.items() if "'examples'" in str(schema)}
    assert {"RunCreate", "ThreadCreate", "TaskRow", "Problem"} <= with_examples
