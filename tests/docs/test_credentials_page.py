"""The examples of docs/how-to/credentials.md, in a real gateway against real servers."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.credential_gateway import header
from support.mcp_servers import http_server
from support.token_server import token_server

from moorage.testing.process import GatewayProcess

PAGE = (Path(__file__).parents[2] / "docs/how-to/credentials.md").read_text()
SECRETS = {
    "SEARCH_KEY": "s3cret-search-key",
    "CRM_CLIENT_SECRET": "s3cret-crm-client",
    "MAIL_DISCOVERY_TOKEN": "s3cret-mail-discovery",
    "MAIL_TOKEN_ALICE": "s3cret-mail-alice",
    "MAIL_TOKEN_BOB": "",
    "SIGNING_KEY": "s3cret-signing-key",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@dataclass
class Example:
    gateway: GatewayProcess
    recorder: str
    forms: list[dict[str, str]]
    client: httpx.Client
    thread: str

    def wait(self, body: dict[str, Any]) -> httpx.Response:
        return self.client.post(f"/api/threads/{self.thread}/runs/wait", json=body)

    def call(self, tool: str, secrets: dict[str, Any] | None = None) -> httpx.Response:
        content = json.dumps({"tool_calls": [{"name": tool, "args": {}}]})
        return self.wait(
            {
                "assistant_id": "direct",
                "input": {"messages": [{"role": "user", "content": content}]},
                "config": {"context": {"secrets": secrets or {}}},
            }
        )

    def seen(self, server: str, kind: str = "touch") -> list[dict[str, Any]]:
        records = httpx.get(f"{self.recorder}/seen").json()
        return [r for r in records if r["path"] == f"/{server}" and kind in (r["tool"], r["method"])]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Example]:
    """All entries of the page in one gateway, as alice. Only the addresses are replaced."""
    home = tmp_path_factory.mktemp("home")
    with http_server("recorder") as url, token_server() as tokens:
        servers: dict[str, Any] = {}
        interceptors: list[str] = []
        for block in blocks("json"):
            config = json.loads(block)
            servers |= config["mcpServers"]
            interceptors += config.get("mcpInterceptors", [])
        for name, entry in servers.items():
            entry["url"] = f"{url}/{name}"
        servers["crm"]["oauth"]["token_url"] = tokens.url
        (home / "signing.py").write_text(blocks("python")[0])
        gateway = GatewayProcess(
            home, config={"mcpServers": servers, "mcpInterceptors": interceptors}, environment=SECRETS
        )
        with gateway:
            admin = httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=30)
            key = alices_key(gateway)
            client = httpx.Client(
                base_url=gateway.url, headers={"Authorization": f"Bearer {key}"}, timeout=30
            )
            with admin, client:
                thread = client.post("/api/threads", json={}).json()["thread_id"]
                yield Example(gateway, url, tokens.forms, client, thread)


def alices_key(gateway: GatewayProcess) -> str:
    import os
    import subprocess
    import sys

    made = subprocess.run(
        [sys.executable, "-m", "moorage", "keys", "create", "alices", "--user", "alice", "--json"],
        env={**os.environ, "MOORAGE_HOME": str(gateway.home)},
        cwd=gateway.home,
        capture_output=True,
        text=True,
        check=True,
    )
    return str(json.loads(made.stdout)["key"])


TENANT = {"tenant": "acme"}


@pytest.mark.req("CRED-1", "CRED-3", "RUN-7")
def test_fixed_keys_and_tokens(example: Example) -> None:
    assert "touch" in example.call("search_touch", TENANT).text
    assert "touch" in example.call("crm_touch", TENANT).text
    assert header(example.seen("search")[0], "x-api-key") == [SECRETS["SEARCH_KEY"]]
    assert header(example.seen("crm")[0]) == ["Bearer access-token-1"]
    assert header(example.seen("crm", "tools/list")[0]) == ["Bearer access-token-1"]
    assert [form["client_secret"] for form in example.forms] == [SECRETS["CRM_CLIENT_SECRET"]]


@pytest.mark.req("CRED-4", "RUN-7")
def test_a_key_for_each_user(example: Example) -> None:
    example.call("mail_touch", TENANT)
    assert header(example.seen("mail")[-1]) == [f"Bearer {SECRETS['MAIL_TOKEN_ALICE']}"]
    discovery = {header(r)[0] for r in example.seen("mail", "tools/list")}
    assert discovery == {f"Bearer {SECRETS['MAIL_DISCOVERY_TOKEN']}"}
    before = len(example.seen("mail"))
    admin = httpx.Client(base_url=example.gateway.url, headers=example.gateway.headers, timeout=30)
    with admin:
        thread = admin.post("/api/threads", json={}).json()["thread_id"]
        as_admin = Example(example.gateway, example.recorder, [], admin, thread)
        answer = as_admin.call("mail_touch", TENANT)
    assert "no value of header" in answer.text
    assert len(example.seen("mail")) == before


@pytest.mark.req("CRED-5", "RUN-1", "RUN-7")
def test_a_credential_of_the_run_and_a_signature(example: Example) -> None:
    (request,) = blocks("http")
    line, _, body = request.partition("\n")
    assert line == "POST /api/threads/{thread_id}/runs/wait"
    answer = example.wait(json.loads(body))
    assert answer.status_code == 200
    assert "token-of-this-run" not in answer.text
    record = example.seen("billing")[-1]
    assert header(record) == ["Bearer token-of-this-run"]
    assert header(record, "x-tenant") == ["acme"]
    assert len(header(record, "x-signature")[0]) == 64
    sent = len(example.seen("billing"))
    assert "billing_token" in example.call("billing_touch", TENANT).text
    assert "brought no tenant" in example.call("search_touch").text
    assert len(example.seen("billing")) == sent


@pytest.mark.req("RUN-2", "RUN-7")
def test_metadata_auth_token_is_refused(example: Example) -> None:
    body = {"assistant_id": "direct", "input": None, "metadata": {"auth_token": "s3cret-in-metadata"}}
    answer = example.wait(body)
    assert answer.status_code == 422
    assert "config.context.secrets" in answer.text
    assert "s3cret" not in answer.text


@pytest.mark.req("CRED-9")
def test_none_of_it_is_left_in_the_log_or_the_database(example: Example) -> None:
    secrets = {"billing_token": "Bearer s3cret-of-run", **TENANT, "nested": {"deep": "s3cret-nested"}}
    example.call("billing_touch", secrets)
    everything = b"".join(p.read_bytes() for p in example.gateway.home.rglob("*") if p.is_file())
    for value in [*SECRETS.values(), "s3cret", "access-token-1", "token-of-this-run"]:
        assert not value or value.encode() not in everything, value


@pytest.mark.req("PLUG-9")
def test_local_code_shows_up_in_the_report(example: Example) -> None:
    with httpx.Client(base_url=example.gateway.url, headers=example.gateway.headers) as admin:
        assert "signing:build" in admin.get("/api/plugins").text
