"""Projects made from the template, in an environment of their own beside Moorage (DX-1)."""

import json
import os
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.mcp_servers import http_server

from moorage.testing.process import GatewayProcess

ROOT = Path(__file__).parents[2]
UV = os.environ.get("UV", "uv")
KINDS = ("assistant", "driver", "interceptor", "sink", "validator")
TOOLS = ("mypy", "pytest", "pytest-asyncio", "ruff")


class Made:
    """The projects, and the environment that they are installed in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        subprocess.run([UV, "venv", "--quiet", str(folder / "venv")], check=True, timeout=120)
        parts = [str(ROOT / part) for part in ("core", "builtin_drivers", "plugins", "api", "")]
        self._install(*parts, *TOOLS)
        for kind in KINDS:
            shown = self.run("-m", "moorage", "plugins", "new", f"my-{kind}", "--kind", kind, "--json")
            assert json.loads(shown.stdout)["project"] == f"moorage-my-{kind}"
        self._install(*(str(self.project(kind)) for kind in KINDS))

    def project(self, kind: str) -> Path:
        return self.folder / f"moorage-my-{kind}"

    def _install(self, *what: str) -> None:
        constraints = self.folder / "constraints.txt"
        if not constraints.exists():
            root = tomllib.loads((ROOT / "pyproject.toml").read_text())
            constraints.write_text("\n".join(root["tool"]["uv"]["constraint-dependencies"]))
        command = [UV, "pip", "install", "--quiet", "--python", str(self.python), "-c", str(constraints)]
        subprocess.run([*command, *what], check=True, timeout=600)

    def run(self, *args: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
        environment.pop("PYTEST_ADDOPTS", None)
        environment["MOORAGE_HOME"] = str(self.folder / "home")
        done = subprocess.run(
            [str(self.python), *args],
            cwd=cwd or self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


@pytest.mark.req("DX-1", "DX-2")
@pytest.mark.parametrize("kind", KINDS)
def test_a_project_passes_its_own_tests_and_checks(made: Made, kind: str) -> None:
    project = made.project(kind)
    shown = made.run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    assert " passed" in shown.stdout
    made.run("-m", "ruff", "check", "--quiet", ".", cwd=project)
    made.run("-m", "ruff", "format", "--quiet", "--check", ".", cwd=project)
    made.run("-m", "mypy", "--no-incremental", cwd=project)
    (report,) = json.loads(made.run("-m", "moorage", "plugins", "show", f"my-{kind}", "--json").stdout)
    assert (report["state"], report["distribution"]) == ("loaded", f"moorage-my-{kind}")
    assert report["contributions"]


@pytest.mark.req("DX-1", "LAUNCH-1", "NOTE-4", "CRED-2")
def test_all_kinds_do_their_part_in_one_gateway(made: Made, tmp_path: Path) -> None:
    """The driver's task completes, the sink hears of it; the header arrives, the host is refused, the
    assistant answers."""
    script = made.project("driver") / "tests" / "job_service.py"
    events = tmp_path / "events.jsonl"
    home = tmp_path / "home"
    home.mkdir()
    (home / "moorage.toml").write_text(
        f'[plugins.my-sink]\npath = "{events}"\n[plugins.my-validator]\nhosts = ["127.0.0.1"]\n'
        '[tasks]\nsink = "my-sink"\npoll_interval_seconds = 0.2\n'
    )
    with (
        subprocess.Popen([str(made.python), str(script), "0"], stdout=subprocess.PIPE, text=True) as service,
        http_server("recorder") as recorder,
    ):
        assert service.stdout is not None
        jobs = service.stdout.readline().strip()
        servers: dict[str, Any] = {
            "jobs": {"url": f"{jobs}/mcp", "my_driver": {"jobs_url": f"{jobs}/jobs"}},
            "wiki": {
                "url": f"{recorder}/mcp",
                "my_interceptor": {"header": "X-Wiki-User", "users": {"admin": "token-of-admin"}},
            },
        }
        try:
            with (
                GatewayProcess(home, config={"mcpServers": servers}, python=str(made.python)) as gateway,
                httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http,
            ):
                thread = http.post("/api/threads", json={}).json()["thread_id"]

                def run(assistant: str, text: str) -> Any:
                    said = {"messages": [{"role": "user", "content": text}]}
                    # The gateway's own run, which tells of the task, may be under way.
                    more = {"if_not_exists": "create", "multitask_strategy": "enqueue"}
                    body = {"assistant_id": assistant, "input": said, **more}
                    answer = http.post(f"/api/threads/{thread}/runs/wait", json=body)
                    return answer.raise_for_status().json()

                calls = [{"name": "jobs_run", "args": {"frames": 1}}, {"name": "wiki_touch", "args": {}}]
                run("direct", json.dumps({"tool_calls": calls}))
                deadline = time.monotonic() + 30
                while not events.exists() or '"completed"' not in events.read_text():
                    assert time.monotonic() < deadline, gateway.log()[-3000:]
                    time.sleep(0.05)
                seen = httpx.get(f"{recorder}/seen").json()
                (called,) = [one for one in seen if one["method"] == "tools/call"]
                assert ["X-Wiki-User", "token-of-admin"] in called["headers"]
                other = {"mcpServers": {**http.get("/api/mcp/config").json()["mcpServers"]}}
                other["mcpServers"]["other"] = {"url": "https://elsewhere.example/mcp"}
                refused = http.put("/api/mcp/config", json=other)
                assert refused.status_code == 422
                assert "my-validator" in refused.json()["detail"]
                counted = run("my-assistant", "one two three")
                assert counted["messages"][-1]["content"] == "That was 3 words."
        finally:
            service.terminate()
    (line,) = [json.loads(line) for line in events.read_text().splitlines()]
    assert line["task_name"] == "run"
