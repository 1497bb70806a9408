"""``moorage doctor``: what a gateway here needs, one line each, with a remedy."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moorage.cli.exits import OK, PROBLEM
from moorage.cli.output import print_json, print_table
from moorage.cli.session import settings as load_settings
from moorage.contract import ConfigError, MoorageError
from moorage.host import PluginHost, PluginState, load_plugins, store_for
from moorage.settings import Settings

DATABASE_TIMEOUT_SECONDS = 10.0
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. ``remedy`` says what to do where it is not ok."""

    check: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--json", action="store_true", help="Print JSON, for scripts.")


def run(options: argparse.Namespace) -> int:
    """Exit status 1 if a check fails; warnings do not count."""
    findings = list(_findings())
    failed = any(finding.state == "fail" for finding in findings)
    if options.json:
        shown = [
            {"check": f.check, "state": f.state, "detail": f.detail, "remedy": f.remedy} for f in findings
        ]
        print_json({"ok": not failed, "checks": shown})
    else:
        rows = [
            (f.check, f.state, f.detail if f.remedy is None else f"{f.detail}: {f.remedy}") for f in findings
        ]
        print_table(("check", "state", "what was found"), rows, states=1)
    return PROBLEM if failed else OK


def _findings() -> Iterator[Finding]:
    yield _python()
    try:
        settings = load_settings()
    except ConfigError as error:
        yield Finding("settings", "fail", str(error), "mend it; nothing else can be checked before")
        return
    yield Finding("settings", "ok", str(settings.source or "no moorage.toml: defaults and variables"))
    yield _home(settings.home)
    host = load_plugins(settings.plugins, check=False)
    yield from _plugins(host)
    yield _guarded("database", lambda: _database(host, settings))
    yield from _extensions(host, settings)
    yield from _launchers()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("python", "fail", version, "use Python 3.11 or newer")
    return Finding("python", "ok", version)


def _home(home: Path) -> Finding:
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Finding("home", "fail", f"{home}: {reason}", "make it writable, or set MOORAGE_HOME")
    return Finding("home", "ok", str(home) if there == home else f"{home} (made at the first start)")


def _plugins(host: PluginHost) -> Iterator[Finding]:
    if not host.reports:
        yield Finding("plugins", "fail", "none is installed", "install moorage-drivers and moorage-plugins")
        return
    yield Finding("plugins", "ok", host.counted())
    for report in host.reports:
        if report.state in (PluginState.FAILED, PluginState.REFUSED):
            yield Finding(
                f"plugin {report.name}",
                "fail",
                f"{report.source} is {report.state}: {report.error}",
                f"mend it, or block it: MOORAGE_BLOCK_PLUGINS={report.name}",
            )


def _database(host: PluginHost, settings: Settings) -> Finding:
    contribution = store_for(host, settings.database_url)
    missing = _sqlite_file_to_come(settings.database_url)
    if missing is not None:
        return Finding("database", "ok", f"{missing} (made at the first start)")

    async def reach() -> None:
        from moorage.clock import SystemClock

        async with (
            asyncio.timeout(DATABASE_TIMEOUT_SECONDS),
            contribution.spec.open(settings.database_url, SystemClock(), False) as store,
        ):
            await store.ping()

    asyncio.run(reach())
    return Finding("database", "ok", f"store {contribution.spec.name!r}: reachable and up to date")


def _sqlite_file_to_come(url: str) -> Path | None:
    prefix = "sqlite:///"
    if not url.startswith(prefix) or "?" in url:
        return None
    path = Path(url.removeprefix(prefix))
    return path if path.name and path.name != ":memory:" and not path.exists() else None


def _guarded(check: str, find: Callable[[], Finding]) -> Finding:
    try:
        return find()
    except TimeoutError:
        return Finding(check, "fail", "no answer in time", "see that the database runs and can be reached")
    except MoorageError as error:
        return Finding(check, "fail", str(error), "check MOORAGE_DATABASE_URL, or run: moorage db upgrade")
    except Exception as error:
        # A store's error may quote the URL with its password.
        return Finding(
            check, "fail", f"the store plugin raised {type(error).__name__}", "see its plugin's docs"
        )


def _extensions(host: PluginHost, settings: Settings) -> Iterator[Finding]:
    from moorage.config import check_file, resolve_path

    try:
        path = resolve_path(settings.extensions_config, os.environ, Path.cwd())
    except OSError as error:
        yield Finding("extensions config", "fail", str(error), "mend MOORAGE_EXTENSIONS_CONFIG_PATH")
        return
    if path is None:
        yield Finding("extensions config", "warn", "none was found", "add extensions_config.json")
        return
    faults = check_file(path, host)
    fatal = sum(fault.fatal for fault in faults)
    if not faults:
        yield Finding("extensions config", "ok", str(path))
    else:
        detail = f"{path}: {fatal} errors, {len(faults) - fatal} warnings"
        yield Finding("extensions config", "fail" if fatal else "warn", detail, "see moorage config check")


def _launchers() -> Iterator[Finding]:
    for name, remedy in (("npx", "install Node.js"), ("uvx", "install uv")):
        found = shutil.which(name)
        if found:
            yield Finding(name, "ok", found)
        else:
            yield Finding(name, "warn", "not on PATH", f"servers that are started with it need it: {remedy}")
