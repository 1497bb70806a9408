"""Jobs of an HTTP service as durable tasks.

Moorage calls `submit` once, in the run that started the work; then `get_status` again and again, from any
gateway process, until the job has ended. The driver keeps nothing about jobs: all that it needs to find one
again is in the `TaskRef`. Deadlines, retries, back-off and persistence are Moorage's.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx
from moorage.contract import (
    GatewayContext,
    ProtocolViolation,
    ServerClaim,
    ServerConfig,
    SubmitCall,
    SubmitRejected,
    TaskBinding,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
    TaskStatus,
    TransientDriverError,
)

from {{ cookiecutter.package }}.section import Section

NAME = "{{ cookiecutter.name }}"
SECTION = "{{ cookiecutter.section }}"
STATES = {
    "queued": TaskStatus.SUBMITTED,
    "running": TaskStatus.WORKING,
    "done": TaskStatus.COMPLETED,
    "failed": TaskStatus.FAILED,
    "cancelled": TaskStatus.CANCELLED,
}


class {{ cookiecutter.title }}Driver:
    """A task driver (`moorage.contract.TaskDriver`)."""

    def __init__(self, gateway: GatewayContext) -> None:
        self._gateway = gateway
        self._client = httpx.AsyncClient(timeout=30.0)

    async def aclose(self) -> None:
        await self._client.aclose()

    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        """Which of the server's tools become durable tasks."""
        section = server.sections.get(SECTION)
        if not isinstance(section, Section):
            return ServerClaim()
        if tool_names and section.tool not in tool_names:
            return ServerClaim(errors=(f"server {server.name!r} has no tool {section.tool!r}",))
        return ServerClaim(submit={section.tool: TaskBinding(NAME, section.tool)})

    async def submit(self, call: SubmitCall) -> TaskHandle:
        """Start a job. The task's id goes along, so that the service can tell a repetition."""
        where = f"server {call.server!r}"
        body = {"arguments": dict(call.arguments), "key": call.task_id}
        reply = await self._ask(call.server, "POST", "", body, submit=True)
        remote_id = reply.get("id")
        named = isinstance(remote_id, str) and bool(remote_id.strip())
        try:
            snapshot = _snapshot(reply, where)
        except ProtocolViolation as error:
            # With the id, Moorage can still cancel the job that nobody would track.
            raise ProtocolViolation(str(error), remote_id=str(remote_id) if named else None) from None
        if not named:
            raise ProtocolViolation(f"{where}: the reply names no job")
        return TaskHandle(str(remote_id), snapshot)

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        reply = await self._ask(ref.server, "GET", f"/{quote(ref.remote_id, safe='')}")
        return _snapshot(reply, f"server {ref.server!r}")

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        """Ask for the end; where the service only acknowledges, Moorage polls on until it comes."""
        reply = await self._ask(ref.server, "DELETE", f"/{quote(ref.remote_id, safe='')}")
        return _snapshot(reply, f"server {ref.server!r}")

    async def _ask(
        self, server: str, method: str, path: str, body: Any = None, *, submit: bool = False
    ) -> Mapping[str, Any]:
        where = f"server {server!r}"
        section = self._section(server)
        headers = {"Authorization": f"Bearer {section.token}"} if section.token else {}
        try:
            answer = await self._client.request(
                method, section.jobs_url.rstrip("/") + path, json=body, headers=headers
            )
        except httpx.HTTPError as error:
            # Try again later. A submit is never repeated blindly, that is Moorage's affair.
            raise TransientDriverError(f"{where}: {type(error).__name__}") from error
        status = answer.status_code
        if status in (408, 429) or status >= 500:
            raise TransientDriverError(f"{where}: HTTP status {status}")
        if status >= 400 and submit:
            raise SubmitRejected(f"{where}: HTTP status {status}")
        if status >= 400:
            raise ProtocolViolation(f"{where}: HTTP status {status}")
        try:
            reply = json.loads(answer.content)
        except ValueError:
            raise ProtocolViolation(f"{where}: the reply is no JSON") from None
        if not isinstance(reply, dict):
            raise ProtocolViolation(f"{where}: the reply is no object")
        return reply

    def _section(self, server: str) -> Section:
        entry = self._gateway.extensions.current().servers.get(server)
        section = entry.sections.get(SECTION) if entry is not None else None
        if not isinstance(section, Section):
            raise TransientDriverError(f"server {server!r} is not configured for {NAME} any more")
        return section


def _snapshot(reply: Mapping[str, Any], where: str) -> TaskSnapshot:
    """What the service says of a job. What breaks the protocol fails the task for good, so say what came."""
    state = reply.get("state")
    if not isinstance(state, str) or state not in STATES:
        raise ProtocolViolation(f"{where}: unknown state")
    remote_id = reply.get("id")
    return TaskSnapshot(
        status=STATES[state],
        remote_id=remote_id if isinstance(remote_id, str) else None,
        result=reply.get("result"),
        error=reply.get("error"),
        poll_after_seconds=reply.get("again_in"),
    )
