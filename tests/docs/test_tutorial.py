"""docs/tutorial/first-plugin.md, run from start to end in an empty folder (DX-1, DX-2)."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial" / "first-plugin.md"
UV = os.environ.get("UV", "uv")


def sections() -> dict[str, list[list[str]]]:
    """Heading → console blocks → lines."""
    found = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
        found[heading] = [[line[2:] for line in block.splitlines()] for block in blocks]
    return found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the index would have, were this version released."""
    folder = tmp_path_factory.mktemp("wheels")
    for part in ("core", "builtin_drivers", "plugins", "api", ""):
        command = [UV, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT / part)]
        subprocess.run(command, check=True, timeout=120)
    return folder


class Walk:
    """A shell in a folder of its own, with free ports in place of the page's."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        ours = ("MOORAGE_", "VIRTUAL_ENV", "PYTEST_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment = {
            **kept,
            "UV_FIND_LINKS": str(wheels),
            "UV_PYTHON": sys.executable,
            "PATH": f"{Path(UV).parent}{os.pathsep}{os.environ['PATH']}",
        }
        self.ports = {"8930": _free(), "8940": _free()}

    def line(self, line: str) -> str:
        for port, free in self.ports.items():
            line = line.replace(port, str(free))
        return line

    def run(self, lines: list[str], *, fails: bool = False) -> str:
        script = "\n".join(self.line(line) for line in lines)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def terminal(self, line: str, until: str) -> Iterator[str]:
        """A command that goes on; yields what it printed until a line with this in it."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {self.line(line)}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        printed = ""
        while until not in printed:
            piece = process.stdout.readline()
            assert piece, printed
            printed += piece
        drain = threading.Thread(target=process.stdout.read)
        drain.start()
        try:
            yield printed
        finally:
            os.killpg(process.pid, 15)
            process.wait(30)
            drain.join(30)
            process.stdout.close()


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.req("DX-1", "DX-2", "OPS-1")
@pytest.mark.timeout(600)
def test_the_tutorial_from_start_to_end(tmp_path: Path, wheels: Path) -> None:
    pages = sections()
    walk = Walk(tmp_path, wheels)
    (make,) = pages["Make it"]
    assert make[1].startswith("cd ")
    assert " passed" in walk.run(make)
    walk.folder = tmp_path / make[1].removeprefix("cd ")

    broken, mended = pages["What the tests hold you to"]
    said = walk.run(broken, fails=True)
    assert "1 failed" in said
    assert re.search(r"TASK-\d+", said), "the requirement is named"
    assert " failed" not in walk.run(mended)

    show, service, configure, serve, use = pages["Run it"]
    assert "moorage-farm" in walk.run(show)
    with walk.terminal(service[0], until="http://"):
        assert "nothing is wrong" in walk.run(configure)
        with walk.terminal(serve[0], until="Stop it with") as printed:
            key = re.search(r"moorage_[\w-]{20,}", printed)
            assert key is not None
            assert use[0].startswith("export KEY=")
            said = walk.run([f"export KEY={key[0]}", *use[1:]])
    assert "Started task" in said
    assert "completed" in said.splitlines()[-1]

    (build,) = pages["Hand it on"]
    walk.run(build)
    assert list((walk.folder / "dist").glob("moorage_farm-0.1.0-*.whl"))
