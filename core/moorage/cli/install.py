"""``moorage install`` and ``uninstall``: plugins into the running environment, or nothing (OPS-3)."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moorage.cli.exits import OK, UsageError
from moorage.cli.installer import Change, Installer, InstallFailed
from moorage.cli.output import print_json

GROUP = "moorage.plugins"
WARNING = (
    "The code of {name} will run with the gateway's privileges: it can read every secret and file of it."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``install``."""
    parser.add_argument(
        "package",
        metavar="PACKAGE",
        help="What uv or pip take: a name, perhaps with a version, a file, a folder or a URL.",
    )
    agreement(parser)


def run(options: argparse.Namespace) -> int:
    """Add a distribution that brings plugins, and what it needs. Nothing that is installed changes; if it
    cannot be added whole, or its plugins cannot be loaded, the environment stays as it was."""
    package = _checked(options.package)
    agree(options, WARNING.format(name=package), "Install it?")
    installer = Installer()
    with tempfile.TemporaryDirectory(prefix="moorage-stage-") as folder:
        stage = Path(folder)
        distribution = _staged_plugin(installer, package, stage)
        added = installer.plan(package)
        touched = [one.requirement for one in added if not one.added]
        if touched:
            raise InstallFailed(f"it would change {', '.join(touched)}: uninstall that first")
        _stage_others(installer, distribution, added, stage)
    with _all_or_nothing():
        if added:
            installer.install(package)
        plugins = [one for one in _plugins_now() if _same(one["distribution"], distribution)]
        wrong = [one for one in plugins if one["state"] in ("failed", "refused")]
        if wrong or not plugins:
            reasons = [f"plugin {one['name']!r} is {one['state']}: {one['error']}" for one in wrong]
            raise InstallFailed(f"{'; '.join(reasons) or 'no plugin was found'}; nothing was changed")
    return _report(options, added, plugins)


def _staged_plugin(installer: Installer, package: str, stage: Path) -> str:
    """Look at what was asked for before it is installed; returns the distribution's name."""
    installer.stage([package], stage)
    (asked,) = metadata.distributions(path=[str(stage)])
    points = [point for point in asked.entry_points if point.group == GROUP]
    if not points:
        raise InstallFailed(f"{asked.name} {asked.version} brings no plugin: no entry point in {GROUP}")
    for point in points:
        root = point.module.partition(".")[0]
        if not any(stage.glob(f"{root}.*")) and not (stage / root).is_dir():
            raise InstallFailed(f"{asked.name} {asked.version}: there is no module {point.module!r} in it")
    return asked.name


def _stage_others(installer: Installer, distribution: str, added: list[Change], stage: Path) -> None:
    """What it needs, too; raises `InstallFailed` where a file of either is there already."""
    others = [one.requirement for one in added if not _same(one.name, distribution)]
    if others:
        installer.stage(others, stage)
    site = Path(sysconfig.get_path("purelib"))
    for path in stage.rglob("*") if added else ():
        inside = path.relative_to(stage)
        if path.is_file() and inside.parts[0] != "bin" and (site / inside).exists():
            raise InstallFailed(f"{distribution} or what it needs would overwrite {inside}")


@contextmanager
def _all_or_nothing() -> Iterator[None]:
    """Takes away again whatever came into the environment, unless the block ends well."""
    before = set(_files())

    def stop(number: int, _: Any) -> None:
        raise KeyboardInterrupt(number)

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except BaseException:
        previous_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for path in sorted(set(_files()) - before, reverse=True):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        signal.signal(signal.SIGINT, previous_interrupt)
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)


def _files() -> Iterator[Path]:
    """Everything that an installer may add to."""
    names = ["purelib", "platlib", "scripts"]
    if sys.prefix != sys.base_prefix:
        names = ["data"]  # the whole virtual environment
    for root in {sysconfig.get_path(name) for name in names}:
        for folder, folders, files in os.walk(root):
            yield from (Path(folder, name) for name in (*folders, *files))


def _plugins_now() -> list[dict[str, Any]]:
    """The reports of a fresh process, which sees what has just been installed."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "moorage", "plugins", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)
    except ValueError:
        raise InstallFailed(f"moorage plugins fails after it: {done.stderr.strip()[-500:]}") from None
    return found


def _checked(package: str) -> str:
    """Refuse options, and sources that carry a secret, without repeating it."""
    if not package.strip() or package.startswith("-") or any(not c.isprintable() for c in package):
        raise UsageError("PACKAGE must be the name of a package, a file, a folder or a URL")
    place = re.search(r"[A-Za-z][A-Za-z0-9+.-]*://\S*", package)
    if place is not None:
        parts = urlsplit(place[0])
        ssh = parts.scheme.endswith("ssh") and parts.password is None
        if ("@" in parts.netloc and not ssh) or parts.query:
            raise UsageError(
                "the URL may carry no user info and no query, where secrets would be stored and shown: use a "
                "keyring, .netrc or the installer's own settings"
            )
    return package


def agreement(parser: argparse.ArgumentParser) -> None:
    """The options of a command that asks first."""
    parser.add_argument("--yes", action="store_true", help="Do not ask.")
    parser.add_argument("--json", action="store_true", help="Print JSON, for scripts.")


def agree(options: argparse.Namespace, warning: str, question: str) -> None:
    """Ask, unless ``--yes``. Raises `UsageError` where nobody can answer, `InstallFailed` on a no."""
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{warning} Nobody can be asked here: pass --yes to go on")
    print(warning, file=sys.stderr)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InstallFailed("not agreed to; nothing was changed")


def _report(options: argparse.Namespace, added: list[Change], plugins: list[dict[str, Any]]) -> int:
    shown = [one.requirement for one in added]
    if options.json:
        print_json({"added": shown, "plugins": plugins})
    elif not shown:
        print("It is installed already.")
    else:
        names = ", ".join(one["name"] for one in plugins)
        print(f"Added {', '.join(shown)}.")
        print(f"Plugins: {names}. A running gateway takes them up at its next start.")
    return OK


def _same(one: str, other: str) -> bool:
    return re.sub(r"[-_.]+", "-", one).lower() == re.sub(r"[-_.]+", "-", other).lower()
