"""The driver itself: each operation is one call of a raw tool (ORD-3…6)."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.contract import (
    CallPhase,
    CredentialDenied,
    GatewayContext,
    MoorageError,
    NotFound,
    NotSupported,
    ProtocolViolation,
    ServerClaim,
    ServerConfig,
    ServerUnavailable,
    SubmitCall,
    SubmitRejected,
    TaskAnswer,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
    ToolCaller,
    ToolResult,
    TransientDriverError,
)
from moorage_drivers.ordinary.binding import Tools, claim_tools
from moorage_drivers.ordinary.replies import diagnostic, id_in_reply, readable_id, snapshot_of, submitted


class OrdinaryDriver:
    """A `TaskDriver` (and `RespondingDriver`) over ordinary MCP tools."""

    def __init__(self, gateway: GatewayContext) -> None:
        self._gateway = gateway

    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        """See `TaskDriver.claim`."""
        return claim_tools(server, tool_names)

    async def submit(self, call: SubmitCall) -> TaskHandle:
        """See `TaskDriver.submit`. An answer with ``isError`` and without a task id is a refusal."""
        tool = Tools.of(call.binding).submit
        where = f"server {call.server!r}, tool {tool!r}"
        caller: ToolCaller = self._gateway.service(ToolCaller)
        try:
            result = await caller.call(
                call.server, tool, call.arguments, context=call.context, phase="submit"
            )
        except ProtocolViolation as error:
            remote_id = error.remote_id or id_in_reply(error.__dict__.get("reply"))
            raise ProtocolViolation(f"{where}: {error}", remote_id=remote_id, code=error.code) from None
        except ServerUnavailable as error:
            if not error.sent:
                raise SubmitRejected(str(error)) from None
            raise
        except NotFound as error:
            raise SubmitRejected(str(error)) from None
        if result.is_error:
            remote_id = readable_id(result.structured)
            if remote_id is None:
                raise SubmitRejected(f"{where}: {diagnostic(result)}")
            message = f"{where}: the answer is an error and names a task: {diagnostic(result)}"
            raise ProtocolViolation(message, remote_id=remote_id)
        return submitted(result, where)

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        """See `TaskDriver.get_status`."""
        return await self._ask(ref, Tools.of(ref.binding).status, {}, "status")

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        """See `TaskDriver.cancel`."""
        return await self._ask(ref, Tools.of(ref.binding).cancel, {}, "cancel")

    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        """See `RespondingDriver.respond`."""
        tool = Tools.of(ref.binding).respond
        if tool is None:
            raise NotSupported(f"task {ref.binding.task_name!r} takes no answers: it has no respond_tool")
        return await self._ask(ref, tool, {"response": answer.response}, "respond")

    async def _ask(
        self, ref: TaskRef, tool: str, arguments: Mapping[str, Any], phase: CallPhase
    ) -> TaskSnapshot:
        where = f"server {ref.server!r}, tool {tool!r}"
        result = await self._call(ref, tool, {"task_id": ref.remote_id, **arguments}, phase, where)
        snapshot = snapshot_of(result, where)
        if snapshot.remote_id != ref.remote_id:
            raise ProtocolViolation(f"{where}: the answer is about another task")
        return snapshot

    async def _call(
        self, ref: TaskRef, tool: str, arguments: Mapping[str, Any], phase: CallPhase, where: str
    ) -> ToolResult:
        caller: ToolCaller = self._gateway.service(ToolCaller)
        try:
            return await caller.call(ref.server, tool, arguments, context=ref.context, phase=phase)
        except ProtocolViolation as error:
            raise ProtocolViolation(f"{where}: {error}", code=error.code) from None
        except TimeoutError as error:
            raise TransientDriverError(str(error) or f"{where}: no answer in time") from None
        except (ServerUnavailable, CredentialDenied, NotFound) as error:
            raise TransientDriverError(str(error)) from None
        except MoorageError as error:
            raise TransientDriverError(f"{where}: {error}") from None
