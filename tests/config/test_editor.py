"""Changes of the file (CONF-5, ADMIN-2 to ADMIN-7; C13, C22)."""

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.extensions import Extensions

from moorage.config import (
    PATH_VARIABLE,
    ConfigEditor,
    ConfigPlan,
    ConfigRejected,
    ConfigWriteFailed,
    PreconditionFailed,
    UnreadableConfig,
)
from moorage.config.locks import file_lock
from moorage.contract import LaunchRefused, NotFound

SERVERS: dict[str, Any] = {
    "local": {
        "command": "npx",
        "args": ["-y", "srv", "--api-key", "$MCP_TOKEN"],
        "env": {"K": "$K", "L": "lit"},
    },
    "remote": {
        "type": "http",
        "url": "https://u:${PW}@h/mcp?key=${Q}",
        "headers": {"Authorization": "Bearer ${T}"},
        "unknown": {"kept": True},
    },
    "operator": {"command": "/opt/own/tool", "args": ["-c", "anything"], "enabled": False},
}
ENV = {"MCP_TOKEN": "planted-1", "K": "planted-2", "PW": "planted-3", "Q": "planted-4", "T": "planted-5"}


class Gateway(Extensions):
    def __init__(self, folder: Path, env: dict[str, str] | None = None, **options: Any) -> None:
        super().__init__(folder, dict(ENV) if env is None else env, **options)
        self.editor = ConfigEditor(self.file, lock_timeout_seconds=5)


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    gateway = Gateway(tmp_path)
    gateway.write(SERVERS, mcpInterceptors=["m:b"], custom=1)
    return gateway


async def body_of(gateway: Gateway) -> Any:
    return json.loads(json.dumps((await gateway.editor.view()).config))


@pytest.mark.req("ADMIN-1", "ADMIN-2", "CONF-3")
async def test_get_then_put_leaves_the_file_as_it_was_and_shows_no_value(gateway: Gateway) -> None:
    data = gateway.path.read_bytes()
    body = await body_of(gateway)
    assert "planted" not in json.dumps(body)
    assert body["mcpServers"]["local"]["args"][3] == "$MCP_TOKEN"
    change = await gateway.editor.replace(body)
    assert not change.written
    assert not change.plan.changes_anything
    assert gateway.path.read_bytes() == data


@pytest.mark.req("ADMIN-2", "ADMIN-4", "CONF-1", "CONF-3")
async def test_a_change_is_in_force_here_and_in_another_process_and_keeps_the_rest(gateway: Gateway) -> None:
    other = Gateway(gateway.path.parent)
    other.file.current()
    body = await body_of(gateway)
    body["mcpServers"]["remote"]["tool_call_timeout"] = 7
    change = await gateway.editor.replace(body)
    assert change.written
    assert change.plan.changed == {"remote": ("tool_call_timeout",)}
    assert change.snapshot.servers["remote"].tool_call_timeout_seconds == 7
    assert other.file.current().servers["remote"].tool_call_timeout_seconds == 7
    assert gateway.raw() == {
        "mcpServers": {**SERVERS, "remote": {**SERVERS["remote"], "tool_call_timeout": 7}},
        "mcpInterceptors": ["m:b"],
        "custom": 1,
    }


@pytest.mark.req("ADMIN-2")
async def test_what_is_unknown_inside_servers_and_the_indentation_survive(gateway: Gateway) -> None:
    gateway.path.write_text(json.dumps({"mcpServers": SERVERS, "ä": "\ud800"}, indent="\t"))
    await gateway.editor.set_enabled("local", False)
    assert gateway.raw() == {
        "mcpServers": {**SERVERS, "local": {**SERVERS["local"], "enabled": False}},
        "ä": "\ud800",
    }
    assert '\n\t"mcpServers": {\n\t\t"local"' in gateway.path.read_text()


@pytest.mark.req("CONF-2", "CONF-5")
async def test_a_first_write_goes_where_the_search_finds_it(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    assert (await gateway.editor.view()).config == {"mcpServers": {}}
    await gateway.editor.replace({"mcpServers": {"s": {"command": "npx", "args": ["a"]}}})
    assert set(gateway.file.current().servers) == {"s"}
    assert gateway.path.stat().st_mode & 0o777 == 0o600
    named = Gateway(tmp_path, {PATH_VARIABLE: str(tmp_path / "gone.json")})
    with pytest.raises(FileNotFoundError):
        await named.editor.view()
    with pytest.raises(FileNotFoundError):
        await named.editor.replace({"mcpServers": {}})
    assert not (tmp_path / "gone.json").exists()


@pytest.mark.req("CONF-8", "ADMIN-2")
@pytest.mark.parametrize("key", ["session_init_timeout", "tool_call_timeout"])
@pytest.mark.parametrize("value", [0, -1, "inf", "nan", float("inf"), float("nan"), True, "5"])
async def test_bad_timeouts_are_refused_and_nothing_is_written(
    gateway: Gateway, key: str, value: Any
) -> None:
    data = gateway.path.read_bytes()
    body = await body_of(gateway)
    body["mcpServers"]["remote"][key] = value
    with pytest.raises(ConfigRejected, match=rf"mcpServers\.remote\.{key}: must be a positive"):
        await gateway.editor.replace(body)
    assert gateway.path.read_bytes() == data


@pytest.mark.req("CONF-8")
@pytest.mark.parametrize(("sent", "seconds"), [({}, 60.0), ({"session_init_timeout": None}, None)])
async def test_null_and_absent_mean_the_same_on_both_routes(
    tmp_path: Path, sent: dict[str, Any], seconds: float | None
) -> None:
    gateway = Gateway(tmp_path)
    entry = {"command": "npx", "args": ["a"], **sent}
    change = await gateway.editor.replace({"mcpServers": {"s": entry}})
    assert change.snapshot.servers["s"].session_init_timeout_seconds == seconds
    gateway.write({"s": entry, "from file": entry})
    assert gateway.file.current().servers["from file"].session_init_timeout_seconds == seconds


@pytest.mark.req("CONF-7", "ADMIN-3")
async def test_a_bad_value_of_an_older_release_can_be_seen_and_repaired(gateway: Gateway) -> None:
    gateway.path.write_text(
        '{"mcpServers": {"old": {"command": "npx", "args": ["a"], "tool_call_timeout": 0},'
        ' "nan": {"command": "npx", "args": ["a"], "tool_call_timeout": NaN}, "null": null,'
        ' "good": {"command": "npx", "args": ["a"]}}}'
    )
    body = await body_of(gateway)
    assert body["mcpServers"]["old"]["tool_call_timeout"] == 0
    assert not (await gateway.editor.replace(body)).written
    await gateway.editor.set_enabled("good", False)
    assert not gateway.file.current().servers["good"].enabled
    await gateway.editor.set_enabled("old", False)
    await gateway.editor.set_enabled("null", False)  # nothing to disable, and no error
    assert gateway.raw()["mcpServers"]["old"]["enabled"] is False
    with pytest.raises(ConfigRejected, match="tool_call_timeout"):
        await gateway.editor.set_enabled("old", True)
    with pytest.raises(ConfigRejected, match="null"):
        await gateway.editor.set_enabled("null", True)
    body = await body_of(gateway)
    body["mcpServers"]["old"] |= {"tool_call_timeout": 5, "enabled": True}
    change = await gateway.editor.replace(body)
    assert change.snapshot.servers["old"].tool_call_timeout_seconds == 5
    assert set(change.snapshot.refused) == {"nan", "null"}


@pytest.mark.req("ADMIN-3")
async def test_patch_changes_one_key_only(gateway: Gateway) -> None:
    change = await gateway.editor.set_enabled("operator", True)
    assert change.plan.changed == {"operator": ("enabled",)}
    assert [request.server for request in change.plan.launches] == ["operator"]
    servers = {**SERVERS, "operator": {**SERVERS["operator"], "enabled": True}}
    assert gateway.raw()["mcpServers"] == servers
    change = await gateway.editor.set_enabled("operator", False)
    assert change.plan.launches == ()
    data = gateway.path.read_bytes()
    assert not (await gateway.editor.set_enabled("operator", False)).written
    assert gateway.path.read_bytes() == data
    with pytest.raises(NotFound, match="'nobody'"):
        await gateway.editor.set_enabled("nobody", True)


@pytest.mark.req("ADMIN-3", "CONF-1")
async def test_enabling_a_server_that_another_client_has_disabled(gateway: Gateway) -> None:
    gateway.write({"s": {"command": "x", "disabled": True}})
    change = await gateway.editor.set_enabled("s", True)
    assert change.snapshot.servers["s"].enabled
    assert gateway.raw()["mcpServers"]["s"] == {"command": "x", "disabled": True, "enabled": True}


@pytest.mark.req("LAUNCH-1")
async def test_which_launches_must_be_judged(gateway: Gateway) -> None:
    async def launches(change: dict[str, Any]) -> list[str]:
        body = await body_of(gateway)
        for name, entry in change.items():
            body["mcpServers"].setdefault(name, {}).update(entry)
        result = await gateway.editor.replace(body, dry_run=True)
        return [request.server for request in result.plan.launches]

    assert await launches({}) == []
    assert await launches({"local": {"tool_call_timeout": 5}, "remote": {"headers": {}}}) == []
    assert await launches({"operator": {"args": ["-c", "other"]}}) == ["operator"]
    assert await launches({"operator": {"enabled": True}}) == ["operator"]
    assert await launches({"local": {"enabled": False}}) == []
    assert await launches({"remote": {"type": "sse"}}) == ["remote"]
    assert await launches({"new": {"command": "npx", "args": ["x"], "env": {"A": "$B"}, "cwd": "/"}}) == [
        "new"
    ]
    body = await body_of(gateway)
    body["mcpServers"]["new"] = {"command": "npx", "args": ["$B"], "env": {"A": "$B"}, "cwd": "/"}
    (request,) = (await gateway.editor.replace(body, dry_run=True)).plan.launches
    assert (request.args, request.env, request.cwd) == (("$B",), {"A": "$B"}, "/")  # as written
    assert "B" not in repr(request)


@pytest.mark.req("LAUNCH-1", "ADMIN-5")
async def test_a_refusal_comes_before_anything_is_written(gateway: Gateway) -> None:
    data = gateway.path.read_bytes()

    def refuse(plan: ConfigPlan) -> None:
        assert gateway.path.read_bytes() == data
        raise LaunchRefused(plan.launches[0].server)

    body = await body_of(gateway)
    body["mcpServers"]["new"] = {"command": "npx", "args": ["x"]}
    for dry_run in (True, False):
        with pytest.raises(LaunchRefused, match="new"):
            await gateway.editor.replace(body, approve=refuse, dry_run=dry_run)
    assert gateway.path.read_bytes() == data
    assert (await gateway.editor.replace(body)).written  # no lock is left behind


@pytest.mark.req("ADMIN-6")
async def test_etags(gateway: Gateway) -> None:
    first = await gateway.editor.view()
    assert (await Gateway(gateway.path.parent).editor.view()).etag == first.etag
    change = await gateway.editor.set_enabled("local", False, if_match=first.etag)
    second = await gateway.editor.view()
    assert change.etag == second.etag != first.etag
    data = gateway.path.read_bytes()
    with pytest.raises(PreconditionFailed):
        await gateway.editor.set_enabled("local", True, if_match=first.etag)
    with pytest.raises(PreconditionFailed):
        await gateway.editor.replace({"mcpServers": {}}, if_match=f"W/{second.etag}")
    assert gateway.path.read_bytes() == data
    await gateway.editor.set_enabled("local", True, if_match=f'"other", {second.etag}')
    await gateway.editor.set_enabled("local", False, if_match="*")


@pytest.mark.req("ADMIN-6")
async def test_a_dry_run_tells_what_would_change(gateway: Gateway) -> None:
    data = gateway.path.read_bytes()
    before = await gateway.editor.view()
    body = await body_of(gateway)
    del body["mcpServers"]["operator"]
    body["mcpServers"]["local"]["env"]["L"] = "planted-new"
    body["mcpServers"]["new"] = {"url": "https://n", "typo_key": 1}
    change = await gateway.editor.replace(body, dry_run=True)
    assert (change.written, change.etag) == (False, before.etag)
    plan = change.plan
    assert (plan.added, plan.removed, plan.changed) == (("new",), ("operator",), {"local": ("env.L",)})
    assert any("typo_key" in fault.where for fault in plan.faults)
    assert gateway.path.read_bytes() == data
    assert "planted" not in repr(change)


@pytest.mark.req("CONF-5", "CONF-7")
@pytest.mark.parametrize("data", [b"{", b"[]", b'{"mcpServers": []}', b"\xff\xff"])
async def test_a_file_that_cannot_be_parsed_is_never_overwritten(gateway: Gateway, data: bytes) -> None:
    gateway.file.current()
    gateway.path.write_bytes(data)
    for call in (
        gateway.editor.view(),
        gateway.editor.replace({"mcpServers": {}}),
        gateway.editor.set_enabled("local", False),
    ):
        with pytest.raises(UnreadableConfig, match=r"extensions_config\.json"):
            await call
    assert gateway.path.read_bytes() == data
    assert "local" in gateway.file.current().servers


@pytest.mark.req("CONF-5")
async def test_a_cancelled_request_releases_no_lock_and_leaves_no_half_change(gateway: Gateway) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(plan: ConfigPlan) -> None:
        inside.set()
        assert go_on.wait(20)

    request = asyncio.create_task(gateway.editor.set_enabled("local", False, approve=wait))
    await asyncio.to_thread(inside.wait, 20)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    second = asyncio.create_task(gateway.editor.set_enabled("remote", False))
    stranger = Gateway(gateway.path.parent)
    stranger.editor = ConfigEditor(stranger.file, lock_timeout_seconds=0.05)
    with pytest.raises(ConfigWriteFailed, match="another process"):
        await stranger.editor.set_enabled("remote", False)
    assert not second.done()
    go_on.set()
    await second
    servers = gateway.raw()["mcpServers"]
    assert (servers["local"]["enabled"], servers["remote"]["enabled"]) == (False, False)


@pytest.mark.req("CONF-5")
async def test_the_event_loop_runs_on_while_the_file_is_locked(gateway: Gateway) -> None:
    release = threading.Event()
    locked = threading.Event()

    def hold() -> None:
        with file_lock(gateway.path, timeout_seconds=5):
            locked.set()
            release.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        await asyncio.to_thread(locked.wait, 20)
        change = asyncio.create_task(gateway.editor.set_enabled("local", False))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not change.done()
    finally:
        release.set()
        await asyncio.to_thread(holder.join)
    assert (await change).written


@pytest.mark.req("CONF-7")
async def test_a_file_that_cannot_be_read_is_never_overwritten(gateway: Gateway) -> None:
    gateway.path.unlink()
    gateway.path.mkdir()
    gateway.env[PATH_VARIABLE] = str(gateway.path)
    with pytest.raises(UnreadableConfig, match="cannot be read"):
        await gateway.editor.replace({"mcpServers": {}})
    assert gateway.path.is_dir()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not list open descriptors")
@pytest.mark.req("CONF-5")
async def test_no_descriptor_leaks(gateway: Gateway) -> None:
    await gateway.editor.set_enabled("local", False)
    before = len(os.listdir("/proc/self/fd"))
    for enabled in (True, False, True):
        await gateway.editor.set_enabled("local", enabled)
        with pytest.raises(NotFound):
            await gateway.editor.set_enabled("nobody", enabled)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.req("CONF-5", "CONF-7")
@pytest.mark.parametrize("levels", [190, 300, 100_000])
async def test_nothing_is_written_that_could_not_be_read_again(gateway: Gateway, levels: int) -> None:
    data = gateway.path.read_bytes()
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]
    body = await body_of(gateway)
    body["mcpServers"]["remote"]["deep"] = deep
    if levels < 200:
        assert (await gateway.editor.replace(body)).written
        assert "remote" in gateway.file.current().servers
        return
    with pytest.raises(ConfigRejected, match="nested deeper than 200"):
        await gateway.editor.replace(body)
    assert gateway.path.read_bytes() == data


@pytest.mark.req("CONF-5")
async def test_a_number_that_cannot_be_written_is_refused(gateway: Gateway) -> None:
    data = gateway.path.read_bytes()
    with pytest.raises(ConfigRejected, match="cannot be written"):
        await gateway.editor.replace({"mcpServers": {"s": {"command": "x", "n": 10**5000}}})
    assert gateway.path.read_bytes() == data
