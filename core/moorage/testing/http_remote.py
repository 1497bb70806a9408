"""A `FaultyRemote` behind a real HTTP server on the loopback interface."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from moorage.testing.remote import FaultyRemote, NotReached, Operation, ReplyLost, Said, Trouble

MAX_BODY_BYTES = 16_777_216


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it arrived. Header names are in lower case; ``path`` has no query."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply to send. ``body`` is text as it is, or something to be written as JSON."""

    body: Any = None
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The reply's bytes on the wire."""
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        content = text.encode("utf-8", "surrogatepass")
        lines = [
            f"HTTP/1.1 {self.status} .",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(content)}",
            "Connection: close",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content


Route = Callable[[HttpRequest], "tuple[Operation, str | None] | None"]


class HttpRemote(FaultyRemote):
    """Serves the remote's jobs over HTTP from a thread of its own, so that a driver that blocks its event
    loop is caught and not deadlocked. ``route`` says which operation and which job a request means."""

    def __init__(
        self,
        spell: Callable[[Said], Any],
        fail: Callable[[Trouble, Operation, str | None], Any],
        route: Route,
    ) -> None:
        super().__init__(spell, fail)
        self._route = route
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http-remote", daemon=True)
        self._server: asyncio.Server | None = None
        self.port = 0
        self.requests: list[HttpRequest] = []

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen on a free port."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def stop(self) -> None:
        """Stop listening, and drop whoever still waits."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=MAX_BODY_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        here = asyncio.current_task()
        left = [task for task in asyncio.all_tasks() if task is not here]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            if request is not None:
                reply = await self._reply(request)
                if reply is not None:
                    writer.write(reply.encoded())
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the caller has gone
        except asyncio.CancelledError:
            pass  # the remote stops; asyncio's streams would log a cancelled handler as a fault
        finally:
            writer.close()

    async def _reply(self, request: HttpRequest) -> HttpReply | None:
        self.requests.append(request)
        meant = self._route(request)
        if meant is None:
            return HttpReply({"error": "no such path"}, status=404)
        operation, remote_id = meant
        try:
            made = await self.exchange(operation, remote_id, request.json())
        except (NotReached, ReplyLost):
            return None
        return made if isinstance(made, HttpReply) else HttpReply(made)


async def _read(reader: asyncio.StreamReader) -> HttpRequest | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    target = urlsplit(rest.rpartition(" ")[0])
    headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines) if n}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _chunks(reader)
    else:
        body = await reader.readexactly(min(int(headers.get("content-length") or 0), MAX_BODY_BYTES))
    return HttpRequest(method, target.path, target.query, headers, body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body
