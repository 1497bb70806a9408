"""`moorage-core` without any other distribution (PLUG-1)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = os.environ.get("UV", "uv")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the core and nothing else of ours."""
    folder = tmp_path_factory.mktemp("core-alone") / "venv"
    subprocess.run([UV, "venv", "--quiet", str(folder)], check=True, timeout=120)
    python = folder / "bin" / "python"
    core = str(ROOT / "core")
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--python", str(python), core], check=True, timeout=300, cwd=folder
    )
    return python


def moorage(python: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
    return subprocess.run(
        [str(python), "-m", "moorage", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=60,
        check=False,
    )


@pytest.mark.req("PLUG-1")
def test_it_starts_lists_nothing_and_says_what_is_missing(python: Path, tmp_path: Path) -> None:
    shown = moorage(python, tmp_path, "--help")
    assert shown.returncode == 0
    for distribution in ("moorage-api: ", "moorage-drivers: "):
        assert distribution in shown.stdout

    listed = moorage(python, tmp_path, "plugins")
    assert listed.returncode == 0
    assert "No plugins are installed" in listed.stdout
    assert "moorage-plugins" in listed.stdout
    assert json.loads(moorage(python, tmp_path, "plugins", "--json").stdout) == []


@pytest.mark.req("PLUG-1")
@pytest.mark.parametrize(
    ("command", "distribution"),
    [("serve", "moorage-api"), ("keys", "moorage-api"), ("demo", "moorage-api"), ("tasks", "moorage-drivers"),
     ("db", "moorage-drivers")],
)  # fmt: skip
def test_a_command_that_is_not_there_names_its_distribution(
    python: Path, tmp_path: Path, command: str, distribution: str
) -> None:
    done = moorage(python, tmp_path, command)
    assert done.returncode == 5
    assert f"install {distribution}" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == [], "nothing was made"


@pytest.mark.req("PLUG-1", "PLUG-4")
def test_a_section_without_its_plugin_names_what_to_install(python: Path, tmp_path: Path) -> None:
    config = {"mcpServers": {"s": {"url": "http://127.0.0.1:1/mcp", "task_toolsets": []}}}
    (tmp_path / "extensions_config.json").write_text(json.dumps(config))
    done = moorage(python, tmp_path, "config", "check", "extensions_config.json")
    assert done.returncode == 1
    assert "moorage-drivers" in done.stdout


@pytest.mark.req("PLUG-1", "OPS-1")
def test_doctor_says_it_in_one_line_each(python: Path, tmp_path: Path) -> None:
    done = moorage(python, tmp_path, "doctor", "--json")
    assert done.returncode == 1
    checks = {one["check"]: one for one in json.loads(done.stdout)["checks"]}
    assert checks["plugins"]["state"] == "fail"
    assert "moorage-drivers" in checks["plugins"]["remedy"]
    assert checks["database"]["state"] == "fail"
    assert "moorage-drivers" in checks["database"]["detail"]
