"""Tool calls and chains for the tests of interceptors."""

from collections.abc import Mapping
from typing import Any

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.contract import (
    CallPhase,
    Headers,
    Interceptor,
    InterceptorSpec,
    Principal,
    ServerConfig,
    ToolCall,
    ToolResult,
)

OK = ToolResult(content=({"type": "text", "text": "done"},))


class Server:
    """The end of a chain: keeps what arrives, answers with `OK` or raises what it is told to."""

    def __init__(self, *raises: BaseException) -> None:
        self.calls: list[ToolCall] = []
        self._raises = list(raises)

    async def __call__(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        if self._raises:
            raise self._raises.pop(0)
        return OK

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.calls[-1].headers)


def server_config(
    sections: Mapping[str, Any] | None = None, *, transport: str = "http", name: str = "s"
) -> ServerConfig:
    return ServerConfig(
        name=name,
        transport=transport,  # type: ignore[arg-type]
        url="http://127.0.0.1:9/mcp",
        sections=sections or {},
    )


def tool_call(
    server: ServerConfig | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    user: str | None = "alice",
    secrets: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    phase: CallPhase = "call",
) -> ToolCall:
    return ToolCall(
        server=server or server_config(),
        tool="t",
        arguments=arguments if arguments is not None else {"a": 1},
        headers=Headers(headers or {}),
        phase=phase,
        principal=Principal(user) if user is not None else None,
        secrets=secrets or {},
        thread_id="thread-1",
        run_id="run-1",
    )


def built(interceptor: Interceptor, *, plugin: str = "culprit", **spec: Any) -> BuiltInterceptor:
    fields = {"name": "it", "precedence": 100, **spec}
    return BuiltInterceptor(InterceptorSpec(build=lambda _: interceptor, **fields), interceptor, plugin)


def chain(*interceptors: BuiltInterceptor) -> InterceptorChain:
    return InterceptorChain(interceptors)
