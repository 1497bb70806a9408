"""A different secret in every place that can hold one, every route, every failure: no hit (CRED-9, C37)."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse
from support.canaries import PLACES, Canaries, files_below, spellings
from support.dumping import dump
from support.mcp_servers import SERVERS, http_server
from support.routes import operations, text_of
from support.token_server import token_server

from moorage.testing.process import GatewayProcess

TRACING = """
import logging
from contextlib import asynccontextmanager
from pathlib import Path
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from moorage.contract import LifecycleSpec, hookimpl

logging.getLogger().setLevel(logging.DEBUG)
for noisy in ("httpx", "httpcore", "mcp", "asyncio"):
    logging.getLogger(noisy).setLevel(logging.DEBUG)
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=open("SPANS", "a", buffering=1))))
trace.set_tracer_provider(provider)


@asynccontextmanager
async def nothing(context):
    yield


@hookimpl
def moorage_lifecycle():
    return (LifecycleSpec("tracing", 1, nothing),)
"""
FAILURES = ("ok", "status_401", "status_403", "status_500", "reset", "slow", "rpc_error")
TOOLSET = {"name": "job", **{f"{role}_tool": f"job_{role}" for role in ("submit", "status", "cancel")}}


def config(planted: Canaries, urls: dict[str, str], token_url: str) -> dict[str, Any]:
    def at(url: str) -> str:
        named = url.replace("http://", f"http://user:{planted['url-password']}@")
        return f"{named}/mcp?key={planted['url-query']}"

    confessing = str(SERVERS / "confessing.py")
    headers = {"X-Api-Key": planted["static-header"], "X-Other": "${PLACEHOLDER_CANARY}"}
    oauth = {
        "grant_type": "refresh_token",
        "token_url": token_url,
        "client_id": "me",
        "client_secret": planted["client-secret"],
        "refresh_token": planted["refresh-token"],
        "extra_token_params": {"resource_key": planted["extra-parameter"]},
    }
    return {
        "leaky": {
            "url": at(urls["leaky"]),
            "headers": headers,
            "tool_call_timeout": 1,
            "oauth": oauth,
            "user_auth": {"header": "X-User", "users": {"admin": planted["per-user"]}},
            "headers_from_context": {"headers": {"X-Tenant": "tenant"}, "on_missing": "passthrough"},
            "unknown": {"api_key": planted["unknown-key"]},
        },
        "closed": {"url": at(urls["closed"]), "headers": headers},
        "refused": {"url": at("http://127.0.0.1:9"), "headers": headers},
        "malformed": {"url": at(urls["leaky"]), "oauth": {**oauth, "client_id": "unlucky"}},
        "jobs": {"url": at(urls["jobs"]), "headers": headers, "task_toolsets": [TOOLSET]},
        "child": {
            "command": sys.executable,
            "args": [confessing, "--token", planted["child-argument"]],
            "env": {"MCP_API_KEY": planted["child-env"]},
        },
    }


class Driven:
    """A gateway with every canary planted, and all that came out of it."""

    def __init__(self, gateway: GatewayProcess, http: httpx.AsyncClient, planted: Canaries) -> None:
        self.gateway, self.http, self.planted = gateway, http, planted
        self.outputs: list[tuple[str, str | bytes]] = []

    async def ask(self, method: str, path: str, **sent: Any) -> Any:
        answer = await self.http.request(method, path, **sent)
        self.outputs.append((f"{method} {path}", answer.text + str(dict(answer.headers))))
        return answer

    async def run(self, *tools: str, end: str = "/wait", **more: Any) -> None:
        calls = [{"name": tool, "args": {}} for tool in tools]
        said = {"messages": [{"role": "user", "content": json.dumps({"tool_calls": calls})}]}
        context = {"secrets": {"tenant": self.planted["request"], "deep": {"er": [self.planted["nested"]]}}}
        modes = ["values", "updates", "messages-tuple", "debug", "events", "custom", "tasks", "checkpoints"]
        body = {"assistant_id": "direct", "input": said, "context": context, **more}
        if end == "/stream":
            body["stream_mode"] = modes
        await self.ask("POST", f"/api/threads/t/runs{end}", json=body)


@asynccontextmanager
async def driven(tmp_path: Path, store_url: str) -> AsyncIterator[Driven]:
    planted = Canaries()
    home = tmp_path / "home"
    plugins = tmp_path / "plugins"
    for folder in (home, plugins):
        folder.mkdir()
    (plugins / "tracing.py").write_text(TRACING.replace("SPANS", str(tmp_path / "spans.txt")))
    (home / "moorage.toml").write_text(
        f'[plugins.webhook]\nurl = "http://127.0.0.1:9/hook"\nsecret = "{planted["webhook-key"]}"\n'
        "[tasks]\npoll_interval_seconds = 0.2\nbackoff_cap_seconds = 0.5\n"
    )
    environment = {
        "MOORAGE_PLUGINS_DIR": str(plugins),
        "MOORAGE_ADMIN_KEY": planted["admin-key"],
        "PLACEHOLDER_CANARY": planted["placeholder"],
        "MOORAGE_OAUTH_KEY": base64.urlsafe_b64encode(b"k" * 32).decode(),
    }
    if store_url.startswith("postgresql"):
        scheme, _, rest = store_url.partition("://")
        user, at, where = rest.partition("@")
        name = user.partition(":")[0] if at else "postgres"
        environment["MOORAGE_DATABASE_URL"] = (
            f"{scheme}://{name}:{planted['database-password']}@{where if at else rest}"
        )
    with (
        http_server("leaky") as leaky,
        http_server("leaky", "closed") as closed,
        http_server("recorder") as jobs,
        token_server() as tokens,
    ):

        def issue(form: dict[str, str]) -> Any:
            if form["client_id"] == "unlucky":
                return JSONResponse({"access_token": 7, "sent": form}, 400)
            return {
                "access_token": planted["issued-access"],
                "refresh_token": planted["issued-refresh"],
                "expires_in": 1,
            }

        tokens.answer = issue
        urls = {"leaky": leaky, "closed": closed, "jobs": jobs}
        servers = config(planted, urls, tokens.url)
        with GatewayProcess(home, config={"mcpServers": servers}, environment=environment) as gateway:
            headers = {"Authorization": f"Bearer {planted['admin-key']}"}
            async with httpx.AsyncClient(base_url=gateway.url, headers=headers, timeout=60) as http:
                yield Driven(gateway, http, planted)


async def drive(made: Driven) -> None:
    """Every failure, and every route with what is there."""
    planted = made.planted
    await made.ask("POST", "/api/threads", json={"thread_id": "t"})
    await made.ask("GET", "/api/mcp/servers?probe=true")
    await made.run("jobs_job_submit")
    for end in ("/wait", "/stream", ""):
        tools = [*(f"leaky_{tool}" for tool in FAILURES), "no_such_tool"]
        await made.run(*tools, end=end, multitask_strategy="enqueue")
    await made.run("leaky_ok", metadata={"auth_token": planted["metadata-key"]})
    entry: dict[str, Any] = {"url": "http://x.example/", "headers": {"Authorization": planted["submitted"]}}
    for wrong in (
        {"mcpServers": {"s": {**entry, "type": 7}}},
        {"mcpServers": {"s": {**entry, "headers": {"Authorization": [planted["submitted"]]}}}},
        {"mcpServers": {"s": {"command": "/bin/sh", "args": ["-c", planted["submitted"]]}}},
        {"mcpServers": planted["submitted"]},
    ):
        await made.ask("PUT", "/api/mcp/config", json=wrong)
    shown = (await made.ask("GET", "/api/mcp/config")).json()
    await made.ask("PUT", "/api/mcp/config", json=shown)
    await made.ask("POST", "/api/threads/t/runs", content='{"assistant_id": "' + planted["submitted"])
    runs = (await made.ask("GET", "/api/threads/t/runs")).json()
    run = runs[0]["run_id"]
    state = (await made.ask("GET", "/api/threads/t/state")).json()
    tasks = (await made.ask("GET", "/api/threads/t/mcp-tasks")).json()["items"]
    assert tasks, "a task is under way"
    checkpoint = state["checkpoint"]["checkpoint_id"]
    for one in await operations(made.http):
        if one.name in ("delete_thread", "cancel_runs"):
            continue
        task = tasks[0]["task_id"]
        ids = {"thread_id": "t", "run_id": run, "checkpoint_id": checkpoint, "task_id": task}
        path = one.at(**ids, assistant_id="direct")
        body: Any = {"json": {}} if one.has_body else {}
        text = await text_of(made.http, one.method, path, enough=lambda text: text.count("data:") > 3, **body)
        made.outputs.append((one.name, text))


@pytest.mark.req("CRED-9", "API-4", "RUN-1")
@pytest.mark.timeout(150)
async def test_no_secret_comes_out_anywhere(tmp_path: Path, store_url: str) -> None:
    async with driven(tmp_path, store_url) as made:
        async with asyncio.timeout(120):
            await drive(made)
        lite = f"sqlite:///{made.gateway.home}/moorage.sqlite"
        rows = dump(store_url if store_url.startswith("postgresql") else lite, made.gateway.home)
        assert "leaky_status_500" in rows, "the checkpoints are in it"
        made.outputs.append(("database", rows))
    log, spans = made.gateway.log(), (tmp_path / "spans.txt").read_text()
    made.outputs += [("log", log), ("spans", spans)]
    known = (made.gateway.config_path, made.gateway.home / "moorage.toml")
    made.outputs += files_below(made.gateway.home, but=known)
    assert "DEBUG" in log
    for name in ("mcp call", "mcp status", "task poll"):
        assert f'"name": "{name}"' in spans, "there are spans of calls and polls"
    assert any("refused" in str(content) for _, content in made.outputs), "the failures were met"
    assert made.planted.hits(made.outputs) == []


@pytest.mark.req("CRED-9")
def test_the_search_would_find_each_in_every_spelling() -> None:
    planted = Canaries()
    for place in PLACES:
        for spelling in spellings(planted[place]):
            (hit,) = planted.hits([("here", f"x{spelling}y"), ("there", "nothing")])
            assert hit.startswith(f"{place} in here")
        header = base64.b64encode(f"user:{planted[place]}".encode())
        assert planted.hits([("bytes", b"\0Authorization: Basic " + header)])
