"""Plugins that misbehave while they are loaded (C69, C70), in distributions on a path of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.plugin_dists import BAD_PLUGINS, HOOK, SECTION, hook, install, install_bad_plugins

from moorage.testing.process import GatewayProcess

Reports = dict[str, dict[str, Any]]


def moorage(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
    return subprocess.run(
        [sys.executable, "-m", "moorage", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(folder), **environment},
        timeout=90,
        check=False,
    )


def reports_of(folder: Path, **environment: str) -> Reports:
    done = moorage(folder, "plugins", "--json", **environment)
    assert done.returncode == 0, done.stderr
    return {one["name"]: one for one in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reports]:
    folder = tmp_path_factory.mktemp("bad")
    install_bad_plugins(folder)
    return folder, reports_of(folder)


@pytest.mark.req("PLUG-2", "PLUG-3", "PLUG-4", "PLUG-6")
@pytest.mark.parametrize("name", BAD_PLUGINS)
def test_each_kind_of_fault_is_told_with_name_and_reason(bad: tuple[Path, Reports], name: str) -> None:
    report = bad[1][name]
    assert report["state"] in ("failed", "refused")
    assert (report["distribution"], report["version"]) == (f"dist_{name}", "1.2")
    for words in BAD_PLUGINS[name][1]:
        assert words in report["error"], report["error"]
    assert report["contributions"] == [], "none of its hooks stays"


@pytest.mark.req("PLUG-3", "PLUG-4")
def test_two_of_one_name_are_both_refused_and_the_others_load(bad: tuple[Path, Reports]) -> None:
    twin = bad[1]["twin"]
    assert twin["state"] == "refused"
    assert "first" in twin["error"]
    assert "second" in twin["error"]
    assert {bad[1][name]["state"] for name in ("good", "sql", "mcp", "ordinary", "api")} == {"loaded"}


@pytest.mark.req("PLUG-4")
def test_the_gateway_serves_beside_all_of_them(bad: tuple[Path, Reports], tmp_path: Path) -> None:
    folder, reports = bad
    with GatewayProcess(tmp_path, environment={"PYTHONPATH": str(folder)}) as gateway:
        made = httpx.post(f"{gateway.url}/api/threads", json={}, headers=gateway.headers)
        assert made.status_code in (200, 201)
        answer = httpx.get(f"{gateway.url}/api/plugins", headers=gateway.headers)
    shown = {one["name"]: one for one in answer.json()["items"]}
    for name in BAD_PLUGINS:
        assert shown[name]["state"] == reports[name]["state"]
        assert shown[name]["error"] == reports[name]["error"]
        assert name in gateway.log()
    loaded = sum(one["state"] == "loaded" for one in shown.values())
    (line,) = [line for line in gateway.log().splitlines() if "plugins: loaded" in line]
    assert f"loaded {loaded} of " in line


@pytest.mark.req("PLUG-4")
def test_strict_mode_turns_any_of_them_into_a_failed_start(tmp_path: Path) -> None:
    install(tmp_path, "raises", "raise ImportError('no such engine')")
    done = moorage(tmp_path, "serve", "--port", "0", MOORAGE_PLUGINS_STRICT="true")
    assert done.returncode != 0
    assert "no such engine" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.req("PLUG-4")
def test_a_blocked_plugin_is_not_even_imported(tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    install(tmp_path, "noisy", f"open({str(mark)!r}, 'w').close()\n" + hook("moorage_stores"))
    assert reports_of(tmp_path, MOORAGE_BLOCK_PLUGINS="noisy")["noisy"]["state"] == "blocked"
    assert not mark.exists()
    (tmp_path / "moorage.toml").write_text('[plugins]\nblock = ["noisy"]\n')
    assert reports_of(tmp_path)["noisy"]["state"] == "blocked"
    assert not mark.exists()
    (tmp_path / "moorage.toml").unlink()
    assert reports_of(tmp_path)["noisy"]["state"] == "loaded"
    assert mark.exists()


@pytest.mark.req("PLUG-6")
@pytest.mark.parametrize(
    ("range_", "state"),
    [(">=0.1", "loaded"), (">=0.1,<2", "loaded"), ("==0.1", "loaded"), (">=0.2", "refused"),
     (">=0.0", "refused"), ("<0.1", "refused")],
)  # fmt: skip
def test_the_range_that_a_plugin_supports(tmp_path: Path, range_: str, state: str) -> None:
    install(tmp_path, "ranged", f"MOORAGE_API = {range_!r}\n" + hook("moorage_stores"))
    report = reports_of(tmp_path)["ranged"]
    assert report["state"] == state, report["error"]
    if state == "refused":
        assert range_ in report["error"]
        assert "0.1" in report["error"]


@pytest.mark.req("PLUG-4")
def test_a_real_interrupt_still_ends_the_command(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    install(
        tmp_path, "slow", f"import time\nopen({str(ready)!r}, 'w').close()\ntime.sleep(60)\n" + hook("x" * 3)
    )
    # A test run in a shell's background hands down an ignored SIGINT.
    start = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from moorage.cli import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", start, "plugins"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        for _ in range(600):
            if ready.exists():
                break
            assert process.poll() is None
            subprocess.run(["sleep", "0.05"], check=True)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said


@pytest.mark.req("PLUG-9")
def test_single_file_plugins_load_or_fail_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    folder.mkdir()
    (folder / "mine.py").write_text(HOOK + SECTION.format(name="mine_section"))
    report = reports_of(tmp_path, MOORAGE_PLUGINS_DIR=str(folder))["mine"]
    assert report["state"] == "loaded"
    assert [one["name"] for one in report["contributions"]] == ["mine_section"]

    (folder / "theirs.py").write_text("raise RuntimeError('not today')")
    assert "not today" in reports_of(tmp_path, MOORAGE_PLUGINS_DIR=str(folder))["theirs"]["error"]
    done = moorage(tmp_path, "serve", "--port", "0", MOORAGE_PLUGINS_DIR=str(folder))
    assert done.returncode != 0
    assert "not today" in done.stderr


@pytest.mark.req("PLUG-9")
def test_a_local_interceptor_that_cannot_be_loaded_fails_the_start(tmp_path: Path) -> None:
    (tmp_path / "extensions_config.json").write_text('{"mcpServers": {}, "mcpInterceptors": "nowhere:build"}')
    done = moorage(tmp_path, "serve", "--port", "0")
    assert done.returncode != 0
    assert "nowhere:build" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.req("PLUG-9")
@pytest.mark.parametrize("spelling", ["two words", "one word"])
def test_the_option_for_single_file_plugins(tmp_path: Path, spelling: str) -> None:
    folder = tmp_path / "local"
    folder.mkdir()
    (folder / "mine.py").write_text(HOOK + SECTION.format(name="mine_section"))
    option = ["--plugins-dir", str(folder)] if spelling == "two words" else [f"--plugins-dir={folder}"]
    done = moorage(tmp_path, *option, "plugins", "--json")
    assert done.returncode == 0, done.stderr
    (mine,) = [one for one in json.loads(done.stdout) if one["name"] == "mine"]
    assert (mine["state"], mine["entry_point"]) == ("loaded", str(folder / "mine.py"))


@pytest.mark.req("PLUG-3", "PLUG-4")
def test_show_tells_order_and_reason_and_check_fails_for_a_broken_one(tmp_path: Path) -> None:
    source = (
        "from moorage.contract import InterceptorSpec\n\n@hookimpl\ndef moorage_credential_interceptors():\n"
        "    return [InterceptorSpec('late', 450, lambda context: None)]\n"
    )
    install(tmp_path, "late", HOOK + source)
    shown = moorage(tmp_path, "plugins", "show", "late")
    assert shown.returncode == 0, shown.stderr
    for words in ("dist_late 1.2", "plugin_late_dist_late", "by precedence 450, after", "loaded in"):
        assert words in shown.stdout
    assert moorage(tmp_path, "plugins", "check").returncode == 0
    install(tmp_path, "raises", "raise ImportError('no such engine')")
    checked = moorage(tmp_path, "plugins", "check")
    assert checked.returncode == 1
    assert "raises (dist_raises 1.2) is failed" in checked.stdout
    hooks = json.loads(moorage(tmp_path, "plugins", "hooks", "--json").stdout)
    assert "late" in {one["hook"]: one for one in hooks}["moorage_credential_interceptors"]["plugins"]
