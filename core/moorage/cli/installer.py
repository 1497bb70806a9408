"""uv or pip, whichever the running environment has (OPS-3)."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moorage.contract import MoorageError

_CHANGE = re.compile(r"^ ([+~-]) ((\S+?)(?:==\S+| @ \S+))", re.MULTILINE)
_USER_INFO = re.compile(r"(?<=//)[^/@\s]*@")


class InstallFailed(MoorageError):
    """The installer could not do it; the text is its own, without secrets."""


@dataclass(frozen=True, slots=True)
class Change:
    """A distribution that an installation would add, or touch."""

    name: str
    requirement: str
    added: bool


class Installer:
    """Runs uv where there is one, else pip, for the interpreter that runs Moorage."""

    def __init__(self) -> None:
        """Raises `InstallFailed` where there is neither."""
        uv = shutil.which("uv")
        if uv is not None:
            self._command = [uv, "--no-progress", "--color", "never", "pip"]
            self._python = ["--python", sys.executable]
        elif find_spec("pip") is not None:
            self._command = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check"]
            self._python = []
        else:
            raise InstallFailed("neither uv nor pip is here: install uv, or run python -m ensurepip")
        self._is_uv = uv is not None

    def plan(self, package: str) -> list[Change]:
        """What installing ``package`` would add if nothing that is installed may change.

        Raises `InstallFailed` where that cannot be resolved.
        """
        with _constraints() as constraints:
            arguments = ["--dry-run", "--constraint", constraints, package]
            if self._is_uv:
                return _changes_of_uv(self._run("install", *self._python, *arguments).stderr)
            report = self._run("install", "--quiet", "--report", "-", *arguments).stdout
        return _changes_of_pip(json.loads(report))

    def stage(self, packages: Sequence[str], folder: Path) -> None:
        """Put exactly these, without what they need, into ``folder``."""
        self._run("install", *self._python, "--no-deps", "--target", str(folder), *packages)

    def install(self, package: str) -> None:
        """Into the running environment."""
        with _constraints() as constraints:
            self._run("install", *self._python, "--constraint", constraints, package)

    def uninstall(self, distribution: str) -> None:
        """Out of the running environment."""
        yes = [] if self._is_uv else ["--yes"]
        self._run("uninstall", *self._python, *yes, distribution)

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode != 0:
            raise InstallFailed(_USER_INFO.sub("***@", (done.stderr or done.stdout).strip()[-2000:]))
        return done


def _changes_of_uv(shown: str) -> list[Change]:
    found = _CHANGE.findall(shown)
    replaced = {name for sign, _, name in found if sign != "+"}
    return [
        Change(name, requirement, name not in replaced) for sign, requirement, name in found if sign != "-"
    ]


def _changes_of_pip(report: Any) -> list[Change]:
    installed = {_normal(one.name) for one in metadata.distributions()}
    changes = []
    for one in report["install"]:
        name, version = one["metadata"]["name"], one["metadata"]["version"]
        source = f" @ {one['download_info']['url']}" if one["is_direct"] else f"=={version}"
        changes.append(Change(name, name + source, _normal(name) not in installed))
    return changes


@contextmanager
def _constraints() -> Iterator[str]:
    """A file that pins what is installed: an installation only ever adds."""
    pins = {_normal(one.name): one.version for one in metadata.distributions()}
    with tempfile.TemporaryDirectory(prefix="moorage-install-") as folder:
        path = Path(folder, "installed.txt")
        path.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
        yield str(path)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
