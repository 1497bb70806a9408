"""The stdio transport: newline-delimited JSON-RPC with a process of ours (STDIO-1, STDIO-5)."""

import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, JSONRPCRequest

from moorage.contract import ServerConfig
from moorage_drivers.mcp.connections import Connection, Fault
from moorage_drivers.mcp.process import Child
from moorage_drivers.mcp.redaction import Quoter
from moorage_drivers.mcp.workspace import temporary_folder

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 1024 * 1024
SHOWN_TAIL_CHARACTERS = 1_000
GRACE_SECONDS = 1.0
"""How long a process may take after its input was closed, and after SIGTERM."""


class LineReader:
    """Turns a server's output into messages.

    A line that is no message is skipped, unless it is evidently the broken answer to a request, which is
    then answered with an error. Bytes that are no text, or a line without an end, end the connection.
    """

    def __init__(self, server: str, connection: Connection, sink: MemoryObjectSendStream[Any]) -> None:
        self._server = server
        self._connection = connection
        self._sink = sink
        self._buffer = bytearray()
        self._warned = False

    def feed(self, data: bytes) -> None:
        self._buffer += data
        if b"\n" not in data:
            if len(self._buffer) > MAX_LINE_BYTES:
                self.end(f"it wrote a line of more than {MAX_LINE_BYTES} bytes")
            return
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            if line.strip():
                self._line(bytes(line))

    def end(self, reason: str | None = None) -> None:
        """The output has ended, or is of no use any more."""
        if reason and not self._connection.ended.is_set():
            self._connection.reason = reason
        self._connection.ended.set()
        self._sink.close()

    def _line(self, line: bytes) -> None:
        try:
            message = JSONRPCMessage.model_validate_json(line.decode("utf-8"))
        except UnicodeDecodeError:
            self.end("it wrote bytes that are no UTF-8 to its standard output")
            return
        except ValueError:
            self._unreadable(line)
            return
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._sink.send_nowait(SessionMessage(message))

    def _unreadable(self, line: bytes) -> None:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        request_id = value.get("id") if isinstance(value, dict) and "method" not in value else None
        if isinstance(request_id, int) and {"result", "error"} & value.keys():
            self._connection.fail(request_id, Fault("malformed", "its reply is malformed", reply=value))
        elif not self._warned:
            self._warned = True
            logger.warning("server %r writes lines to its standard output that are no messages", self._server)


def child_environment(server: ServerConfig, workspace: Path) -> dict[str, str]:
    """A minimal environment and the server's own; never the gateway's (STDIO-5)."""
    environment = get_default_environment() | dict(server.env)
    if not {"TMPDIR", "TMP", "TEMP"} <= environment.keys():
        folder = str(temporary_folder(workspace))
        environment = {"TMPDIR": folder, "TMP": folder, "TEMP": folder} | environment
    return environment


@asynccontextmanager
async def stdio_connection(
    server: ServerConfig, workspace: Path, quoting: Quoter
) -> AsyncIterator[Connection]:
    """Start the server's process and speak with it; its whole group is gone on exit. Raises `OSError`."""
    to_us, read = anyio.create_memory_object_stream[SessionMessage | Exception](float("inf"))
    write, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    connection = Connection()
    connection.attach(read, write)
    lines = LineReader(server.name, connection, to_us)
    try:
        child = await Child.start(
            [server.command or "", *server.args],
            env=child_environment(server, workspace),
            cwd=server.cwd or os.fspath(workspace),
            on_output=lines.feed,
            on_end=lines.end,
        )
    except BaseException:
        for stream in (to_us, read, write, from_us):
            stream.close()
        raise
    connection.tail = lambda: quoting.quote(child.stderr_tail(), limit=SHOWN_TAIL_CHARACTERS)
    connection.returncode = lambda: child.returncode
    connection.settle = child.settle
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_write, child, from_us, connection, lines)
            yield connection
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await child.close(GRACE_SECONDS)
        for stream in (to_us, read, write, from_us):
            stream.close()


async def _write(
    child: Child,
    messages: MemoryObjectReceiveStream[SessionMessage],
    connection: Connection,
    lines: LineReader,
) -> None:
    async for message in messages:
        try:
            text = message.message.model_dump_json(by_alias=True, exclude_none=True).encode()
            await child.write(text + b"\n")
        except ValueError:
            if isinstance(message.message.root, JSONRPCRequest):
                fault = Fault("unreachable", "the arguments cannot be written as JSON")
                connection.fail(int(message.message.root.id), fault)
        except (BrokenPipeError, ConnectionResetError):
            lines.end()
            return
