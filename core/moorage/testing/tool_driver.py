"""The driver suite for drivers over tools of an MCP server."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.contract import (
    CallContext,
    CallPhase,
    GatewayContext,
    NotFound,
    ServerUnavailable,
    ToolCaller,
    ToolResult,
)
from moorage.testing.driver import DriverConformance
from moorage.testing.remote import FaultyRemote, Operation, Said, Trouble

GARBLED: Sequence[ToolResult] = (
    ToolResult(),
    ToolResult(content=({"type": "text", "text": '{"status": "running"}'},)),
    ToolResult(structured=[]),
    ToolResult(structured="text"),
    ToolResult(structured={}),
    ToolResult(structured={"unrelated": True}),
)
"""Results without the structured content that a driver reads."""


class RemoteCaller:
    """A `ToolCaller` whose one server is a `FaultyRemote`."""

    def __init__(self, remote: FaultyRemote, operations: Mapping[str, Operation], id_of: "Any") -> None:
        self._remote = remote
        self._operations = operations
        self._id_of = id_of

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        context: CallContext,
        phase: CallPhase,
        timeout_seconds: float | None = None,
    ) -> ToolResult:
        """See `ToolCaller.call`."""
        operation = self._operations.get(tool)
        if operation is None:
            raise NotFound(f"server {server!r} has no tool {tool!r}")
        try:
            result: ToolResult = await self._remote.exchange(
                operation, self._id_of(operation, arguments), dict(arguments)
            )
        except ConnectionError as error:
            sent = "no connection" not in str(error)
            raise ServerUnavailable(str(error), server=server, sent=sent) from None
        return result


class ToolDriverConformance(DriverConformance):
    """`DriverConformance` for a driver that calls raw tools through the gateway's `ToolCaller`.

    `spell` returns a `ToolResult`; ``operations`` says what each raw tool does, and `id_of` where a call's
    arguments have the job's id. ``tools`` follows from ``operations``.
    """

    operations: Mapping[str, Operation] = {}

    def id_of(self, operation: Operation, arguments: Mapping[str, Any]) -> str | None:
        """The remote id that a call names; None for a submit."""
        value = arguments.get("task_id")
        return value if isinstance(value, str) else None

    def prepare(self, gateway: GatewayContext, remote: FaultyRemote) -> None:
        """See `DriverConformance.prepare`."""
        gateway.provide(ToolCaller, RemoteCaller(remote, self.operations, self.id_of))

    def garbled(self, said: Said) -> Sequence[Any]:
        """See `DriverConformance.garbled`."""
        return GARBLED

    def fail(self, trouble: Trouble, operation: Operation, remote_id: str | None) -> Any:
        """See `DriverConformance.fail`."""
        if trouble in (Trouble.OVERLOADED, Trouble.REFUSED):
            return ToolResult(content=({"type": "text", "text": "the tool failed"},), is_error=True)
        return None
