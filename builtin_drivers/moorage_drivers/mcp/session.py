"""One MCP session, opened and closed by one task of its own (TOOL-4)."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import anyio
import httpx
from mcp import ClientSession, McpError, types
from pydantic import BaseModel, ValidationError

from moorage.contract import ProtocolViolation, ServerUnavailable
from moorage_drivers.mcp.connections import Connection, Fault
from moorage_drivers.mcp.redaction import Quoter

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=BaseModel)
Opener = Callable[[], AbstractAsyncContextManager[Connection]]

CLOSE_SECONDS = 10.0
_TELL_SECONDS = 5.0
_CLIENT = types.Implementation(name="moorage", version="0.1.0")


class JsonRpcError(Exception):
    """The server answered a request with an error of its own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Session:
    """A session with a server. `start` it, await `ready`, `request` as often as you like, `close` it.

    Requests may come from any task of the loop; only the owner task ever enters or leaves the streams.
    """

    def __init__(self, server: str, open_: Opener, *, init_seconds: float | None, quoting: Quoter) -> None:
        self._server = server
        self._open = open_
        self._init_seconds = init_seconds
        self._quoting = quoting
        self._faults: dict[int | str, Fault] = {}
        self._client: ClientSession | None = None
        self._connection: Connection | None = None
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        self._failure: ServerUnavailable | None = None
        self._owner: asyncio.Task[None] | None = None
        self._messages: set[asyncio.Task[None]] = set()
        self.on_end: Callable[[], None] | None = None
        self.instructions: str | None = None

    def start(self) -> None:
        """Begin to open it."""
        self._owner = asyncio.create_task(self._own(), name=f"mcp-session-{self._server}")

    @property
    def dead(self) -> bool:
        """No request can be sent any more."""
        return self._stop.is_set() or self._failure is not None

    @property
    def opened(self) -> bool:
        return self._client is not None and self._ready.is_set()

    @property
    def stateful(self) -> bool:
        """The server gave this session an id, and may keep state under it."""
        return self._connection is not None and self._connection.session_id() is not None

    async def ready(self) -> None:
        """Wait until it is initialised; raises `ServerUnavailable` (``sent`` false) where that failed."""
        await self._ready.wait()
        if self._failure is not None:
            failure = self._failure
            raise ServerUnavailable(
                str(failure.args[0]).removeprefix(f"server {self._server!r}: "),
                server=self._server,
                sent=False,
                http_status=failure.http_status,
            )

    async def close(self) -> None:
        """End it, and wait (for a bounded time) until nothing of it is left."""
        opening = not self._ready.is_set()
        self._stop.set()
        if self._owner is not None:
            if opening:
                self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)

    async def request(self, request: types.ClientRequest, result_type: type[R], seconds: float | None) -> R:
        """One request. Raises `ServerUnavailable`, `ProtocolViolation`, `JsonRpcError`, `TimeoutError`."""
        client = self._client
        if client is None or self.dead:
            raise self._unavailable("Connection closed", sent=False)
        request_id = client._request_id  # the library has no other way to learn it before it is sent
        try:
            async with asyncio.timeout(seconds):
                return await client.send_request(request, result_type)
        except TimeoutError:
            self._tell_cancelled(request_id, "the caller's time is up")
            raise TimeoutError(f"server {self._server!r} did not answer within {seconds:g} seconds") from None
        except asyncio.CancelledError:
            self._tell_cancelled(request_id, "the caller has gone")
            raise
        except McpError as error:
            if request_id not in self._faults and self._is_closed(client):
                raise await self._closed() from None
            raise self._translated(error, request_id) from None
        except ValidationError:
            raise ProtocolViolation(f"server {self._server!r}: its reply is malformed") from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream):
            raise await self._closed() from None
        finally:
            self._faults.pop(request_id, None)

    def _translated(self, error: McpError, request_id: int) -> Exception:
        fault = self._faults.get(request_id)
        if fault is None:
            return JsonRpcError(error.error.code, error.error.message)
        if fault.kind == "malformed":
            violation = ProtocolViolation(f"server {self._server!r}: {fault.message}")
            violation.__dict__["reply"] = fault.reply
            return violation
        if fault.kind == "lost" or (fault.kind == "status" and self.stateful):
            self._stop.set()
        message = self._quoting.quote(fault.message)
        return ServerUnavailable(message, server=self._server, sent=fault.sent, http_status=fault.status)

    def _is_closed(self, client: ClientSession) -> bool:
        """The client library answers for a closed stream with an error that a server could send, too."""
        streams = client._read_stream.statistics()
        return self.dead or not streams.open_receive_streams or not streams.open_send_streams

    async def _closed(self) -> ServerUnavailable:
        """This session is of no use any more; no other is concerned (STDIO-3)."""
        if self._connection is not None:
            await self._connection.settle()
        self._stop.set()
        return self._unavailable("Connection closed")

    def _unavailable(self, what: str, *, sent: bool = True) -> ServerUnavailable:
        why = self._connection.diagnosis() if self._connection else ""
        message = self._quoting.quote(f"{what} ({why})" if why else what)
        return ServerUnavailable(message, server=self._server, sent=sent)

    def _fail(self, request_id: int, fault: Fault | None) -> None:
        """Without a fault the request learns that the connection is closed."""
        waiting = self._client._response_streams.pop(request_id, None) if self._client else None
        if waiting is not None:
            if fault is not None:
                self._faults[request_id] = fault
            error = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
            waiting.send_nowait(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))

    def _tell_cancelled(self, request_id: int, reason: str) -> None:
        """The server must know that nobody waits any more (STDIO-5)."""
        if self.dead or self._client is None or self._connection is None:
            return
        self._connection.abandon(request_id)
        task = asyncio.create_task(self._send_cancelled(self._client, request_id, reason))
        self._messages.add(task)
        task.add_done_callback(self._messages.discard)

    async def _send_cancelled(self, client: ClientSession, request_id: int, reason: str) -> None:
        params = types.CancelledNotificationParams(requestId=request_id, reason=reason)
        notification = types.ClientNotification(types.CancelledNotification(params=params))
        try:
            async with asyncio.timeout(_TELL_SECONDS):
                await client.send_notification(notification)
        except (TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            logger.debug("server %r could not be told of a cancelled call", self._server)

    async def _own(self) -> None:
        """The whole life of the session; an anyio scope must be left by the task that entered it."""
        try:
            async with self._open() as connection:
                self._connection = connection
                connection.fail = self._fail
                if connection.ended.is_set():
                    self._stop.set()
                connection.ended = self._stop
                async with ClientSession(connection.read, connection.write, client_info=_CLIENT) as client:
                    self._client = client
                    try:
                        if await self._initialise(client):
                            self._ready.set()
                            await self._stop.wait()
                    finally:
                        self._finish(client)
        except asyncio.CancelledError:
            self._fail_start("it was stopped while it started")
            raise
        except Exception as error:
            self._fail_start(_reason(error))
        finally:
            self._finish(None)

    def _finish(self, client: ClientSession | None) -> None:
        """Nobody may wait any longer; what still takes time is the transport's end alone."""
        self._stop.set()
        for task in self._messages:
            task.cancel()
        # The library would leave these waiting: it is cancelled before it can tell them.
        for request_id in list(client._response_streams) if client else ():
            self._fail(int(request_id), None)
        self._client = None
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()

    async def _initialise(self, client: ClientSession) -> bool:
        fault: Fault | None = None
        try:
            async with asyncio.timeout(self._init_seconds):
                result = await client.initialize()
        except TimeoutError:
            why = f"it did not initialise within {self._init_seconds:g} seconds"
        except McpError as error:
            fault = self._faults.pop(0, None)
            why = fault.message if fault else error.error.message
        except ValidationError:
            why = "its answer to initialize is malformed"
        except (RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            why = _reason(error)
        else:
            self.instructions = result.instructions
            return True
        if self._connection is not None and self._is_closed(client):
            await self._connection.settle()
        self._fail_start(why, fault)
        return False

    def _fail_start(self, why: str, fault: Fault | None = None) -> None:
        if self._ready.is_set():
            return
        failure = self._unavailable(f"it could not be started: {why}", sent=False)
        failure.http_status = fault.status if fault else None
        self._failure = failure
        self._ready.set()


def _reason(error: BaseException) -> str:
    """The first leaf of an exception group, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, httpx.HTTPStatusError):
        return f"it answered with HTTP status {error.response.status_code}"
    if isinstance(error, FileNotFoundError):
        return "there is no such command or working directory"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
