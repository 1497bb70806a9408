"""Which credential a real server receives, for every combination of sources and every kind of request."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from support.credential_gateway import (
    TOOLSETS,
    CredentialGateway,
    Recorder,
    credential_gateway,
    header,
)
from support.mcp_servers import http_server
from support.token_server import token_server

from moorage.contract import SubmitCall, TaskAnswer, TaskBinding, TaskRef

pytestmark = pytest.mark.req("CRED-1", "CRED-2", "CRED-7")

# Lowest precedence first; each spells the header in its own way.
SOURCES = ("static", "oauth", "user_auth", "headers_from_context")
VALUES = {
    "static": "Bearer static",
    "oauth": "Bearer access-token-1",
    "user_auth": "Bearer of-alice",
    "headers_from_context": "Bearer of-this-run",
}
COMBINATIONS = [c for size in range(5) for c in itertools.combinations(SOURCES, size)]
OUTSIDE_RUNS = ("static", "oauth", "user_auth")
NOBODYS = ("static", "oauth")
COUNTS = {
    "initialize": SOURCES,
    "tools/list": NOBODYS,
    "touch": SOURCES,
    "job_submit": SOURCES,
    "job_status": OUTSIDE_RUNS,
    "job_respond": OUTSIDE_RUNS,
    "job_cancel": OUTSIDE_RUNS,
}


def entry(combination: tuple[str, ...], url: str, token_url: str) -> dict[str, Any]:
    blocks: dict[str, Any] = {
        "static": ("headers", {"authorization": VALUES["static"], "X-Plain": "1"}),
        "oauth": ("oauth", {"token_url": token_url, "client_id": "me", "client_secret": "${CLIENT_SECRET}"}),
        "user_auth": ("user_auth", {"header": "AUTHORIZATION", "users": {"alice": "$ALICE"}}),
        "headers_from_context": ("headers_from_context", {"headers": {"AuthoriZation": "tenant_token"}}),
    }
    return {"url": url, "task_toolsets": TOOLSETS, **dict(blocks[source] for source in combination)}


def name(combination: tuple[str, ...]) -> str:
    return "-".join(combination) or "nothing"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """All that the server received, by combination."""
    return asyncio.run(everything(tmp_path_factory.mktemp("home")))


async def everything(home: Path) -> dict[str, list[dict[str, Any]]]:
    with http_server("recorder") as url, token_server() as tokens:
        servers = {name(c): entry(c, f"{url}/{name(c)}", tokens.url) for c in COMBINATIONS}
        env = {"ALICE": VALUES["user_auth"], "CLIENT_SECRET": "s3cret-of-client"}
        async with credential_gateway(home, servers, env=env) as made:
            assert len(await made.source.tools(made.on_behalf())) == 2 * len(COMBINATIONS)
            for server in servers:
                await drive(made, server)
            assert len(tokens.forms) == 1
        records = await Recorder(url).records()
    return {server: [r for r in records if r["path"] == f"/{server}"] for server in servers}


async def drive(made: CredentialGateway, server: str) -> None:
    """An agent's call, and a durable task's whole life."""
    live = made.on_behalf(secrets={"tenant_token": VALUES["headers_from_context"], "other": "o"})
    outside = made.on_behalf(background=True)
    assert not (await made.call(server, secrets=live.secrets)).is_error
    (toolset,) = TOOLSETS
    data = {role: toolset[f"{role}_tool"] for role in ("submit", "status", "cancel", "respond")}
    claim = made.driver.claim(made.extensions.current().servers[server], list(data.values()))
    binding = claim.submit["job_submit"]
    assert isinstance(binding, TaskBinding)
    handle = await made.driver.submit(SubmitCall("task-1", server, binding, {}, live))
    ref = TaskRef("task-1", server, binding, handle.remote_id, outside)
    await made.driver.get_status(ref)
    await made.driver.respond(ref, TaskAnswer("answer-1", {"yes": True}))
    await made.driver.cancel(ref)


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("combination", COMBINATIONS, ids=name)
def test_exactly_one_header_with_the_right_value(
    seen: dict[str, list[dict[str, Any]]], combination: tuple[str, ...], kind: str
) -> None:
    records = [r for r in seen[name(combination)] if kind in (r["method"], r["tool"])]
    assert records
    expected = {winner(combination, kind)}
    if kind == "initialize":  # of discovery, of the run and of what happens outside it
        expected = {winner(combination, k) for k in ("tools/list", "touch", "job_status")}
    carried = [header(record) for record in records]
    assert all(len(values) <= 1 for values in carried)
    assert {values[0] if values else None for values in carried} == expected
    if combination[:1] == ("static",):
        assert all(header(record, "x-plain") == ["1"] for record in records)


def winner(combination: tuple[str, ...], kind: str) -> str | None:
    return next((VALUES[s] for s in reversed(COUNTS[kind]) if s in combination), None)


@pytest.mark.req("CRED-5", "CRED-9")
def test_no_request_carries_anything_else_of_ours(seen: dict[str, list[dict[str, Any]]]) -> None:
    for server, records in seen.items():
        for record in records:
            assert "?" not in record["path"]
            for value in VALUES.values():
                others = [v for k, v in record["headers"] if k.lower() != "authorization"]
                assert value not in str(others)
                if "headers_from_context" not in server:
                    assert VALUES["headers_from_context"] not in str(record)
                assert value not in str(record["arguments"])
