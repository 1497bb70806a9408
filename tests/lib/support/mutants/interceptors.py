"""A correct interceptor, and what can be wrong with one."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from moorage.contract import (
    CredentialDenied,
    Headers,
    InterceptorSpec,
    Next,
    ServerUnavailable,
    ToolCall,
    ToolResult,
)
from moorage.testing import InterceptorConformance
from support.mutants.model import Mutant

HEADER = "X-Api-Token"
log = logging.getLogger(__name__)


class Vault:
    """Where tenants' prefixes come from; it can fail."""

    def __init__(self) -> None:
        self.broken = False

    async def prefix(self, user: str) -> str:
        await asyncio.sleep(0.005)
        if self.broken:
            raise ConnectionError("the vault cannot be reached")
        return f"tenant-of-{user}"


class TokenInterceptor:
    """Correct: a header from the run's secret and the vault, or no call at all."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault

    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        return await follow(self.with_value(call, await self.value(call)))

    async def value(self, call: ToolCall) -> str:
        if call.principal is None:
            raise CredentialDenied("token: the call belongs to nobody")
        return f"{await self.prefix(call.principal.user_id)}/{self.token(call)}"

    async def prefix(self, user: str) -> str:
        try:
            return await self.vault.prefix(user)
        except ConnectionError as error:
            raise CredentialDenied("token: the vault cannot be reached") from error

    def token(self, call: ToolCall) -> str:
        token = call.secrets.get("token")
        if not isinstance(token, str) or not token:
            raise CredentialDenied("token: the run has no secret 'token'")
        return token

    def with_value(self, call: ToolCall, value: str) -> ToolCall:
        return call.with_header(HEADER, value, source="token")


class TokenConformance(InterceptorConformance):
    """The suite of `TokenInterceptor` and its mutants."""

    interceptor: type[TokenInterceptor] = TokenInterceptor
    precedence: Any = 4_000

    def spec(self) -> InterceptorSpec:
        return InterceptorSpec("token", self.precedence, lambda gateway: type(self).interceptor(self.vault))

    @asynccontextmanager
    async def open_source(self) -> AsyncIterator[None]:
        self.vault = Vault()
        yield

    def break_source(self) -> None:
        self.vault.broken = True

    def secrets(self, user: str) -> Mapping[str, Any]:
        return {"token": f"secret-of-{user}-55aa"}

    def expects(self, user: str) -> Mapping[str, str]:
        return {HEADER: f"tenant-of-{user}/secret-of-{user}-55aa"}

    def refused(self) -> Sequence[ToolCall]:
        return (self.call(secrets={}), self.call(None), self.call(secrets={"token": ""}))


class SendsWithout(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        try:
            return await super().__call__(call, follow)
        except CredentialDenied:
            return await follow(call)


class SendsWithoutItsSource(TokenInterceptor):
    async def prefix(self, user: str) -> str:
        try:
            return await self.vault.prefix(user)
        except ConnectionError:
            return ""


class NeverCalls(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        await self.value(call)
        return ToolResult()


class CallsTwice(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        changed = self.with_value(call, await self.value(call))
        await follow(changed)
        return await follow(changed)


class RetriesErrors(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        changed = self.with_value(call, await self.value(call))
        try:
            return await follow(changed)
        except ServerUnavailable:
            return await follow(changed)


class SwallowsErrors(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        changed = self.with_value(call, await self.value(call))
        try:
            return await follow(changed)
        except RuntimeError:
            return ToolResult(is_error=True)


class WrapsErrors(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        changed = self.with_value(call, await self.value(call))
        try:
            return await follow(changed)
        except ServerUnavailable as error:
            raise RuntimeError(str(error)) from error


class ChangesArguments(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        call.arguments["nested"]["list"].append(3)
        return await super().__call__(call, follow)


class TakesSecretsOut(TokenInterceptor):
    def token(self, call: ToolCall) -> str:
        value = super().token(call)
        call.secrets.pop("token")  # type: ignore[attr-defined]
        return value


class SharesTheUser(TokenInterceptor):
    user = ""

    async def value(self, call: ToolCall) -> str:
        self.user = call.principal.user_id if call.principal else ""
        prefix = await self.prefix(self.user)
        if call.principal is None:
            raise CredentialDenied("nobody")
        return f"{prefix.replace(call.principal.user_id, self.user)}/{self.token(call)}"


class CachesTheFirst(TokenInterceptor):
    first: str | None = None

    async def value(self, call: ToolCall) -> str:
        self.first = self.first or await super().value(call)
        return self.first


class DropsOtherHeaders(TokenInterceptor):
    def with_value(self, call: ToolCall, value: str) -> ToolCall:
        return replace(call, headers=Headers({HEADER: value}))


class YieldsToWhatIsThere(TokenInterceptor):
    def with_value(self, call: ToolCall, value: str) -> ToolCall:
        return call if HEADER in call.headers else super().with_value(call, value)


class WritesBesideOtherSpellings(TokenInterceptor):
    def with_value(self, call: ToolCall, value: str) -> ToolCall:
        others = {name: kept for name, kept in call.headers.items() if name != HEADER}
        return replace(call, headers=Headers({**others, HEADER: value}))


class WrongHeader(TokenInterceptor):
    def with_value(self, call: ToolCall, value: str) -> ToolCall:
        return call.with_header("X-Token", value, source="token")


class ReplacesArguments(TokenInterceptor):
    def with_value(self, call: ToolCall, value: str) -> ToolCall:
        return super().with_value(call, value).with_arguments({"token": value})


class SwallowsCancellation(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        try:
            return await super().__call__(call, follow)
        except asyncio.CancelledError:
            return ToolResult()


class ShieldsTheCall(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        return await asyncio.shield(asyncio.ensure_future(super().__call__(call, follow)))


class BlocksTheLoop(TokenInterceptor):
    async def value(self, call: ToolCall) -> str:
        time.sleep(0.3)
        return await super().value(call)


class QuotesTheToken(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        value = await self.value(call)
        try:
            return await follow(self.with_value(call, value))
        except RuntimeError as error:
            error.add_note(f"with {value}")
            raise


class LogsTheToken(TokenInterceptor):
    def with_value(self, call: ToolCall, value: str) -> ToolCall:
        log.debug("sending %s", value)
        return super().with_value(call, value)


class ShowsTheToken(TokenInterceptor):
    last = ""

    def with_value(self, call: ToolCall, value: str) -> ToolCall:
        self.last = value
        return super().with_value(call, value)

    def __repr__(self) -> str:
        return f"ShowsTheToken({self.last!r})"


class TrustsSecrets(TokenInterceptor):
    def token(self, call: ToolCall) -> str:
        value: str = call.secrets["token"]
        return value


class TrustsThePrincipal(TokenInterceptor):
    async def value(self, call: ToolCall) -> str:
        assert call.principal is not None
        return await super().value(call)


class TrustsTheType(TokenInterceptor):
    def token(self, call: ToolCall) -> str:
        token: str = call.secrets.get("token", "")
        if not token.strip():
            raise CredentialDenied("token: no secret")
        return token


class QuotesOddSecrets(TokenInterceptor):
    def token(self, call: ToolCall) -> str:
        token = call.secrets.get("token")
        if not isinstance(token, str) or not token or not token.isascii() or "\n" in token:
            raise CredentialDenied(f"token: {token!r} cannot be sent")
        return token


class ReturnsNothing(TokenInterceptor):
    async def __call__(self, call: ToolCall, follow: Next) -> Any:
        await super().__call__(call, follow)


BROKEN: Mapping[type[TokenInterceptor], tuple[str, str]] = {
    SendsWithout: ("sends the call without a credential", "test_fails_closed"),
    SendsWithoutItsSource: ("sends the call when its source fails", "test_a_broken_source_denies"),
    NeverCalls: ("never makes the call", "test_calls_once_and_returns_the_answer"),
    CallsTwice: ("makes the call twice", "test_calls_once_and_returns_the_answer"),
    ReturnsNothing: ("returns nothing", "test_calls_once_and_returns_the_answer"),
    RetriesErrors: ("retries undeclared", "test_errors_pass"),
    SwallowsErrors: ("swallows errors", "test_errors_pass"),
    WrapsErrors: ("wraps errors", "test_errors_pass"),
    ChangesArguments: ("changes arguments in place", "test_mutates_nothing"),
    TakesSecretsOut: ("takes secrets out in place", "test_mutates_nothing"),
    SharesTheUser: ("shares the user between calls", "test_users_do_not_mix"),
    CachesTheFirst: ("caches the first user's credential", "test_sets_what_it_is_there_for"),
    DropsOtherHeaders: ("drops other headers", "test_leaves_the_rest_alone"),
    ReplacesArguments: ("replaces the arguments", "test_leaves_the_rest_alone"),
    YieldsToWhatIsThere: ("yields to lower precedences", "test_keeps_its_precedence"),
    WritesBesideOtherSpellings: ("writes beside other spellings", "test_replaces_other_spellings"),
    WrongHeader: ("sets another header", "test_sets_what_it_is_there_for"),
    SwallowsCancellation: ("swallows its cancellation", "test_cancellation_passes"),
    ShieldsTheCall: ("leaves calls running", "test_cancellation_passes"),
    BlocksTheLoop: ("blocks the event loop", "test_does_not_block_the_event_loop"),
    QuotesTheToken: ("quotes the token in an error", "test_shows_no_credential"),
    LogsTheToken: ("logs the token", "test_shows_no_credential"),
    ShowsTheToken: ("shows the token in its repr", "test_shows_no_credential"),
    TrustsSecrets: ("falls over missing secrets", "test_background_calls_have_no_secrets"),
    TrustsThePrincipal: ("falls over a missing principal", "test_a_call_of_nobody"),
    TrustsTheType: ("falls over secrets of another type", "test_odd_secrets_are_denied"),
    QuotesOddSecrets: ("quotes odd secrets", "test_odd_secrets_are_denied"),
}


def interceptor_mutants() -> list[Mutant]:
    made = [
        Mutant("interceptor", fault, type(kind.__name__, (TokenConformance,), {"interceptor": kind}), caught)
        for kind, (fault, caught) in BROKEN.items()
    ]
    odd = type("OddPrecedence", (TokenConformance,), {"precedence": 4_000.5})
    return [
        *made,
        Mutant("interceptor", "has a fractional precedence", odd, "test_the_host_accepts_the_spec"),
    ]
