"""An HTTP MCP server whose failures quote what they were sent: headers, path and query.

Its tools are failures: ``status_401``, ``status_403``, ``status_500``, ``reset``, ``slow``, ``rpc_error``;
``ok`` answers. With the argument ``closed`` it refuses to initialise, and says why.
"""

import contextlib
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script

NAMES = ("ok", "status_401", "status_403", "status_500", "reset", "slow", "rpc_error")
TOOLS = [rpc.tool(name) for name in NAMES]
CLOSED = "closed" in sys.argv[1:]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        quoted = f"{self.path} {self.headers.raw_items()}"
        called = request.get("method") == "tools/call"
        tool = str(request["params"]["name"]) if called else ""
        if CLOSED or tool in ("status_401", "status_403", "status_500"):
            status = 403 if CLOSED else int(tool.removeprefix("status_"))
            self.respond(status, {"error": {"message": f"refused: {quoted}"}})
        elif tool == "reset":
            self.connection.close()
        elif tool == "rpc_error":
            self.respond(200, rpc.error(request, f"failed on {quoted}"))
        else:
            if tool == "slow":
                time.sleep(3)
            answer = rpc.answer(request, TOOLS, lambda name, arguments: rpc.text(name))
            self.respond(202 if answer is None else 200, answer)

    def do_GET(self) -> None:
        self.respond(405, None)

    do_DELETE = do_GET

    def respond(self, status: int, body: Any) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().handle()

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
