"""The plugins in ``examples/``, each a project of its own beside Moorage (DX-1)."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.mcp_servers import http_server

from moorage.testing.process import GatewayProcess

ROOT = Path(__file__).parents[2]
UV = os.environ.get("UV", "uv")
PROJECTS = sorted(path.parent.name for path in (ROOT / "examples").glob("*/pyproject.toml"))


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with Moorage and all examples."""
    folder = tmp_path_factory.mktemp("examples")
    made = folder / "venv" / "bin" / "python"
    subprocess.run([UV, "venv", "--quiet", str(folder / "venv")], check=True, timeout=120)
    pins = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["constraint-dependencies"]
    (folder / "constraints.txt").write_text("\n".join(pins))
    parts = [str(ROOT / part) for part in ("core", "builtin_drivers", "plugins", "api", "")]
    examples = [str(ROOT / "examples" / name) for name in PROJECTS]
    command = [UV, "pip", "install", "--quiet", "--python", str(made), "-c", str(folder / "constraints.txt")]
    tools = ("mypy", "pytest", "pytest-asyncio", "ruff")
    subprocess.run([*command, *parts, *examples, *tools], check=True, timeout=600)
    return made


@pytest.mark.req("DX-1", "DX-2")
@pytest.mark.parametrize("name", PROJECTS)
def test_an_example_passes_its_own_tests_and_checks(python: Path, name: str) -> None:
    ours = ("MOORAGE_", "PYTEST_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    for arguments in (
        ("pytest", "-q", "-p", "no:cacheprovider"),
        ("ruff", "check", "--no-cache", "--quiet", "."),
        ("mypy", "--no-incremental", "--cache-dir", os.devnull),
    ):
        done = subprocess.run(
            [str(python), "-m", *arguments],
            cwd=ROOT / "examples" / name,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.req("DX-1", "CRED-9", "PLUG-5")
def test_the_secrets_store_feeds_a_gateway(python: Path, tmp_path: Path) -> None:
    """Through a real gateway: the calling user's secret reaches the server, and nobody else's."""
    sys.path.insert(0, str(ROOT / "examples" / "secrets-store" / "tests"))
    try:
        from vault import TOKEN, vault  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    home = tmp_path / "home"
    home.mkdir()
    with vault() as store, http_server("recorder") as recorder:
        store.secrets = {"users/admin": {"token": "secret-of-admin"}}
        (home / "moorage.toml").write_text(f'[plugins.secrets-store]\nurl = "{store.url}"\n')
        server: dict[str, Any] = {"url": f"{recorder}/mcp", "secrets_store": {"path": "users/{user}"}}
        environment = {"SECRETS_STORE_TOKEN": TOKEN}
        config = {"mcpServers": {"wiki": server}}
        with (
            GatewayProcess(home, config=config, environment=environment, python=str(python)) as gateway,
            httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http,
        ):
            call = json.dumps({"tool_calls": [{"name": "wiki_touch", "args": {}}]})
            said = {"messages": [{"role": "user", "content": call}]}
            body = {"assistant_id": "direct", "input": said, "if_not_exists": "create"}
            http.post("/api/threads/t/runs/wait", json=body).raise_for_status()
            store.broken = True
        log = gateway.log()
        seen = httpx.get(f"{recorder}/seen").json()
    (called,) = [one["headers"] for one in seen if one["method"] == "tools/call"]
    assert [value for name, value in called if name.lower() == "authorization"] == ["Bearer secret-of-admin"]
    assert "secret-of-admin" not in log
    assert TOKEN not in log
