"""`moorage install` and `uninstall` in an environment of their own: everything or nothing (OPS-3)."""

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.plugin_dists import hook
from support.wheels import wheel

pytestmark = pytest.mark.req("OPS-3")

ROOT = Path(__file__).parents[2]
UV = os.environ.get("UV", "uv")
GOOD = hook("moorage_stores")


class Environment:
    """A virtual environment with the core, and pip."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        subprocess.run([UV, "venv", "--quiet", str(folder)], check=True, timeout=120)
        command = [UV, "pip", "install", "--quiet", "--python", str(self.python), str(ROOT / "core"), "pip"]
        subprocess.run(command, check=True, timeout=300, cwd=folder)

    def command(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", "moorage", *arguments]

    def variables(self, installer: str) -> dict[str, str]:
        found = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
        # Without uv on it, pip does the work.
        return found | ({"PATH": "/usr/bin:/bin"} if installer == "pip" else {})

    def run(self, *arguments: str, installer: str = "uv") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            cwd=self.folder.parent,
            env=self.variables(installer),
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )

    def files(self) -> set[str]:
        found = (str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))
        return {path for path in found if "__pycache__" not in path and not path.endswith(".lock")}

    def plugins(self) -> dict[str, str]:
        reports = json.loads(self.run("plugins", "--json").stdout)
        return {report["name"]: report["state"] for report in reports}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("install") / "venv")


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_plugin_comes_with_what_it_needs_and_goes_again(
    environment: Environment, tmp_path: Path, installer: str
) -> None:
    before = environment.files()
    needed = wheel(tmp_path, "ticket-client", {"ticket_client.py": ""})
    good = wheel(
        tmp_path,
        "tickets",
        {"tickets_plugin.py": f"import ticket_client\n{GOOD}"},
        plugins={"tickets": "tickets_plugin"},
        requires=[f"ticket-client @ {needed.as_uri()}", "pluggy"],
    )
    done = environment.run("install", "--yes", "--json", str(good), installer=installer)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert [one["name"] for one in shown["plugins"]] == ["tickets"]
    assert {one.split("@")[0].split("=")[0].strip() for one in shown["added"]} == {"tickets", "ticket-client"}
    assert environment.plugins() == {"tickets": "loaded"}

    again = environment.run("install", "--yes", str(good), installer=installer)
    assert environment.plugins() == {"tickets": "loaded"}, again.stderr

    removed = environment.run("uninstall", "--yes", "tickets", installer=installer)
    assert (removed.returncode, removed.stdout) == (0, "Removed tickets 1.0.\n"), removed.stderr
    assert environment.plugins() == {}
    subprocess.run(
        [UV, "pip", "uninstall", "--quiet", "--python", str(environment.python), "ticket-client"], check=True
    )
    assert environment.files() == before


def no_plugin(folder: Path) -> Path:
    return wheel(folder, "plain", {"plain.py": ""})


def no_module(folder: Path) -> Path:
    return wheel(folder, "hollow", {"other.py": GOOD}, plugins={"hollow": "hollow_plugin"})


def import_fails(folder: Path) -> Path:
    return wheel(
        folder,
        "broken",
        {"broken_plugin.py": "raise ImportError('no engine here')"},
        plugins={"b": "broken_plugin"},
    )


def exits(folder: Path) -> Path:
    return wheel(
        folder, "quits", {"quits_plugin.py": "import os; os._exit(7)"}, plugins={"q": "quits_plugin"}
    )


def wrong_hook(folder: Path) -> Path:
    return wheel(
        folder, "wrong", {"wrong_plugin.py": hook("moorage_tasks_drivers")}, plugins={"w": "wrong_plugin"}
    )


def overwrites(folder: Path) -> Path:
    files = {"sneaky_plugin.py": GOOD, "moorage/clock.py": "raise SystemExit"}
    return wheel(folder, "sneaky", files, plugins={"s": "sneaky_plugin"})


def conflict(folder: Path) -> Path:
    return wheel(folder, "old", {"old_plugin.py": GOOD}, plugins={"o": "old_plugin"}, requires=["pluggy<1"])


def broken_file(folder: Path) -> Path:
    path = wheel(folder, "torn", {"torn_plugin.py": GOOD}, plugins={"t": "torn_plugin"})
    path.write_bytes(path.read_bytes()[:200])
    return path


@pytest.mark.parametrize(
    ("make", "says", "installer"),
    [
        (no_plugin, "brings no plugin", "uv"),
        (no_module, "hollow_plugin", "uv"),
        (import_fails, "no engine here", "uv"),
        (exits, "moorage plugins fails", "uv"),
        (wrong_hook, "moorage_tasks_drivers", "uv"),
        (overwrites, "moorage/clock.py", "uv"),
        (conflict, "pluggy", "uv"),
        (broken_file, "torn", "uv"),
    ],
)
def test_what_cannot_be_installed_whole_leaves_nothing(
    environment: Environment, tmp_path: Path, make: Callable[[Path], Path], says: str, installer: str
) -> None:
    before = environment.files()
    done = environment.run("install", "--yes", str(make(tmp_path)), installer=installer)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert environment.files() == before
    assert environment.plugins() == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing(
    environment: Environment, tmp_path: Path, number: signal.Signals
) -> None:
    reached = tmp_path / "reached"
    source = f"import time\nopen({str(reached)!r}, 'w').close()\ntime.sleep(60)\n{GOOD}"
    slow = wheel(tmp_path, "slow", {"slow_plugin.py": source}, plugins={"slow": "slow_plugin"})
    before = environment.files()
    start = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"from moorage.cli.front import run; raise SystemExit(run(['install', '--yes', {str(slow)!r}]))"
    )
    with subprocess.Popen(
        [str(environment.python), "-c", start], env=environment.variables("uv"), stderr=subprocess.PIPE
    ) as process:
        end = time.monotonic() + 60
        while not reached.exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(30) == 130
    assert environment.files() == before


def answered(command: Sequence[str], answer: str, variables: dict[str, str]) -> tuple[int, str]:
    """Run it at a terminal on which somebody types."""
    main, side = pty.openpty()
    try:
        process = subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=variables)
        os.write(main, f"{answer}\n".encode())
        status = process.wait(60)
        return status, os.read(main, 10_000).decode()
    finally:
        os.close(main)
        os.close(side)


def test_it_asks_first_and_takes_no_for_an_answer(environment: Environment, tmp_path: Path) -> None:
    before = environment.files()
    good = wheel(tmp_path, "tickets", {"tickets_plugin.py": GOOD}, plugins={"tickets": "tickets_plugin"})
    status, shown = answered(environment.command("install", str(good)), "n", environment.variables("uv"))
    assert status == 1
    assert "gateway's privileges" in shown
    unasked = environment.run("install", str(good))
    assert unasked.returncode == 2
    assert "--yes" in unasked.stderr
    assert environment.files() == before


@pytest.mark.parametrize(
    "source",
    [
        "https://user:s3cr3t-abcdef@plugins.example/tickets.whl",
        "https://s3cr3t-abcdef@plugins.example/tickets.whl",
        "tickets @ git+https://token:s3cr3t-abcdef@plugins.example/tickets.git",
        "https://plugins.example/tickets.whl?sig=s3cr3t-abcdef",
        "git+ssh://git:s3cr3t-abcdef@plugins.example/tickets.git",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_shown(environment: Environment, source: str) -> None:
    done = environment.run("install", "--yes", source)
    assert done.returncode == 2
    assert "user info" in done.stderr
    assert "s3cr3t" not in done.stdout + done.stderr


@pytest.mark.parametrize("package", ["--index-url=http://evil.example", "-e.", "", " ", "a\nb"])
def test_options_are_no_packages(environment: Environment, package: str) -> None:
    assert environment.run("install", "--yes", "--", package).returncode == 2


@pytest.mark.parametrize("name", ["pluggy", "no-such-thing", "../x", ""])
def test_only_what_brings_plugins_is_uninstalled(environment: Environment, name: str) -> None:
    before = environment.files()
    assert environment.run("uninstall", "--yes", name).returncode == 1
    assert environment.files() == before
