"""The launch policy against the real npx and uvx, offline (LAUNCH-7).

A corpus of argument vectors, each with one canary that leaves a mark if it is ever executed. Every vector is
judged by the policy and then run; what matters is whether the two agree.
"""

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from moorage.contract import LaunchRefused, LaunchRequest
from moorage.testing.context import gateway_context
from moorage_plugins.launch_policy import npx
from moorage_plugins.launch_policy.commands import CommandRules
from moorage_plugins.launch_policy.data import npm_tables
from moorage_plugins.launch_policy.settings import LaunchSettings
from support.wheels import wheel

BIN = Path(sys.executable).parent
PACKAGE = "good-srv-of-ours"
MARK = "canary-mark"
PASSED = "server-mark"
SHELL_CANARY = f"touch {MARK}"
NODE_CANARY = f"require('fs').writeFileSync('{MARK}','')"
SECONDS = 30.0

Verdict = Literal["allowed", "exec", "disk"]


@dataclass(frozen=True, slots=True)
class Vector:
    """One launch. ``flag``: the option under trial, where there is one."""

    command: str
    args: tuple[str, ...]
    flag: str = ""
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What we said, what the launcher did with the canary, and whether the server was reached."""

    vector: Vector
    verdict: Verdict
    reason: str
    executed: bool
    reached: bool

    @property
    def dangerous(self) -> bool:
        return self.verdict == "allowed" and self.executed

    @property
    def needless(self) -> bool:
        """Refused for an exec flag that the launcher did not honour."""
        return self.verdict == "exec" and not self.executed


TRIPWIRES = frozenset({"-e", "--eval", "--print", "--node-arg"})
"""Refused by LAUNCH-3, and honoured by neither npm 11 nor uv (those of older npx)."""


def explanation(outcome: Outcome) -> str | None:
    """Why a needless refusal is one all the same; None where nobody knows."""
    spelled = outcome.reason.partition(": ")[2].partition(" ")[0]
    if spelled in TRIPWIRES:
        return "a tripwire: a flag of LAUNCH-3 that these versions do not honour"
    if outcome.vector.command == "uvx":
        return "a tripwire: uvx owns no flag that runs a string"
    reading = npx.read(outcome.vector.args)
    given = {one.name: one.value for one in reading.options}
    if {"usage", "version", "versions"} & {name for name, value in given.items() if value != "false"}:
        return "npm only prints its usage or version"
    if "call" in given and reading.operands:
        return "npm refuses a call beside a package"
    if "call" in given and not given["call"].startswith(SHELL_CANARY):
        return "the canary did not become the call"
    named = [one.value for one in reading.options if one.name == "package"] or reading.operands[:1]
    if any(name != PACKAGE for name in named):
        return "the package that is named cannot be installed, so nothing starts"
    if "node-options" in given:
        return "node refuses these node-options, so nothing starts"
    if "script-shell" in given and given["script-shell"] != "./canary-shell":
        return "the shell that is named does not exist"
    return None


def npx_corpus(seed: int = 7, extra: int = 1_000) -> list[Vector]:
    """Every option of npm in every spelling before and after the package and before an exec flag, and
    ``extra`` random vectors."""
    tables = npm_tables()
    execs = list(_execs())
    vectors = [Vector("npx", (*piece, *tail), flag) for flag, piece in execs for tail in ((), (PACKAGE,))]
    vectors += [Vector("npx", ("-y", PACKAGE, *piece), flag) for flag, piece in execs]
    vectors += [Vector("npx", ("--", PACKAGE, *piece), flag) for flag, piece in execs]
    vectors += [Vector("npx", ("-y", "--", *piece), flag) for flag, piece in execs]
    call = ("-c", SHELL_CANARY)
    for spelled in _spellings(tables.types, tables.shorthands):
        vectors.append(Vector("npx", (*spelled, *call), "-c"))
        vectors.append(Vector("npx", (*spelled, PACKAGE, *call), "-c"))
        vectors.append(Vector("npx", (*spelled, "x", *call), "-c"))
    for operand in ("node", "sh", "./evil", "./evil.tgz", "file:./evil", f"{PACKAGE}@./evil", "npm"):
        tail = ("-e", NODE_CANARY) if operand == "node" else ("-c", SHELL_CANARY)
        vectors.append(Vector("npx", ("-y", operand, *tail), ""))
        vectors.append(Vector("npx", ("-y", "-p", PACKAGE, operand, *tail), ""))
    chance = random.Random(seed)
    spellings = list(_spellings(tables.types, tables.shorthands))
    for _ in range(extra):
        before = [one for part in chance.sample(spellings, chance.randint(0, 3)) for one in part]
        flag, piece = chance.choice(execs)
        ends = [[], [PACKAGE], ["--", PACKAGE], ["-p", PACKAGE, PACKAGE]]
        parts = [[*before], [*piece], chance.choice(ends)]
        chance.shuffle(parts)
        vectors.append(Vector("npx", tuple(itertools.chain(*parts)), flag))
    return list(dict.fromkeys(vectors))


def _execs() -> Iterator[tuple[str, tuple[str, ...]]]:
    for flag in ("-c", "--call", "-call", "--CALL", "--cal", "-C"):
        yield flag, (flag, SHELL_CANARY)
        yield flag, (f"{flag}={SHELL_CANARY}",)
    for cluster in ("-yc", "-qc", "-sc", "-cy", "-fyc", "-lc", "-ctouch"):
        yield cluster, (cluster, SHELL_CANARY)
        yield cluster, (f"{cluster}={SHELL_CANARY}",)
    for flag in ("-e", "--eval", "--print", "-p", "--node-arg", "-n"):
        yield flag, (flag, NODE_CANARY)
        yield flag, (f"{flag}={NODE_CANARY}",)
    for flag in ("--shell", "--script-shell", "--script-she"):
        yield flag, (flag, "./canary-shell", PACKAGE)
        yield flag, (f"{flag}=./canary-shell", PACKAGE)
    yield "--node-options", ("--node-options", "--require=./canary.cjs", PACKAGE)
    yield "--node-options", ("--node-options=--require=./canary.cjs", PACKAGE)


def _spellings(
    types: Mapping[str, Sequence[str]], shorthands: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, ...]]:
    for name in types:
        yield (f"--{name}",)
        yield (f"--{name}=x",)
        yield (f"--{name}", "true")
        yield (f"--no-{name}",)
    for name in shorthands:
        yield (f"-{name}",)
        yield (f"--{name}",)
    yield ("--an-option-of-tomorrow",)
    yield ("--an-option-of-tomorrow=x",)
    yield ("-",)


def uvx_corpus() -> list[Vector]:
    """Every option that uvx shows, alone and before what could run from the disk."""
    from moorage_plugins.launch_policy.data import grammars

    uvx = next(one for one in grammars() if one.command == "uvx")
    python = f"open('{MARK}','w')"
    starts: list[tuple[str, ...]] = [()]
    starts += [(flag,) for flag in sorted(uvx.boolean_options - {"-h", "--help"})]
    starts += [(flag, "x") for flag in sorted(uvx.value_options)]
    starts += [("--an-option-of-tomorrow",), ("--an-option-of-tomorrow", "x"), ("--",)]
    tails: list[tuple[str, ...]] = [
        (PACKAGE, "-c", SHELL_CANARY),
        ("python", "-c", python),
        ("python3@3.11", "-c", python),
        ("--from", PACKAGE, "sh", "-c", SHELL_CANARY),
        ("--from", PACKAGE, "python", "-c", python),
        ("sh", "-c", SHELL_CANARY),
        ("./evil-1.0-py3-none-any.whl",),
        ("--from", "./evil-1.0-py3-none-any.whl", "evil"),
        ("--from=evil @ file://{here}/evil-1.0-py3-none-any.whl", "evil"),
        ("--find-links", ".", "evil"),
        ("-f.", "evil"),
        ("--python", "./canary-python", PACKAGE),
        ("--python=./canary-python", PACKAGE),
        ("-p./canary-python", PACKAGE),
        ("--with", "./evil-1.0-py3-none-any.whl", "--from", PACKAGE, "evil"),
        ("-c", "constraints.txt", PACKAGE),
        ("--call", SHELL_CANARY, PACKAGE),
        ("--eval", python, PACKAGE),
        ("-e", python, PACKAGE),
        ("--env-file", "canary.env", PACKAGE),
    ]
    return [Vector("uvx", (*start, *tail)) for start in starts for tail in tails]


@dataclass
class Launchers:
    """Where the vectors are run: a registry of one package for npm, a folder of wheels for uv."""

    home: Path
    environment: Mapping[str, str]
    rules: CommandRules = field(
        default_factory=lambda: CommandRules(LaunchSettings(), gateway_context(Path("unused")))
    )

    def outcome(self, vector: Vector) -> Outcome:
        verdict, reason = self.judged(vector)
        with TemporaryDirectory(dir=self.home) as name:
            folder = Path(name)
            self._furnish(folder)
            args = [arg.replace("{here}", str(folder)) for arg in vector.args]
            environment = {**self.environment, **dict(vector.env), "PWD": str(folder)}
            with subprocess.Popen(
                [str(BIN / vector.command), *args],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process:
                try:
                    # As a client's messages would; a shell that is started by mistake reads them.
                    process.communicate(f"{SHELL_CANARY}\n".encode(), SECONDS)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
            return Outcome(vector, verdict, reason, (folder / MARK).exists(), (folder / PASSED).exists())

    def judged(self, vector: Vector) -> tuple[Verdict, str]:
        request = LaunchRequest("s", "stdio", command=vector.command, args=vector.args, env=dict(vector.env))
        try:
            self.rules.validate(request)
        except LaunchRefused as refused:
            text = str(refused)
            return ("exec" if "run code" in text or "a shell" in text else "disk"), text
        return "allowed", ""

    def _furnish(self, folder: Path) -> None:
        """What could be run by mistake; relative names, so that vectors stay the same everywhere."""
        evil = folder / "evil"
        evil.mkdir()
        (evil / "package.json").write_text('{"name": "evil", "version": "1.0.0", "bin": "run.js"}')
        (evil / "run.js").write_text(f"#!/usr/bin/env node\n{NODE_CANARY}\n")
        (folder / "canary.cjs").write_text(NODE_CANARY)
        (folder / "canary.env").write_text("X=1\n")
        (folder / "constraints.txt").write_text("rich>=1\n")
        for name in ("canary-shell", "canary-python"):
            (folder / name).write_text(f"#!/bin/sh\ntouch '{folder}/{MARK}'\nexit 1\n")
            (folder / name).chmod(0o755)
        shutil.copy(self.home / "wheels-of-evil" / "evil-1.0-py3-none-any.whl", folder)

    def all(self, vectors: Sequence[Vector], workers: int = 2) -> list[Outcome]:
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(self.outcome, vectors))


@contextmanager
def launchers(home: Path) -> Iterator[Launchers]:
    """Both launchers, able to start one package of ours and to reach nothing else."""
    with _registry(_packed(home / "npm")) as url:
        module = f"import pathlib\ndef main():\n    pathlib.Path('{PASSED}').touch()\n"
        wheel(home / "wheels", PACKAGE, {"good_srv.py": module}, scripts={PACKAGE: "good_srv:main"})
        bad = f"import pathlib\ndef main():\n    pathlib.Path('{MARK}').touch()\n"
        wheel(home / "wheels-of-evil", "evil", {"evil.py": bad}, scripts={"evil": "evil:main"})
        yield Launchers(
            home,
            {
                "PATH": f"{BIN}:/usr/bin:/bin",
                "HOME": str(home),
                "NPM_CONFIG_REGISTRY": url,
                "NPM_CONFIG_CACHE": str(home / "npm-cache"),
                "NPM_CONFIG_FETCH_RETRIES": "0",
                "NPM_CONFIG_AUDIT": "false",
                "NPM_CONFIG_UPDATE_NOTIFIER": "false",
                "UV_FIND_LINKS": str(home / "wheels"),
                "UV_OFFLINE": "1",
                "UV_CACHE_DIR": str(home / "uv-cache"),
                "UV_PYTHON_DOWNLOADS": "never",
            },
        )


def _packed(folder: Path) -> bytes:
    """A package for npm whose program says that it was reached."""
    package = folder / "package"
    package.mkdir(parents=True)
    content = {"name": PACKAGE, "version": "1.0.0", "bin": {PACKAGE: "run.js"}}
    (package / "package.json").write_text(json.dumps(content))
    program = f"#!/usr/bin/env node\nrequire('fs').writeFileSync('{PASSED}', '')\n"
    (package / "run.js").write_text(program)
    (package / "run.js").chmod(0o755)
    packed = folder / "package.tgz"
    subprocess.run(["tar", "-czf", str(packed), "-C", str(folder), "package"], check=True)
    return packed.read_bytes()


@contextmanager
def _registry(archive: bytes) -> Iterator[str]:
    """An npm registry that knows one package."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://{self.headers['Host']}"
            if self.path == f"/{PACKAGE}":
                version = {
                    "name": PACKAGE,
                    "version": "1.0.0",
                    "bin": {PACKAGE: "run.js"},
                    "dist": {"tarball": f"{url}/{PACKAGE}.tgz"},
                }
                known = {"name": PACKAGE, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
                self._answer(200, json.dumps(known).encode())
            elif self.path == f"/{PACKAGE}.tgz":
                self._answer(200, archive)
            else:
                self._answer(404, b"{}")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
