"""The checks of `LaunchValidatorConformance` (LAUNCH-1, LAUNCH-3, PLUG-2, PLUG-7, CRED-9)."""

import copy
import inspect
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moorage.contract import LaunchRefused, LaunchRequest
from moorage.testing.checks import Shortfall, check, told

if TYPE_CHECKING:
    from moorage.testing.launch import LaunchBench

VERDICT_SECONDS = 1.0
"""What one verdict may take, also on an absurdly long request."""
SECRET = "secret-71be20cd"  # noqa: S105 - a value that must not turn up in a message
_LONG = 100_000
_EFFECTS = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect",
                      "socket.getaddrinfo", "socket.sendto"})  # fmt: skip


def odd_requests() -> Iterator[LaunchRequest]:
    """Requests that nobody sends by accident, and that a file or a client can hold all the same."""
    for command in (None, "", " ", "\0", "npx\n", "../x", "/", "-", "--", "ü", "\ud800", "a b", "x" * _LONG):
        yield LaunchRequest("odd", "stdio", command=command)
    for args in (
        ("",),
        ("-",),
        ("--",),
        ("--", "--"),
        ("-" * 50,),
        ("=",),
        ("--=",),
        ("-=x",),
        ("--x=",),
        ("\0",),
        ("\ud800",),
        ("a\nb",),
        ("${NAME}", "$NAME", "$"),
        ("-p",),
        ("--package",),
        ("-c",),
        ("x",) * 5_000,
        ("-x",) * 5_000,
        ("x" * _LONG,),
        ("-" + "c" * _LONG,),
        (" " * _LONG,),
        ("=" * _LONG,),
    ):
        for command in ("npx", "uvx", "node", "anything"):
            yield LaunchRequest("odd", "stdio", command=command, args=args)
    for env in ({"": ""}, {"\0": "x"}, {"PATH": ""}, {" ld_preload ": "x"}, {"A=B": "x"}, {"Ü": "\ud800"},
                {f"N{n}": "x" for n in range(2_000)}, {"X" * _LONG: "y" * _LONG}):  # fmt: skip
        yield LaunchRequest("odd", "stdio", command="npx", args=("-y", "server"), env=env)
    for url in (None, "", "http://", "http://[", "http://[::1", "//", "javascript:x", "http://\0",
                "http://a b", "http://x:99999", "http://x:port", "http://ü.example", "http://" + "x" * _LONG,
                "\ud800", "http://${HOST}/mcp", "http://user:pass@h/mcp", "HTTP://X/MCP", "http://1.2.3/", "http://0x7f.1/",
                "http://2130706433/", "http://[fe80::1%25eth0]/", "file:///etc/passwd"):  # fmt: skip
        for transport in ("http", "sse"):
            yield LaunchRequest("odd", transport, url=url)
    yield LaunchRequest("", "stdio", command="npx")
    yield LaunchRequest("odd", "stdio", command="npx", cwd="\0")
    yield LaunchRequest("odd", "http", command="npx", url="http://x/mcp")


class LaunchChecks:
    """All checks of a launch validator."""

    @check("LAUNCH-1", rule="what must be refused is refused, by raising LaunchRefused")
    async def test_refuses(self, bench: "LaunchBench") -> None:
        for request in bench.suite.refused():
            verdict = judged(bench.validator, request)
            if not isinstance(verdict, LaunchRefused):
                raise Shortfall(f"{_shown(request)} came to {told(verdict)}")

    @check("LAUNCH-1", rule="what is harmless passes, and nothing is returned")
    async def test_allows(self, bench: "LaunchBench") -> None:
        for request in bench.suite.allowed():
            verdict = judged(bench.validator, request)
            if verdict is not None:
                raise Shortfall(f"{_shown(request)} came to {told(verdict)}")

    @check("PLUG-7", rule="on odd input it refuses or allows; nothing else is ever raised")
    async def test_never_falls_over(self, bench: "LaunchBench") -> None:
        for request in odd_requests():
            verdict = judged(bench.validator, request)
            if verdict is not None and not isinstance(verdict, LaunchRefused):
                raise Shortfall(f"{_shown(request)} came to {told(verdict)}")

    @check("LAUNCH-1", rule="a verdict is stable: again, in another order, by another instance, in threads")
    async def test_the_verdict_is_stable(self, bench: "LaunchBench") -> None:
        requests = [*bench.suite.refused(), *bench.suite.allowed(), *list(odd_requests())[:60]]
        first = [_refuses(bench.validator, request) for request in requests]
        again = [_refuses(bench.validator, request) for request in reversed(requests)]
        fresh = bench.rebuilt()
        other = [_refuses(fresh, request) for request in requests]
        with ThreadPoolExecutor(8) as pool:
            threaded = list(pool.map(lambda request: _refuses(bench.validator, request), requests))
        for how, verdicts in (
            ("again", again[::-1]),
            ("by another instance", other),
            ("in threads", threaded),
        ):
            for request, before, now in zip(requests, first, verdicts, strict=True):
                if before != now:
                    raise Shortfall(f"{_shown(request)} was judged otherwise {how}")

    @check("LAUNCH-3", rule="a refusal names the server")
    async def test_a_refusal_names_the_server(self, bench: "LaunchBench") -> None:
        for request in bench.suite.refused():
            renamed = replace(request, server="my-own-server")
            verdict = judged(bench.validator, renamed)
            if isinstance(verdict, LaunchRefused) and "my-own-server" not in str(verdict):
                raise Shortfall(f"{_shown(request)} is refused with {told(verdict)}")

    @check("LAUNCH-3", "CRED-9", rule="a refusal never quotes a value")
    async def test_a_refusal_quotes_no_value(self, bench: "LaunchBench") -> None:
        for request in bench.suite.refused():
            for planted in _planted(request):
                verdict = judged(bench.validator, planted)
                if isinstance(verdict, LaunchRefused) and SECRET in _all_of(verdict):
                    raise Shortfall(f"the refusal of {_shown(request)} quotes a value of the request")

    @check("PLUG-7", rule="the request is left as it was")
    async def test_changes_nothing(self, bench: "LaunchBench") -> None:
        for request in [*bench.suite.refused(), *bench.suite.allowed()]:
            own = replace(request, env=dict(request.env))
            before = copy.deepcopy((own.args, dict(own.env), own.command, own.url))
            judged(bench.validator, own)
            if (own.args, dict(own.env), own.command, own.url) != before:
                raise Shortfall(f"{_shown(request)} was changed")

    @check("LAUNCH-1", rule="a verdict is pure: nothing is started, and nobody is asked over the network")
    async def test_has_no_effect(self, bench: "LaunchBench") -> None:
        with _effects() as effects:
            for request in [*bench.suite.refused(), *bench.suite.allowed(), *odd_requests()]:
                judged(bench.validator, request)
        if effects:
            raise Shortfall(f"judging did {', '.join(sorted(set(effects)))}")

    @check("PLUG-7", rule="a verdict is quick, whatever the length of the request")
    async def test_is_quick(self, bench: "LaunchBench") -> None:
        for request in odd_requests():
            began = time.perf_counter()
            judged(bench.validator, request)
            if (took := time.perf_counter() - began) > VERDICT_SECONDS:
                raise Shortfall(f"{_shown(request)} took {took:.1f} seconds")


def judged(validator: Any, request: LaunchRequest) -> Any:
    """What a verdict came to: None, an exception, or whatever was returned in its place."""
    try:
        verdict = validator.validate(request)
        if inspect.iscoroutine(verdict):
            verdict.close()
        return verdict
    except Exception as raised:
        return raised


def _refuses(validator: Any, request: LaunchRequest) -> bool:
    return judged(validator, request) is not None


def _planted(request: LaunchRequest) -> Iterator[LaunchRequest]:
    """The request with a secret wherever a value stands."""
    yield replace(request, env=dict.fromkeys(request.env, SECRET) or {"CANARY": SECRET})
    yield replace(request, args=(*request.args, SECRET))
    if request.args:
        yield replace(request, args=tuple(_planted_argument(argument) for argument in request.args))
    if request.url and "://" in request.url:
        scheme, _, rest = request.url.partition("://")
        yield replace(request, url=f"{scheme}://user:{SECRET}@{rest.rpartition('@')[2]}")
        yield replace(request, url=f"{request.url}?token={SECRET}")
    if request.cwd:
        yield replace(request, cwd=f"/{SECRET}")


def _planted_argument(argument: str) -> str:
    if not argument.startswith("-"):
        return SECRET
    flag, equals, _ = argument.partition("=")
    return f"{flag}={SECRET}" if equals else argument


def _shown(request: LaunchRequest) -> str:
    parts = [request.command, *request.args[:6]] if request.transport == "stdio" else [request.url]
    text = " ".join(repr(part)[:60] for part in parts)
    names = f" with env {sorted(request.env)[:4]}" if request.env else ""
    return f"{request.transport} {text}{names}"


def _all_of(error: BaseException) -> str:
    return f"{error} {error.args!r} {vars(error)!r}"


_watch = threading.local()
_hooked: list[bool] = []


@contextmanager
def _effects() -> Iterator[list[str]]:
    """Which processes and connections this thread starts; audit hooks cannot be removed, so one stays and
    looks away outside the block."""

    def hook(event: str, arguments: object) -> None:
        seen = getattr(_watch, "seen", None)
        if seen is not None and event in _EFFECTS:
            seen.append(event)

    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(hook)
    found: list[str] = []
    _watch.seen = found
    try:
        yield found
    finally:
        _watch.seen = None
