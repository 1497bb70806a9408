"""The HTTP transports: every bad answer becomes an error of the request that it concerns (TOOL-5).

The client library keeps a caller waiting where a reply is an HTTP error, junk, or ends early. So its HTTP
client gets a transport of ours, which fails such a request at once and spares the session.
"""

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCResponse

from moorage.contract import ServerConfig
from moorage_drivers.mcp.connections import Connection, Fault
from moorage_drivers.mcp.event_stream import EventParser

if TYPE_CHECKING:
    import ssl

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_REDIRECTS = 5
MAX_RESUMPTIONS = 3
CONNECT_SECONDS = 30.0
_JSON, _SSE = "application/json", "text/event-stream"
_PER_HOP = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class Address:
    """A server's URL in two forms: the real one, and one without secrets for the client library.

    That library and httpx log the URLs that they are given, which may hold credentials (CRED-9).
    """

    def __init__(self, url: str) -> None:
        self._real = httpx.URL(url)
        self.shown = self._real.copy_with(userinfo=b"", query=None, fragment=None)

    def complete(self, request: httpx.Request) -> httpx.Request:
        """What goes on the wire: the secrets put back, on requests to this very address only.

        A copy, since the client logs the request that it gave us."""
        if request.url != self.shown or request.url == self._real:
            return request
        headers = request.headers.copy()
        if self._real.userinfo and "authorization" not in headers:
            login = base64.b64encode(unquote_to_bytes(self._real.userinfo)).decode()
            headers["authorization"] = f"Basic {login}"
        return httpx.Request(
            request.method, self._real, headers=headers, stream=request.stream, extensions=request.extensions
        )

    def proxy(self) -> str | None:
        """The proxy that the environment asks for, as for every other HTTP client."""
        host = self._real.host
        return None if proxy_bypass(host) else getproxies().get(self._real.scheme)


class AnsweringTransport(httpx.AsyncBaseTransport):
    """Wraps a real transport; see the module.

    ``streamed``: the older SSE transport, where the answer to a request does not come on its own response.
    """

    def __init__(
        self,
        inner: httpx.AsyncBaseTransport,
        connection: Connection,
        address: "Address",
        *,
        streamed: bool = False,
    ) -> None:
        self._inner = inner
        self._address = address
        self._connection = connection
        self._streamed = streamed
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._redirects: dict[int, int] = {}
        self._resumable: dict[str, int] = {}
        self._resumptions: dict[int, int] = {}

    def abandon(self, request_id: int) -> None:
        """Nobody waits for this reply any more: give its connection back."""
        if (scope := self._scopes.get(request_id)) is not None:
            scope.cancel()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            request_id = _request_id(await request.aread())
            if request_id is None:
                return await self._notify(request)
            return await self._ask(request, request_id)
        if request.method == "GET":
            return await self._listen(request)
        return await self._inner.handle_async_request(self._address.complete(request))

    async def _ask(self, request: httpx.Request, request_id: int) -> httpx.Response:
        """A request, and its one answer."""
        fault = Fault("broken", "nobody waits for its answer any more")
        with anyio.CancelScope() as scope:
            self._scopes[request_id] = scope
            try:
                response = await self._inner.handle_async_request(self._address.complete(request))
                judged = await self._judge(response, request, request_id)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
                fault = Fault("unreachable", _reason(error))
            except httpx.HTTPError as error:
                fault = Fault("broken", _reason(error))
            else:
                if isinstance(judged, httpx.Response):
                    return judged
                fault = judged
            finally:
                if self._scopes.get(request_id) is scope:
                    del self._scopes[request_id]
        self._fail(request_id, fault)
        return httpx.Response(202)

    async def _judge(
        self, response: httpx.Response, request: httpx.Request, request_id: int
    ) -> httpx.Response | Fault:
        status = response.status_code
        if status in (307, 308) and self._may_follow(request, response, request_id):
            return response
        kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
        if status == 200 and kind == _SSE and not self._streamed:
            return _streaming(response, self._answer(response, request_id))
        body = await _read(response)
        if body is None:
            return Fault("broken", f"its answer has more than {MAX_BODY_BYTES} bytes", status=status)
        if status == 404 and "mcp-session-id" in request.headers:
            return Fault("lost", "it no longer knows the session", status=status)
        if status not in (200, 202) and not (self._streamed and status < 300):
            return Fault("status", f"it answered with HTTP status {status}{_said(body)}", status=status)
        if self._streamed:
            return httpx.Response(202)
        if status == 202:
            return Fault("broken", "it accepted the request and gave no answer", status=status)
        if kind != _JSON:
            return Fault("broken", f"it answered with {kind[:100] or 'no content type'} in place of JSON")
        fault = _problem(body, request_id)
        return fault or httpx.Response(200, headers=_plain(response.headers), content=body)

    def _may_follow(self, request: httpx.Request, response: httpx.Response, request_id: int) -> bool:
        """Within the origin, as the client does; credentials never go elsewhere (CRED-2)."""
        try:
            target = request.url.join(response.headers.get("location", ""))
        except (httpx.InvalidURL, ValueError):
            return False
        seen = self._redirects[request_id] = self._redirects.get(request_id, 0) + 1
        here = (request.url.scheme, request.url.host, request.url.port)
        return seen <= MAX_REDIRECTS and here == (target.scheme, target.host, target.port)

    async def _answer(self, response: httpx.Response, request_id: int) -> AsyncGenerator[bytes, None]:
        """The events as they are, up to the answer."""
        parser, resumable = EventParser(), False
        fault: Fault | None = Fault("broken", "its answer ended early")
        chunks = response.aiter_bytes()
        try:
            while True:
                with anyio.CancelScope() as scope:
                    self._scopes[request_id] = scope
                    chunk = await anext(chunks, None)
                if scope.cancelled_caught or chunk is None:
                    break
                for event in parser.feed(chunk):
                    if event.id:
                        resumable = True
                        self._resumable[event.id] = request_id
                    verdict = _event_verdict(event.kind, event.data, request_id)
                    if isinstance(verdict, Fault):
                        resumable, fault = False, verdict
                        return
                    if verdict:
                        fault = None
                    yield event.raw
                    if verdict:
                        self._forget(request_id)
                        return
                if parser.pending_bytes > MAX_BODY_BYTES:
                    resumable = False
                    fault = Fault("broken", f"an event of its answer has more than {MAX_BODY_BYTES} bytes")
                    break
        except httpx.HTTPError as error:
            fault = Fault("broken", _reason(error))
        finally:
            # Also where the client closes the stream before the answer, for whatever reason.
            self._scopes.pop(request_id, None)
            if fault is not None and not (resumable and self._may_resume(request_id)):
                self._fail(request_id, fault)

    def _may_resume(self, request_id: int) -> bool:
        tried = self._resumptions[request_id] = self._resumptions.get(request_id, 0) + 1
        return tried <= MAX_RESUMPTIONS

    def _fail(self, request_id: int, fault: Fault) -> None:
        self._forget(request_id)
        self._connection.fail(request_id, fault)

    def _forget(self, request_id: int) -> None:
        self._redirects.pop(request_id, None)
        self._resumptions.pop(request_id, None)
        for event_id in [key for key, value in self._resumable.items() if value == request_id]:
            del self._resumable[event_id]

    async def _notify(self, request: httpx.Request) -> httpx.Response:
        """A notification that fails must not end the session: nobody waits for it."""
        try:
            response = await self._inner.handle_async_request(self._address.complete(request))
            await _read(response)
        except httpx.HTTPError:
            return httpx.Response(202)
        return httpx.Response(202)

    async def _listen(self, request: httpx.Request) -> httpx.Response:
        """The server's own stream, and the rest of an answer that was cut off."""
        request_id = self._resumable.get(request.headers.get("last-event-id", ""))
        if request_id is None:
            return await self._inner.handle_async_request(self._address.complete(request))
        try:
            response = await self._inner.handle_async_request(self._address.complete(request))
        except httpx.HTTPError as error:
            if not self._may_resume(request_id):
                self._fail(request_id, Fault("broken", _reason(error)))
            raise
        if response.status_code == 200:
            return _streaming(response, self._answer(response, request_id))
        fault = Fault("broken", f"its answer ended early, and cannot be resumed ({response.status_code})")
        self._fail(request_id, fault)
        return response


class _Stream(httpx.AsyncByteStream):
    def __init__(self, chunks: AsyncGenerator[bytes, None], response: httpx.Response) -> None:
        self._chunks = chunks
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._chunks.aclose()
        await self._response.aclose()


def _streaming(response: httpx.Response, chunks: AsyncGenerator[bytes, None]) -> httpx.Response:
    return httpx.Response(200, headers=_plain(response.headers), stream=_Stream(chunks, response))


def _plain(headers: httpx.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in _PER_HOP}


async def _read(response: httpx.Response) -> bytes | None:
    """The whole body; None where it is too long."""
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return None
    finally:
        await response.aclose()
    return bytes(body)


def _request_id(body: bytes) -> int | None:
    """The id of a request of ours; None for a notification or a reply."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    if isinstance(value, dict) and "method" in value and isinstance(value.get("id"), int):
        return int(value["id"])
    return None


def _problem(body: bytes, request_id: int) -> Fault | None:
    """What is wrong with a body that must be the answer to the request."""
    try:
        root = JSONRPCMessage.model_validate_json(body).root
    except ValueError:
        return _unreadable(body)
    if not isinstance(root, JSONRPCResponse | JSONRPCError):
        return Fault("broken", "it answered with a message that is no reply")
    if str(root.id) != str(request_id):
        return Fault("broken", "it answered another request than it was asked")
    return None


def _unreadable(body: bytes) -> Fault:
    try:
        value = json.loads(body)
    except ValueError:
        return Fault("broken", "its answer is no JSON")
    return Fault("malformed", "its reply is malformed", reply=value)


def _event_verdict(kind: str, data: bytes, request_id: int) -> bool | Fault:
    """True for the answer, False for what may come before it."""
    if kind != "message" or not data:
        return False
    try:
        root = JSONRPCMessage.model_validate_json(data).root
    except ValueError:
        return _unreadable(data)
    if not isinstance(root, JSONRPCResponse | JSONRPCError):
        return False
    if str(root.id) != str(request_id):
        return Fault("broken", "it answered another request than it was asked")
    return True


def _reason(error: httpx.HTTPError) -> str:
    """httpx quotes neither headers nor bodies here, but may say nothing at all."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _said(body: bytes) -> str:
    """The message in an error document, if there is one."""
    try:
        value = json.loads(body)
    except ValueError:
        return ""
    inner = value.get("error", value) if isinstance(value, dict) else None
    text = inner.get("message") or inner.get("detail") if isinstance(inner, dict) else inner
    return f": {text[:200]}" if isinstance(text, str) else ""


def _client(
    connection: Connection,
    address: Address,
    headers: Mapping[str, str],
    context: "ssl.SSLContext",
    *,
    streamed: bool = False,
) -> httpx.AsyncClient:
    inner = httpx.AsyncHTTPTransport(
        verify=context, limits=httpx.Limits(max_connections=None), proxy=address.proxy()
    )
    transport = AnsweringTransport(inner, connection, address, streamed=streamed)
    connection.abandon = transport.abandon
    return httpx.AsyncClient(
        transport=transport,
        # The read timeout is the caller's affair: a tool may take as long as its deadline allows.
        timeout=httpx.Timeout(CONNECT_SECONDS, read=None),
        headers={**headers, "accept-encoding": "identity"},
        trust_env=False,
    )


@asynccontextmanager
async def http_connection(
    server: ServerConfig, headers: Mapping[str, str], context: "ssl.SSLContext"
) -> AsyncIterator[Connection]:
    """Streamable HTTP, on a client (and so on connections) of its own (TOOL-5)."""
    connection, address = Connection(), Address(server.url or "")
    async with (
        _client(connection, address, headers, context) as client,
        streamable_http_client(str(address.shown), http_client=client) as (read, write, session_id),
    ):
        connection.attach(read, write)
        connection.session_id = session_id
        try:
            yield connection
        finally:
            read.close()
            write.close()


@asynccontextmanager
async def sse_connection(
    server: ServerConfig, headers: Mapping[str, str], context: "ssl.SSLContext"
) -> AsyncIterator[Connection]:
    """The older HTTP transport with its one event stream."""
    connection, address = Connection(), Address(server.url or "")

    def factory(
        headers: dict[str, str] | None = None,
        timeout: httpx.Timeout | None = None,
        auth: httpx.Auth | None = None,
    ) -> httpx.AsyncClient:
        return _client(connection, address, headers or {}, context, streamed=True)

    async with sse_client(str(address.shown), headers=dict(headers), httpx_client_factory=factory) as (
        read,
        write,
    ):
        connection.attach(read, write)
        yield connection
