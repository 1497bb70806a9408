"""Discovery of 1,000 tools on 50 servers: ``uv run python -m benchmarks.discovery``.

All servers are paths of one process over HTTP, each slower than the one before; the last one decides. Then
again with a dead, a hanging and a lying server among them.
"""

import asyncio
import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.mcp_parts import WHO, drivers, remote_server
from moorage.contract import ServerConfig, ToolSource
from moorage_drivers.mcp.catalogue import McpCatalogue

SERVERS, TOOLS = 50, 20
SLOWEST_SECONDS = 1.0
HANGING_TIMEOUT_SECONDS = 2.0


class Handler(BaseHTTPRequestHandler):
    """``/<seconds>``: a server that takes so long to list its tools; ``/hang`` and ``/lie`` say the rest."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind = self.path.strip("/")
        if "id" not in request:
            self._send(202, None)
        elif request["method"] == "initialize" and kind == "hang":
            threading.Event().wait(60)
        elif request["method"] == "initialize":
            about = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "serverInfo": {"name": "", "version": ""},
            }
            self._send(200, {"jsonrpc": "2.0", "id": request["id"], "result": about})
        elif kind == "lie":
            self._send(200, {"jsonrpc": "2.0", "id": request["id"], "result": ["no", "tools"]})
        else:
            time.sleep(float(kind))
            schema = {"type": "object", "properties": {"text": {"type": "string"}}}
            tools = [
                {"name": f"tool_{n}", "description": "A tool.", "inputSchema": schema} for n in range(TOOLS)
            ]
            self._send(200, {"jsonrpc": "2.0", "id": request["id"], "result": {"tools": tools}})

    def _send(self, status: int, body: Any) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


async def _seconds(*servers: ServerConfig) -> tuple[float, int]:
    async with drivers(*servers) as context:
        source: ToolSource = context.service(McpCatalogue)
        begun = time.perf_counter()
        tools = await source.tools(WHO)
        return time.perf_counter() - begun, len(tools)


async def _measure(base: str) -> None:
    slow = [SLOWEST_SECONDS * (number + 1) / SERVERS for number in range(SERVERS)]
    servers = [remote_server(f"s{number}", f"{base}/{seconds}") for number, seconds in enumerate(slow)]
    await _seconds(servers[0])
    alone, _ = await _seconds(servers[-1])
    together, count = await _seconds(*servers)
    print(f"the slowest server alone        {alone:6.2f} s")
    print(f"{count:,} tools on {SERVERS} servers     {together:6.2f} s   {together / alone:.2f} times")
    bad = [
        remote_server("dead", "http://127.0.0.1:9/mcp"),
        remote_server("liar", f"{base}/lie"),
        replace(
            remote_server("hanging", f"{base}/hang"), session_init_timeout_seconds=HANGING_TIMEOUT_SECONDS
        ),
    ]
    mixed, count = await _seconds(*servers, *bad)
    print(f"… and a dead, a hanging (given {HANGING_TIMEOUT_SECONDS:g} s) and a lying one")
    print(f"{count:,} tools                     {mixed:6.2f} s")


def main() -> None:
    """Print seconds, and the ratio to the slowest server."""
    if sys.argv[1:] == ["serve"]:
        server = Server(("127.0.0.1", 0), Handler)
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()
    command = [sys.executable, "-m", "benchmarks.discovery", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            asyncio.run(_measure(process.stdout.readline().strip()))
        finally:
            process.kill()


if __name__ == "__main__":
    main()
