"""A correct launch validator, and what can be wrong with one."""

import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from moorage.contract import LaunchRefused, LaunchRequest, LaunchValidatorSpec
from moorage.testing import LaunchValidatorConformance
from support.mutants.model import Mutant


class HouseRules:
    """Correct: two launchers, no ``--registry``, no environment of the loader, hosts of the house."""

    launchers = frozenset({"npx", "uvx"})

    def validate(self, request: LaunchRequest) -> Any:
        reason = self.reason(request)
        if reason is not None:
            return self.refuse(request, reason)
        return None

    def refuse(self, request: LaunchRequest, reason: str) -> Any:
        raise LaunchRefused(f"server {request.server!r}: {reason}")

    def reason(self, request: LaunchRequest) -> str | None:
        if request.transport == "stdio":
            return self.stdio(request)
        return None if self.host(request).endswith(".house.example") else "this host is not of the house"

    def stdio(self, request: LaunchRequest) -> str | None:
        if request.command not in self.launchers:
            return "this command is not allowed here"
        if any(argument.partition("=")[0] == "--registry" for argument in request.args):
            return "--registry is not allowed"
        if any(name.strip().upper() == "LD_PRELOAD" for name in request.env):
            return "the variable LD_PRELOAD is not allowed"
        return None

    def host(self, request: LaunchRequest) -> str:
        try:
            return urlsplit(request.url or "").hostname or ""
        except ValueError:
            return ""


class HouseConformance(LaunchValidatorConformance):
    """The suite of `HouseRules` and its mutants."""

    rules: type[HouseRules] = HouseRules

    def spec(self) -> LaunchValidatorSpec:
        return LaunchValidatorSpec("house", lambda gateway: type(self).rules())

    def allowed(self) -> Sequence[LaunchRequest]:
        return (
            LaunchRequest("files", "stdio", command="npx", args=("-y", "server-files", "/data")),
            LaunchRequest("time", "stdio", command="uvx", args=("server-time",), env={"TZ": "UTC"}),
            LaunchRequest("wiki", "http", url="https://wiki.house.example/mcp"),
        )

    def refused(self) -> Sequence[LaunchRequest]:
        return (
            LaunchRequest("shell", "stdio", command="bash", args=("-c", "id")),
            LaunchRequest("mirror", "stdio", command="npx", args=("--registry=http://evil", "server")),
            LaunchRequest("loader", "stdio", command="npx", args=("s",), env={"ld_preload": "/tmp/x.so"}),
            LaunchRequest("foreign", "http", url="https://elsewhere.example/mcp"),
        )


class ReturnsFalse(HouseRules):
    def refuse(self, request: LaunchRequest, reason: str) -> Any:
        return False


class RaisesValueErrors(HouseRules):
    def refuse(self, request: LaunchRequest, reason: str) -> Any:
        raise ValueError(f"server {request.server!r}: {reason}")


class AllowsAll(HouseRules):
    def reason(self, request: LaunchRequest) -> str | None:
        return None


class RefusesAll(HouseRules):
    def reason(self, request: LaunchRequest) -> str | None:
        return super().reason(request) or "not today"


class ForgetsCase(HouseRules):
    def stdio(self, request: LaunchRequest) -> str | None:
        if "LD_PRELOAD" in request.env:
            return "the variable LD_PRELOAD is not allowed"
        clean = LaunchRequest(request.server, "stdio", command=request.command, args=request.args)
        return super().stdio(clean)


class TrustsTheCommand(HouseRules):
    def stdio(self, request: LaunchRequest) -> str | None:
        if request.command.endswith("sh"):  # type: ignore[union-attr]
            return "shells are not allowed"
        return super().stdio(request)


class TrustsUrls(HouseRules):
    def host(self, request: LaunchRequest) -> str:
        return urlsplit(request.url or "").hostname or ""


class TrustsPorts(HouseRules):
    def host(self, request: LaunchRequest) -> str:
        try:
            parts = urlsplit(request.url or "")
        except ValueError:
            return ""
        return "" if parts.port == 22 else super().host(request)


class RefusesOnce(HouseRules):
    def __init__(self) -> None:
        self.seen: set[str] = set()

    def reason(self, request: LaunchRequest) -> str | None:
        known = request.server in self.seen
        self.seen.add(request.server)
        return None if known else super().reason(request)


class DependsOnItsInstance(HouseRules):
    made = 0

    def __init__(self) -> None:
        DependsOnItsInstance.made += 1
        self.lenient = DependsOnItsInstance.made % 2 == 0

    def reason(self, request: LaunchRequest) -> str | None:
        return None if self.lenient else super().reason(request)


class QuotesArguments(HouseRules):
    def refuse(self, request: LaunchRequest, reason: str) -> Any:
        return super().refuse(request, f"{reason}: {' '.join(request.args)}")


class QuotesTheEnvironment(HouseRules):
    def refuse(self, request: LaunchRequest, reason: str) -> Any:
        return super().refuse(request, f"{reason}: {dict(request.env)}")


class QuotesTheUrl(HouseRules):
    def refuse(self, request: LaunchRequest, reason: str) -> Any:
        return super().refuse(request, f"{reason}: {request.url}")


class NamesNoServer(HouseRules):
    def refuse(self, request: LaunchRequest, reason: str) -> Any:
        raise LaunchRefused(reason)


class CleansTheEnvironment(HouseRules):
    def stdio(self, request: LaunchRequest) -> str | None:
        found = super().stdio(request)
        if isinstance(request.env, dict):
            request.env.clear()
        return found


class AsksTheNetwork(HouseRules):
    def host(self, request: LaunchRequest) -> str:
        host = super().host(request)
        if host == "elsewhere.example":
            try:
                socket.getaddrinfo("localhost", 80)
            except OSError:
                return ""
        return host


class StartsAProcess(HouseRules):
    def stdio(self, request: LaunchRequest) -> str | None:
        if request.command == "uvx":
            subprocess.run([shutil.which("true") or "true"], check=False)
        return super().stdio(request)


class ComparesEverything(HouseRules):
    def stdio(self, request: LaunchRequest) -> str | None:
        # Slow enough on any machine: what a fast one does in a second is no fixed amount.
        count = sum(one == other for one in request.args for _ in range(8) for other in request.args)
        return super().stdio(request) if count >= 0 else None


class IsAsync(HouseRules):
    async def validate(self, request: LaunchRequest) -> None:
        super().validate(request)


BROKEN: Mapping[type[HouseRules], tuple[str, str]] = {
    ReturnsFalse: ("returns False instead of raising", "test_refuses"),
    RaisesValueErrors: ("raises ValueError", "test_refuses"),
    AllowsAll: ("allows everything", "test_refuses"),
    ForgetsCase: ("forgets the case of variables", "test_refuses"),
    RefusesAll: ("refuses everything", "test_allows"),
    IsAsync: ("is async", "test_allows"),
    TrustsTheCommand: ("falls over a missing command", "test_never_falls_over"),
    TrustsUrls: ("falls over a broken URL", "test_never_falls_over"),
    TrustsPorts: ("falls over a broken port", "test_never_falls_over"),
    RefusesOnce: ("refuses only the first time", "test_the_verdict_is_stable"),
    DependsOnItsInstance: ("depends on its instance", "test_the_verdict_is_stable"),
    QuotesArguments: ("quotes arguments", "test_a_refusal_quotes_no_value"),
    QuotesTheEnvironment: ("quotes the environment", "test_a_refusal_quotes_no_value"),
    QuotesTheUrl: ("quotes the URL", "test_a_refusal_quotes_no_value"),
    NamesNoServer: ("does not name the server", "test_a_refusal_names_the_server"),
    CleansTheEnvironment: ("changes the request", "test_changes_nothing"),
    AsksTheNetwork: ("asks the network", "test_has_no_effect"),
    StartsAProcess: ("starts a process", "test_has_no_effect"),
    ComparesEverything: ("takes quadratic time", "test_is_quick"),
}


def validator_mutants() -> list[Mutant]:
    return [
        Mutant("validator", fault, type(kind.__name__, (HouseConformance,), {"rules": kind}), caught_by)
        for kind, (fault, caught_by) in BROKEN.items()
    ]
