"""Two gateways on one extensions config (ADMIN-4, CONF-4)."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from support.mcp_servers import http_server

from moorage.testing.process import GatewayProcess


@pytest.mark.req("ADMIN-4", "CONF-4", "TOOL-7")
def test_a_change_through_one_is_in_force_at_the_other_at_its_next_use(tmp_path: Path) -> None:
    with http_server("recorder") as url:
        servers: dict[str, Any] = {"one": {"url": f"{url}/mcp"}}
        with GatewayProcess(tmp_path / "a", config={"mcpServers": servers}) as first:
            shared = {"MOORAGE_EXTENSIONS_CONFIG_PATH": str(first.config_path)}
            with (
                GatewayProcess(tmp_path / "b", environment=shared) as second,
                httpx.Client(base_url=first.url, headers=first.headers, timeout=30) as a,
                httpx.Client(base_url=second.url, headers=second.headers, timeout=30) as b,
            ):

                def tools(http: httpx.Client) -> set[str]:
                    return {tool["server"] for tool in http.get("/api/mcp/tools").json()["items"]}

                assert tools(a) == tools(b) == {"one"}
                etag = b.get("/api/mcp/config").headers["ETag"]
                servers["two"] = {"url": f"{url}/mcp"}
                body = {"mcpServers": servers}
                assert a.put("/api/mcp/config", json=body).json()["added"] == ["two"]
                assert tools(b) == {"one", "two"}
                stale = b.put("/api/mcp/config", json=body, headers={"If-Match": etag})
                assert stale.status_code == 412
                switched = b.patch("/api/mcp/config", json={"server": "one", "enabled": False})
                assert switched.json()["written"] is True
                assert tools(a) == {"two"}
