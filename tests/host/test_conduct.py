"""What plugins' objects do wrong at run time shows in API and log, and the gateway serves on (PLUG-7)."""

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from support.plugin_dists import HOOK, SECTION
from support.rogue_plugins import ROGUES, install_rogues

from moorage.accounts import KEPT_FAILURES, Account
from moorage.testing.process import GatewayProcess

SECRET = "s3cret-of-the-caller"
DEADLINE_SECONDS = 40.0
LOCAL = """
def build():
    async def local(call, follow):
        return await follow(call)
    return local
"""


@dataclass(frozen=True)
class Conduct:
    """What a gateway told of its plugins: while it served, and in its log up to the end. ``status`` is its
    exit status, ``stop_seconds`` what the stop took."""

    plugins: dict[str, dict[str, Any]]
    log: str
    status: int
    stop_seconds: float


def _shown(client: httpx.Client) -> dict[str, dict[str, Any]]:
    answer = client.get("/api/plugins")
    assert answer.status_code == 200
    return {one["name"]: one for one in answer.json()["items"]}


@pytest.fixture(scope="module")
def conduct(tmp_path_factory: pytest.TempPathFactory) -> Conduct:
    folder = tmp_path_factory.mktemp("rogues")
    install_rogues(folder)
    config = {
        "mcpServers": {
            "idle": {"type": "http", "url": "http://127.0.0.1:9/mcp"},
            "checked": {"type": "http", "url": "http://127.0.0.1:9/mcp", "exit_section": {}},
        },
        "mcpInterceptors": "local_probe:build",
    }
    (folder / "home").mkdir()
    (folder / "home" / "local_probe.py").write_text(LOCAL)
    files = folder / "files"
    files.mkdir()
    (files / "single.py").write_text(HOOK + SECTION.format(name="single_section"))
    gateway = GatewayProcess(
        folder / "home",
        config=config,
        environment={"PYTHONPATH": str(folder), "MOORAGE_PLUGINS_DIR": str(files)},
    )
    with gateway, httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=30) as client:
        stranger = httpx.get(f"{gateway.url}/api/plugins", headers={"Authorization": f"Bearer {SECRET}"})
        assert stranger.status_code in (401, 500, 502, 503)
        leaving = {"Authorization": f"Bearer {SECRET}", "X-Exit": "yes"}
        assert httpx.get(f"{gateway.url}/api/plugins", headers=leaving).status_code in (401, 500, 502, 503)
        _bring_to_exit(client)
        thread = client.post("/api/threads", json={}).json()["thread_id"]
        runs = f"/api/threads/{thread}/runs"
        poked = client.post(runs, json={"assistant_id": "mute", "metadata": {"poke": True}})
        assert 400 <= poked.status_code < 500
        client.post(f"{runs}/wait", json={"assistant_id": "mute", "input": {"messages": []}})
        state = client.get(f"/api/threads/{thread}/state")
        assert state.status_code >= 500
        assert "rogue_assistant" in state.text
        until = time.monotonic() + DEADLINE_SECONDS
        while any(not shown["failures"] for name, shown in _shown(client).items() if name in ROGUES):
            if time.monotonic() > until:
                break
        plugins = _shown(client)
        began = time.monotonic()
        status = gateway.stop()
        seconds = time.monotonic() - began
    with contextlib.suppress(ProcessLookupError):
        os.kill(int((folder / "home" / "leaked.pid").read_text()), signal.SIGKILL)
    return Conduct(plugins, gateway.log(), status, seconds)


def _bring_to_exit(client: httpx.Client) -> None:
    """Ask for everything in which a plugin calls ``sys.exit``."""
    thread = client.post("/api/threads", json={}).json()["thread_id"]
    runs = f"/api/threads/{thread}/runs"
    refused = client.post(runs, json={"assistant_id": "gone", "metadata": {"exit": True}})
    assert 400 <= refused.status_code < 500
    ended = client.post(f"{runs}/wait", json={"assistant_id": "gone", "input": {"messages": []}})
    assert "SystemExit" in ended.text
    for answer in (
        client.get(f"/api/threads/{thread}/state"),
        client.post(f"/api/threads/{thread}/history", json={}),
        client.post(f"/api/threads/{thread}/state", json={"values": {}}),
    ):
        assert answer.status_code >= 500
        assert "exit_assistant" in answer.text


@pytest.mark.req("PLUG-4", "PLUG-7", "API-5")
@pytest.mark.parametrize("name", ROGUES)
def test_each_rogue_is_named_in_the_api_and_the_log(conduct: Conduct, name: str) -> None:
    shown = conduct.plugins[name]
    assert shown["state"] == "loaded"
    told = [failure["text"] for failure in shown["failures"]]
    assert any(all(word in text for word in ROGUES[name][1]) for text in told), told
    lines = conduct.log.splitlines()
    assert any(name in line and ROGUES[name][1][-1] in line for line in lines), "the log names it, too"


@pytest.mark.req("PLUG-7")
def test_an_assistant_that_cannot_read_its_threads_is_named(conduct: Conduct) -> None:
    told = [failure["text"] for failure in conduct.plugins["rogue_assistant"]["failures"]]
    assert any("failed with a thread's state: BufferError" in text for text in told), told


@pytest.mark.req("PLUG-7")
def test_what_a_plugin_leaves_behind_does_not_hold_up_the_end_and_is_named(conduct: Conduct) -> None:
    assert conduct.status == 0
    assert conduct.stop_seconds < 14
    for told in (
        "plugin 'leaker': left the task 'leaked' behind",
        "task 'leaked' of plugin 'leaker'",
        "thread 'leaked-thread' of plugin 'leaker'",
        "thread 'asyncio_",
    ):
        assert told in conduct.log


@pytest.mark.req("PLUG-4")
def test_a_fault_is_told_once_with_its_count(conduct: Conduct) -> None:
    (failure,) = conduct.plugins["rogue_interceptor"]["failures"]
    assert failure["count"] == 2
    assert failure["first_at"] < failure["at"]


@pytest.mark.req("PLUG-4")
def test_calls_and_time_are_counted(conduct: Conduct) -> None:
    hanging = conduct.plugins["rogue_interceptor"]
    assert hanging["calls"] == 2
    assert hanging["seconds_in_calls"] >= 0.2
    assert conduct.plugins["rogue_driver"]["calls"] >= 3, "two submits and a poll"
    assert conduct.plugins["rogue_build"]["calls"] == 0


@pytest.mark.req("PLUG-3", "PLUG-4")
def test_order_is_told_with_its_reason(conduct: Conduct) -> None:
    (mine,) = conduct.plugins["rogue_interceptor"]["contributions"]
    assert "by precedence 450, after" in mine["order"]
    (driver,) = conduct.plugins["rogue_driver"]["contributions"]
    assert driver["order"] is None


@pytest.mark.req("PLUG-9")
def test_local_code_shows_up_in_the_same_report(conduct: Conduct) -> None:
    """One string counts as a list of one; without a precedence of its own it runs after the built-in ones."""
    local = conduct.plugins["local_probe:build"]
    assert (local["state"], local["distribution"]) == ("loaded", "(mcpInterceptors)")
    (one,) = local["contributions"]
    standing, of = one["order"].split(" by ")[0].split(" of ")
    assert standing == of, "the last of them"
    single = conduct.plugins["single"]
    assert (single["state"], single["distribution"]) == ("loaded", "(file)")
    assert single["entry_point"].endswith("single.py")


@pytest.mark.req("CRED-9")
def test_a_failure_quotes_no_credentials(conduct: Conduct) -> None:
    assert SECRET not in json.dumps(conduct.plugins)


@pytest.mark.req("PLUG-7")
def test_one_that_fails_on_the_way_out_is_named_in_the_log(conduct: Conduct) -> None:
    assert any("rogue_lifecycle" in line and "no way out" in line for line in conduct.log.splitlines())


@pytest.mark.req("PLUG-4")
def test_an_account_is_bounded_and_keeps_each_fault_once() -> None:
    account = Account()
    for number in range(50):
        account.failed(f"task 0f8fad5bd9cb469fa165 took {number}.5 s")
    assert [(f.count, f.text[-6:]) for f in account.failures] == [(50, "49.5 s")]
    for letter in "abcdefghijklmnopqrstuvwxyz":
        account.failed(f"fault {letter}")
    account.failed("fault g")
    kept = account.failures
    assert len(kept) == KEPT_FAILURES
    assert (kept[-1].text, kept[-1].count) == ("fault g", 1 + ("g" in "ghijklmnopqrstuvwxyz"))
