"""Correct plugins in other styles: httpx, blocking calls in threads, a bare protocol, an interceptor that
renews its credential and retries."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from moorage.contract import (
    GatewayContext,
    InterceptorSpec,
    NotSupported,
    ProtocolViolation,
    ServerClaim,
    ServerConfig,
    ServerUnavailable,
    SubmitCall,
    SubmitRejected,
    TaskAnswer,
    TaskBinding,
    TaskDriver,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
    TaskStatus,
    ToolResult,
    TransientDriverError,
)
from moorage.contract.credentials import Next, ToolCall
from moorage.testing import (
    DriverConformance,
    FaultyRemote,
    HttpDriverConformance,
    HttpReply,
    HttpRequest,
    InterceptorConformance,
    Operation,
    Said,
)
from moorage.testing.http_remote import HttpRemote
from support.mutants.drivers import STATES, WORDS, PlainDriver

WEB = "web"


class WebDriver:
    """Correct, over HTTP; how a request is made is left to the two below."""

    def __init__(self, url: str) -> None:
        self.url = url

    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        return ServerClaim(submit={"run": TaskBinding(WEB, "run", {})} if "run" in tool_names else {})

    async def submit(self, call: SubmitCall) -> TaskHandle:
        where = f"server {call.server!r}"
        reply = await self.reply("POST", "/jobs", where, {"arguments": dict(call.arguments)}, submit=True)
        remote_id = reply.get("id")
        usable = isinstance(remote_id, str) and bool(remote_id.strip())
        try:
            snapshot = self.snapshot(reply, where)
        except ProtocolViolation as error:
            raise ProtocolViolation(str(error), remote_id=remote_id if usable else None) from None
        if not usable:
            raise ProtocolViolation(f"{where}: the reply has no job id")
        return TaskHandle(str(remote_id), snapshot)

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        return await self.about(ref, "GET", "")

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        return await self.about(ref, "DELETE", "")

    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        return await self.about(ref, "POST", "/answer", {"answer": answer.response})

    async def about(self, ref: TaskRef, method: str, path: str, body: Any = None) -> TaskSnapshot:
        where = f"server {ref.server!r}"
        return self.snapshot(await self.reply(method, f"/jobs/{ref.remote_id}{path}", where, body), where)

    async def reply(
        self, method: str, path: str, where: str, body: Any = None, *, submit: bool = False
    ) -> Mapping[str, Any]:
        status, content = await self.fetch(method, path, body)
        if status in (408, 429) or status >= 500:
            raise TransientDriverError(f"{where}: HTTP status {status}")
        if submit and status >= 400:
            raise SubmitRejected(f"{where}: HTTP status {status}")
        if status >= 400:
            raise ProtocolViolation(f"{where}: HTTP status {status}")
        try:
            reply = json.loads(content)
        except ValueError:
            raise ProtocolViolation(f"{where}: the reply is no JSON") from None
        if not isinstance(reply, Mapping):
            raise ProtocolViolation(f"{where}: the reply is no object")
        return reply

    async def fetch(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        raise NotImplementedError

    def snapshot(self, reply: Mapping[str, Any], where: str) -> TaskSnapshot:
        state = reply.get("state")
        if not isinstance(state, str) or state not in STATES:
            raise ProtocolViolation(f"{where}: unknown state")
        remote_id = reply.get("id")
        return TaskSnapshot(
            status=STATES[state],
            remote_id=remote_id if isinstance(remote_id, str) else None,
            result=reply.get("result"),
            error=reply.get("error"),
            input_required=reply.get("question"),
            poll_after_seconds=reply.get("again_in"),
        )


class HttpxDriver(WebDriver):
    """With one client for all calls."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.client = httpx.AsyncClient(base_url=url, timeout=None)

    async def fetch(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        try:
            answer = await self.client.request(method, path, json=body)
        except httpx.TransportError as error:
            raise TransientDriverError(type(error).__name__) from error
        return answer.status_code, answer.content

    async def aclose(self) -> None:
        await self.client.aclose()


class ThreadDriver(WebDriver):
    """With a blocking client in threads."""

    async def fetch(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        return await asyncio.to_thread(self.blocking, method, path, body)

    def blocking(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError as error:
            raise TransientDriverError(type(error).__name__) from error


class HttpxConformance(HttpDriverConformance):
    """The suite of `HttpxDriver`."""

    name = WEB

    def build(self, gateway: GatewayContext, remote: HttpRemote) -> TaskDriver:
        return HttpxDriver(remote.url)

    def route(self, request: HttpRequest) -> tuple[Operation, str | None] | None:
        parts = request.path.strip("/").split("/")
        match request.method, parts:
            case "POST", ["jobs"]:
                return Operation.SUBMIT, None
            case "GET", ["jobs", job]:
                return Operation.STATUS, job
            case "DELETE", ["jobs", job]:
                return Operation.CANCEL, job
            case "POST", ["jobs", job, "answer"]:
                return Operation.RESPOND, job
        return None

    def spell(self, said: Said) -> HttpReply:
        word = WORDS.get(said.status, said.status) if isinstance(said.status, TaskStatus) else said.status
        fields = {
            "id": said.remote_id,
            "state": word,
            "result": said.result,
            "error": said.error,
            "question": said.input_required,
            "again_in": said.poll_after_seconds,
        }
        return HttpReply({key: value for key, value in fields.items() if value is not None})


class ThreadConformance(HttpxConformance):
    """The suite of `ThreadDriver`."""

    def build(self, gateway: GatewayContext, remote: HttpRemote) -> TaskDriver:
        return ThreadDriver(remote.url)


class MinimalDriver(PlainDriver):
    """A protocol of one word a reply: no ids, hints, questions, results or refusals; takes no answers."""

    async def submit(self, call: SubmitCall) -> TaskHandle:
        try:
            reply = await self.remote.exchange(Operation.SUBMIT, None, {"arguments": dict(call.arguments)})
        except ConnectionError as error:
            raise TransientDriverError(str(error)) from error
        if not isinstance(reply, str) or ":" not in reply:
            raise ProtocolViolation(f"server {call.server!r}: no job was named")
        word, _, remote_id = reply.partition(":")
        if word not in STATES:
            raise ProtocolViolation(f"server {call.server!r}: unknown state", remote_id=remote_id)
        if not remote_id.strip():
            raise ProtocolViolation(f"server {call.server!r}: no job was named")
        return TaskHandle(remote_id, TaskSnapshot(status=STATES[word]))

    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        raise NotSupported("this remote never asks")

    def read(self, reply: Any, where: str) -> TaskSnapshot:
        word, _, text = reply.partition(":") if isinstance(reply, str) else ("", "", "")
        if word not in STATES:
            raise ProtocolViolation(f"{where}: unknown state")
        return TaskSnapshot(
            status=STATES[word], result=json.loads(text) if word == "done" else None, error=text or None
        )


class MinimalConformance(DriverConformance):
    """The suite of `MinimalDriver`."""

    name = "plain"
    poll_hints = ids_in_replies = input_required = refuses = forgets = False
    done_at_once = cancels_by_acknowledgement = False

    def build(self, gateway: GatewayContext, remote: FaultyRemote) -> TaskDriver:
        return MinimalDriver(remote)

    def spell(self, said: Said) -> str:
        word = WORDS.get(said.status, said.status) if isinstance(said.status, TaskStatus) else said.status
        if said.operation is Operation.SUBMIT:
            if said.remote_id is None or said.status is TaskStatus.COMPLETED:
                raise ValueError("a submit answers with an id")
            return f"{word}:{said.remote_id}"
        if said.status is TaskStatus.COMPLETED:
            return f"{word}:{json.dumps(said.result)}"
        return f"{word}:{said.error or ''}"

    def garbled(self, said: Said) -> Sequence[Any]:
        return (None, 7, "", "nonsense")


class Renewing:
    """Correct: sends a token and, where the server says 401, renews it and tries once more."""

    def __init__(self) -> None:
        self.generation = 1

    async def __call__(self, call: ToolCall, follow: Next) -> ToolResult:
        try:
            return await follow(self.signed(call))
        except ServerUnavailable as error:
            if error.http_status != 401:
                raise
            self.generation += 1
            return await follow(self.signed(call))

    def signed(self, call: ToolCall) -> ToolCall:
        value = f"Bearer generation-{self.generation}"
        return call.with_header("Authorization", value, source="renewing")


class RetryingConformance(InterceptorConformance):
    """The suite of `Renewing`, which declares that it retries."""

    def spec(self) -> InterceptorSpec:
        return InterceptorSpec("renewing", 1_500, lambda gateway: Renewing(), retries=True)

    @asynccontextmanager
    async def open_source(self) -> AsyncIterator[None]:
        yield

    def expects(self, user: str) -> Mapping[str, str]:
        return {"Authorization": "Bearer generation-1"}
