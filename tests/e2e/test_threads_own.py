"""What belongs to one thread, over a real gateway: a stateful server's state, and files (TOOL-4, API-5)."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil
import pytest
from support.direct import Client, issue_key
from support.mcp_servers import SERVERS, until

from moorage.testing.process import GatewayProcess

VIRTUAL = "/mnt/user-data/workspace"
HUGE_BYTES = 400_000_000


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    servers = {
        name: {"type": "stdio", "command": sys.executable, "args": [str(SERVERS / f"{script}.py")]}
        for name, script in (("browser", "browser"), ("files", "hostile"))
    }
    home = tmp_path_factory.mktemp("gateway") / "home"
    with GatewayProcess(home, config={"mcpServers": servers}) as process:
        yield process


@pytest.fixture(scope="module")
def bobs_key(gateway: GatewayProcess) -> str:
    return issue_key(gateway, "bob")


def workspace(gateway: GatewayProcess, thread: str) -> Path:
    """The one of this thread, whoever owns it."""
    (found,) = gateway.home.glob(f"users/*/threads/{thread}/user-data/workspace")
    return found


async def browser(client: Client, thread: str, tool: str = "state", /, **arguments: Any) -> Any:
    return json.loads(await client.call(thread, f"browser_{tool}", **arguments))


@pytest.mark.req("TOOL-4", "STDIO-6")
async def test_state_lasts_for_one_thread_and_nobody_else_sees_it(
    gateway: GatewayProcess, bobs_key: str
) -> None:
    async with Client(gateway) as alice, Client(gateway, bobs_key) as bob:
        first, second, bobs = await alice.thread(), await alice.thread(), await bob.thread()
        await browser(alice, first, "open", url="https://shop.example/basket")
        await browser(alice, first, "log_in", name="alice")
        await alice.calls(first, ("browser_open", {"url": "https://shop.example/pay"}), ("browser_back", {}))
        kept = await browser(alice, first)
        assert kept["history"] == ["https://shop.example/basket"]
        assert kept["cookies"] == {"session": "alice"}
        others = [await browser(alice, second), await browser(bob, bobs)]
        assert [(other["history"], other["cookies"]) for other in others] == [([], {})] * 2
        assert len({kept["pid"], *(other["pid"] for other in others)}) == 3
        calls = [browser(alice, second, "open", url="u:2"), browser(bob, bobs, "open", url="u:3")]
        await asyncio.gather(*calls)
        assert (await browser(alice, first)) == kept
        assert (await browser(alice, second))["history"] == ["u:2"]
        assert (await browser(bob, bobs))["history"] == ["u:3"]
        # A body's word changes nothing: it is the thread and the key that count.
        told = {"configurable": {"thread_id": first, "user_id": "admin"}, "context": {"user_id": "admin"}}
        calls_text = json.dumps({"tool_calls": [{"name": "browser_state", "args": {}}]})
        body = {
            "assistant_id": "direct",
            "input": {"messages": [{"role": "user", "content": calls_text}]},
            "config": told,
        }
        forged = await bob.http.post(f"/api/threads/{bobs}/runs/wait", json=body)
        assert "shop.example" not in forged.text
        assert (await bob.http.post(f"/api/threads/{first}/runs/wait", json=body)).status_code == 404
        # The thread's end is the browser's, too.
        (await alice.http.delete(f"/api/threads/{first}")).raise_for_status()
        await until(lambda: not psutil.pid_exists(kept["pid"]), "the deleted thread's browser is gone")
        assert psutil.pid_exists(others[0]["pid"])


@pytest.mark.req("STDIO-3", "TOOL-4")
async def test_a_browser_that_crashed_is_started_anew_and_empty(
    gateway: GatewayProcess, bobs_key: str
) -> None:
    async with Client(gateway) as alice, Client(gateway, bobs_key) as bob:
        thread, bobs = await alice.thread(), await bob.thread()
        await browser(alice, thread, "log_in", name="alice")
        await browser(bob, bobs, "log_in", name="bob")
        crashed, after = await alice.calls(thread, ("browser_crash", {}), ("browser_state", {}))
        assert crashed["status"] == "error"
        assert "Connection closed" in str(crashed["content"])
        assert json.loads(after["content"][0]["text"])["cookies"] == {}
        assert (await browser(bob, bobs))["cookies"] == {"session": "bob"}


@pytest.mark.req("API-5", "STDIO-4", "STDIO-2", "API-2")
async def test_what_a_tool_returned_can_be_fetched_by_its_owner_only(
    gateway: GatewayProcess, bobs_key: str
) -> None:
    async with Client(gateway) as alice, Client(gateway, bobs_key) as bob:
        thread, bobs = await alice.thread(), await bob.thread()
        page = "<script>alert(1)</script>"
        shot, written = await alice.calls(
            thread,
            ("browser_screenshot", {}),
            ("files_write", {"paths": ["out/ré port.html", ".git/x"], "say": "Wrote out/ré port.html"}),
        )
        path = shot["content"][0]["text"].removeprefix("screenshot: ")
        assert path.startswith(f"{VIRTUAL}/.mcp/tmp/shot-")
        answer = await alice.http.get(f"/api/threads/{thread}/files{path}")
        assert answer.status_code == 200
        assert answer.json()["history"] == []
        assert answer.headers["content-type"] == "image/png"
        (workspace(gateway, thread) / "out" / "ré port.html").write_text(page)
        for named in (f"{VIRTUAL}/out/ré port.html", "/workspace/out/ré port.html"):
            answer = await alice.http.get(f"/api/threads/{thread}/files{quote(named)}")
            assert answer.text == page
            assert answer.headers["content-disposition"].startswith("attachment;")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "sandbox" in answer.headers["content-security-policy"]
        assert written["status"] == "success"
        for client, of in ((bob, thread), (bob, bobs), (alice, bobs)):
            refused = await client.http.get(f"/api/threads/{of}/files{path}")
            assert refused.status_code == 404
            assert refused.headers["content-type"] == "application/problem+json"

        changed: list[Any] = []
        async with asyncio.timeout(15):
            while not changed:
                run = (await alice.http.get(f"/api/threads/{thread}/runs")).json()[0]["run_id"]
                events = await alice.http.get(
                    f"/api/threads/{thread}/runs/{run}/events?event_types=workspace.changed"
                )
                changed = events.json()
                await asyncio.sleep(0.05)
        assert changed[0]["metadata"] == {"count": 1}
        assert "out/ré port.html" in json.dumps(changed[0], ensure_ascii=False)
        assert ".git" not in json.dumps(changed)
        assert ".mcp" not in json.dumps(changed)


@pytest.mark.req("API-5")
async def test_no_address_leads_out_of_the_threads_tree(gateway: GatewayProcess) -> None:
    async with Client(gateway) as alice:
        thread, other = await alice.thread(), await alice.thread()
        for one in (thread, other):
            await alice.calls(one, ("files_write", {"paths": ["in.txt"], "say": ""}))
        folder = workspace(gateway, thread)
        (folder / "out").symlink_to(gateway.home)
        (folder / "config.json").symlink_to(gateway.config_path)
        (folder / "sibling").symlink_to(workspace(gateway, other))
        (folder / "link.txt").symlink_to("in.txt")
        base = f"/api/threads/{thread}/files"
        inside = await alice.http.get(f"{base}/workspace/link.txt")
        assert inside.text == "content"
        tries = [
            "workspace/config.json", "workspace/out/extensions_config.json", "workspace/sibling/in.txt",
            f"workspace/%2e%2e/%2e%2e/%2e%2e/{other}/user-data/workspace/in.txt", "..%2f..%2f..%2fx",
            "%2fetc%2fpasswd", "/etc/passwd", "workspace", "workspace/", "", "workspace/in.txt%00", "%ff",
            "workspace/" + "x" * 3_000, "mnt/user-database/in.txt", "mnt/user-data",
        ]  # fmt: skip
        for tried in tries:
            # As it stands: a client library would tidy the path first.
            url = httpx.URL(gateway.url).copy_with(raw_path=f"{base}/{tried}".encode())
            answer = await alice.http.get(url)
            assert answer.status_code == 404, (tried, answer.status_code, answer.text[:200])
            assert "mcpServers" not in answer.text


@pytest.mark.req("API-5")
async def test_a_huge_file_is_streamed(gateway: GatewayProcess) -> None:
    async with Client(gateway) as alice:
        thread = await alice.thread()
        await alice.calls(thread, ("files_write", {"paths": ["in.txt"], "say": ""}))
        with (workspace(gateway, thread) / "huge.bin").open("wb") as file:
            file.truncate(HUGE_BYTES)
        process = psutil.Process(gateway.pid)
        before, most, got = process.memory_info().rss, 0, 0
        address = f"/api/threads/{thread}/files/workspace/huge.bin"
        async with alice.http.stream("GET", address) as answer:
            assert int(answer.headers["content-length"]) == HUGE_BYTES
            async for chunk in answer.aiter_raw():
                if got // 50_000_000 != (got + len(chunk)) // 50_000_000:
                    most = max(most, process.memory_info().rss)
                got += len(chunk)
        assert got == HUGE_BYTES
        assert most - before < HUGE_BYTES / 4
        open_before = process.num_fds()
        for _ in range(5):
            async with alice.http.stream("GET", address) as answer:
                await anext(answer.aiter_raw())
        await until(lambda: process.num_fds() <= open_before, "files of readers that went are closed")
        assert not [file for file in process.open_files() if file.path.endswith("huge.bin")]
