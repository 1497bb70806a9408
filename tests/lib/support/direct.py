"""Tool calls through a real gateway process: the ``direct`` assistant over HTTP, as some user."""

import json
import os
import subprocess
import sys
from typing import Any

import httpx

from moorage.testing.process import GatewayProcess


def issue_key(gateway: GatewayProcess, user: str) -> str:
    """A key of this user's, made by the command line."""
    made = subprocess.run(
        [sys.executable, "-m", "moorage", "keys", "create", f"key-{user}", "--user", user, "--json"],
        env={**os.environ, "MOORAGE_HOME": str(gateway.home)},
        cwd=gateway.home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["key"])


class Client:
    """One user of the gateway."""

    def __init__(self, gateway: GatewayProcess, key: str | None = None) -> None:
        self.http = httpx.AsyncClient(
            base_url=gateway.url, headers={"X-Api-Key": key or gateway.admin_key}, timeout=60
        )

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def thread(self) -> str:
        """A new thread's id."""
        return str((await self.http.post("/api/threads", json={})).raise_for_status().json()["thread_id"])

    async def run(self, thread: str, text: str, assistant: str = "direct") -> dict[str, Any]:
        """The final values of a run with one user message."""
        body = {"assistant_id": assistant, "input": {"messages": [{"role": "user", "content": text}]}}
        answer = await self.http.post(f"/api/threads/{thread}/runs/wait", json=body)
        values: dict[str, Any] = answer.raise_for_status().json()
        assert "__error__" not in values, values
        return values

    async def calls(self, thread: str, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """The tool messages of these calls, made in one run."""
        stated = [{"name": name, "args": arguments} for name, arguments in calls]
        values = await self.run(thread, json.dumps({"tool_calls": stated}))
        found: list[dict[str, Any]] = [m for m in values["messages"] if m["type"] == "tool"][-len(calls) :]
        assert [message["name"] for message in found] == [name for name, _ in calls]
        return found

    async def call(self, thread: str, name: str, /, **arguments: Any) -> str:
        """The text of one call's answer; the call must have succeeded."""
        (message,) = await self.calls(thread, (name, arguments))
        assert message["status"] == "success", message
        return str(message["content"][0]["text"])
