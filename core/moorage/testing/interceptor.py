"""The conformance suite of credential interceptors (DX-2)."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.contract import (
    CallPhase,
    GatewayContext,
    Headers,
    Interceptor,
    InterceptorSpec,
    Principal,
    ServerConfig,
    ToolCall,
    ToolResult,
    Transport,
)
from moorage.testing.checks import NotApplicable, Suite
from moorage.testing.context import gateway_context, server_config
from moorage.testing.interceptor_checks import ConductChecks, HeaderChecks

ANSWER = ToolResult(content=({"type": "text", "text": "done"},))


class Terminal:
    """The end of the chain: keeps what arrives, and answers, raises or waits as it is told."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.raises: BaseException | None = None
        self.waits_for: Any = None

    async def __call__(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        if self.waits_for is not None:
            await self.waits_for()
        if self.raises is not None:
            raise self.raises
        return ANSWER


@dataclass
class InterceptorBench:
    """One interceptor, the chain around it, and the end of that chain."""

    suite: "InterceptorConformance"
    gateway: GatewayContext
    spec: InterceptorSpec
    interceptor: Interceptor
    terminal: Terminal = field(default_factory=Terminal)

    def chain(self, *others: BuiltInterceptor) -> InterceptorChain:
        """The chain as the gateway makes it, with others in it."""
        return InterceptorChain([BuiltInterceptor(self.spec, self.interceptor, "under-test"), *others])

    async def run(self, call: ToolCall, *others: BuiltInterceptor) -> ToolResult:
        """Lead a call through the chain to the `terminal`."""
        return await self.chain(*others).run(call, self.terminal)


class InterceptorConformance(Suite, HeaderChecks, ConductChecks):
    """Holds a credential interceptor to the contract: precedence, failing closed, no mutation,
    cancellation, no mix-up between users.

    Subclass it as ``class TestMyInterceptor(InterceptorConformance)`` and say what is contributed (`spec`),
    what a run carries (`secrets`), and what must reach the server for it (`expects`).
    """

    changes_arguments = False
    """The interceptor is there to change arguments."""

    def spec(self) -> InterceptorSpec:
        """What the plugin contributes."""
        raise NotImplementedError(f"{type(self).__name__} must say what its plugin contributes: spec()")

    def sections(self) -> Mapping[str, Any]:
        """The validated config sections of the server, by name."""
        return {}

    def secrets(self, user: str) -> Mapping[str, Any]:
        """The secrets that a run of this user carries."""
        return {}

    def expects(self, user: str) -> Mapping[str, str]:
        """The headers that must reach the server on a call of this user."""
        return {}

    def refused(self) -> Sequence[ToolCall]:
        """Calls (made with `call`) that it must deny; none, unless it ever denies."""
        return ()

    def hidden(self) -> Sequence[str]:
        """Further values that no error, log line or ``repr`` may show, beside secrets and headers."""
        return ()

    def prepare(self, gateway: GatewayContext) -> None:
        """Provide what the interceptor asks of the gateway."""

    def settings(self) -> Mapping[str, Any]:
        """The settings tables that ``build`` may read."""
        return {}

    def open_source(self) -> AbstractAsyncContextManager[Any]:
        """Where the credentials come from, running while a check does."""
        return _nothing()

    def break_source(self) -> None:
        """From now on the source gives no credential to anybody; calls must be denied."""
        raise NotApplicable("the interceptor has no source that could fail (break_source)")

    def call(
        self,
        user: str | None = "alice",
        *,
        phase: CallPhase = "call",
        headers: Mapping[str, str] | None = None,
        arguments: Mapping[str, Any] | None = None,
        secrets: Mapping[str, Any] | None = None,
        sections: Mapping[str, Any] | None = None,
        transport: Transport = "http",
    ) -> ToolCall:
        """A call as the gateway makes it; with the user's `secrets`, unless others are given."""
        carried = secrets if secrets is not None else (self.secrets(user) if user is not None else {})
        return ToolCall(
            server=self.server(transport=transport, sections=sections),
            tool="look_up",
            arguments=arguments if arguments is not None else {"query": "boats", "nested": {"list": [1, 2]}},
            headers=Headers(headers or {}),
            phase=phase,
            principal=Principal(user) if user is not None else None,
            secrets=carried,
            thread_id="thread-1",
            run_id="run-1",
        )

    def server(
        self, *, transport: Transport = "http", sections: Mapping[str, Any] | None = None
    ) -> ServerConfig:
        """The server that is called."""
        held = self.sections() if sections is None else sections
        return server_config("conformance-server", transport=transport, sections=held)

    def background(self, phase: CallPhase) -> ToolCall:
        """The same user's call outside the run: no secrets (CRED-7)."""
        return replace(self.call(phase=phase, secrets={}), run_id=None)

    @asynccontextmanager
    async def _bench(self) -> AsyncIterator[InterceptorBench]:
        with tempfile.TemporaryDirectory() as folder:
            async with self.open_source():
                gateway = gateway_context(Path(folder), servers=(self.server(),), settings=self.settings())
                self.prepare(gateway)
                spec = self.spec()
                interceptor = spec.build(gateway)
                try:
                    yield InterceptorBench(self, gateway, spec, interceptor)
                finally:
                    close = getattr(interceptor, "aclose", None)
                    if close is not None:
                        await close()


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield
