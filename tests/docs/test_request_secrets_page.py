"""docs/how-to/request-secrets.md, executed: a real gateway, a real HTTP server, the page's own blocks."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.dumping import dump
from support.mcp_servers import http_server

from moorage.testing.process import GatewayProcess

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "request-secrets.md"
TOKEN, ACCOUNT = "the-token-of-this-user", "the-account-of-this-user"
LEGACY = "a-token-from-the-old-days"


def block(info: str) -> str:
    found = re.search(rf"^```{info}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"the page has no block {info!r}"
    return found[1]


def install_plugin(site: Path) -> None:
    """What installing a distribution with the page's plugin leaves in an environment."""
    information = site / "tickets-1.0.dist-info"
    information.mkdir(parents=True)
    (site / "tickets_plugin.py").write_text(block("python interceptor"))
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tickets\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[moorage.plugins]\ntickets = tickets_plugin\n")


def seen_by(url: str) -> dict[str, dict[str, str]]:
    """Headers of the requests that the server got, by method, the latest each."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "seen", "arguments": {}}}
    answer = httpx.post(url, json=asked).json()["result"]["structuredContent"]["seen"][:-1]
    return {one["method"]: {name.lower(): value for name, value in one["headers"]} for one in answer}


@pytest.mark.req("RUN-1", "RUN-2", "RUN-7", "CRED-5", "CRED-9")
def test_the_pages_request_config_and_interceptor_work_and_leave_no_secret(tmp_path: Path) -> None:
    install_plugin(tmp_path / "site")
    home = tmp_path / "home"
    request = json.loads(block("json request"))
    with http_server("echo_headers") as url:
        config: dict[str, Any] = json.loads(block("json config"))
        config["mcpServers"]["tickets"]["url"] = url
        environment = {"PYTHONPATH": str(tmp_path / "site")}
        with GatewayProcess(home, config=config, environment=environment) as gateway:
            with httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http:
                thread = http.post("/api/threads", json={}).json()["thread_id"]
                runs = f"/api/threads/{thread}/runs"
                answer = http.post(f"{runs}/wait", json=request)
                assert answer.status_code == 200, answer.text
                calls = [m for m in answer.json()["messages"] if m["type"] == "tool"]
                assert [m["status"] for m in calls] == ["success"], calls
                headers = seen_by(url)
                assert headers["tools/call"]["x-tickets-token"] == TOKEN
                assert headers["tools/call"]["x-tickets-account"] == ACCOUNT
                assert "x-tickets-token" not in headers["tools/list"]

                without = {key: value for key, value in request.items() if key != "config"}
                denied = http.post(f"{runs}/wait", json=without).json()["messages"][-2]
                assert denied["status"] == "error"
                assert "tickets_token" in str(denied["content"])

                before = http.get(runs).json()
                refused = http.post(runs, json={**request, "metadata": {"auth_token": LEGACY}})
                assert refused.status_code == 422
                assert "config.context.secrets" in refused.text
                assert LEGACY not in refused.text
                assert http.get(runs).json() == before

                paths = [runs, f"/api/threads/{thread}/state", f"/api/threads/{thread}/history"]
                paths += [f"{runs}/{run['run_id']}/events" for run in before]
                shown = [answer.text, *(http.get(path).text for path in paths)]
            log = gateway.log()
    kept = dump(f"sqlite:///{home / 'moorage.db'}", home)
    assert "tickets_touch" in kept
    for secret in (TOKEN, ACCOUNT, LEGACY):
        for text in (*shown, log, kept):
            assert secret not in text
    for file in home.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not any(secret.encode() in content for secret in (TOKEN, ACCOUNT, LEGACY)), file


@pytest.mark.req("RUN-7")
def test_the_page_tells_operators_what_hiding_does_not_do() -> None:
    text = " ".join(PAGE.read_text().split())
    for told in ("metadata.auth_token", "422", "Rotate", "Hiding deletes nothing", "backups", "logs"):
        assert told in text
