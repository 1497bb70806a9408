"""A body may say what it likes: a server gets the credential of whoever the API key belongs to (RUN-9)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.credential_gateway import header
from support.mcp_servers import http_server
from support.runs import until

from moorage.testing.process import GatewayProcess

CLAIMS = {
    "user": "bob",
    "user_id": "bob",
    "userId": "bob",
    "principal": {"user_id": "bob", "roles": ["admin"]},
    "owner": "bob",
    "roles": ["admin"],
    "is_internal": True,
    "background": True,
    "moorage_internal": True,
    "__principal": {"user_id": "bob"},
    "__pregel_runtime": {"context": {"user_id": "bob"}},
    "langgraph_auth_user": {"identity": "bob"},
    "langgraph_auth_user_id": "bob",
}
CALL = {"tool_calls": [{"name": "accounts_touch", "args": {}}]}
BODY: dict[str, Any] = {
    "assistant_id": "direct",
    "input": {
        "messages": [
            {
                "role": "user",
                "content": json.dumps(CALL),
                "name": "bob",
                "additional_kwargs": {"moorage_internal": True, **CLAIMS},
            }
        ],
        **CLAIMS,
    },
    "context": {**CLAIMS, "topic": "x"},
    "config": {"configurable": CLAIMS, "metadata": CLAIMS, **CLAIMS},
    "metadata": CLAIMS,
    **CLAIMS,
}


def key_of(gateway: GatewayProcess, user: str) -> dict[str, str]:
    """Headers with a fresh key, as ``moorage keys create`` prints it."""
    made = subprocess.run(
        [sys.executable, "-m", "moorage", "keys", "create", user, "--user", user, "--role", "user", "--json"],
        env={"MOORAGE_HOME": str(gateway.home), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return {"X-Api-Key": str(json.loads(made.stdout)["key"])}


@pytest.mark.req("RUN-9", "CRED-4")
async def test_claims_in_a_body_change_nothing_that_a_server_gets(tmp_path: Path) -> None:
    with http_server("recorder") as url:
        users = {"alice": "Bearer of-alice", "bob": "Bearer of-bob", "admin": "Bearer of-admin"}
        server = {"url": f"{url}/mcp", "user_auth": {"header": "Authorization", "users": users}}
        with GatewayProcess(tmp_path / "home", config={"mcpServers": {"accounts": server}}) as gateway:
            alice = key_of(gateway, "alice")
            async with httpx.AsyncClient(base_url=gateway.url, headers=alice, timeout=60) as http:
                thread = (await http.post("/api/threads", json={"metadata": CLAIMS})).json()["thread_id"]
                await http.patch(f"/api/threads/{thread}", json={"metadata": CLAIMS})
                for path in (f"/api/threads/{thread}/runs", "/api/runs"):
                    for end in ("/wait", "/stream", ""):
                        answer = await http.post(path + end, json={**BODY, "multitask_strategy": "enqueue"})
                        assert answer.status_code == 200, answer.text
                assert (await http.post("/api/runs/batch", json=[BODY])).status_code == 200
                calls: list[tuple[str, ...]] = []

                async def all_were_called() -> bool:
                    seen = (await http.get(f"{url}/seen")).json()
                    calls[:] = [tuple(header(one)) for one in seen if one["method"] == "tools/call"]
                    return len(calls) == 7

                await until(all_were_called, within=30)
    assert set(calls) == {("Bearer of-alice",)}
