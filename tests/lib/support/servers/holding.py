"""An HTTP MCP server of jobs that is steered by files: ``holding.py FOLDER``; prints its URL.

``hold-submit`` and ``hold-status`` keep those calls waiting while they exist; with ``done`` jobs have ended.
``log`` has a line when a call begins, and one when it is answered.
"""

import contextlib
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script

FOLDER = Path(sys.argv[1])
TOOLS = [rpc.tool(name) for name in ("job_submit", "job_status", "job_cancel")]
LOCK = threading.Lock()


def log(line: str) -> None:
    with LOCK, (FOLDER / "log").open("a") as file:
        file.write(line + "\n")


def call(name: str, arguments: dict[str, Any]) -> Any:
    log(f"begin {name}")
    hold = FOLDER / name.replace("job_", "hold-")
    while hold.exists():
        time.sleep(0.01)
    status = "completed" if name == "job_status" and (FOLDER / "done").exists() else "running"
    job = {"task_id": arguments.get("task_id", "job-1"), "status": status, "result": {"frames": 3}}
    return rpc.text(json.dumps(job), structuredContent=job)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = rpc.answer(request, TOOLS, call)
        self.respond(202 if answer is None else 200, answer)
        if request.get("method") == "tools/call":
            log(f"answered {request['params']['name']}")

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
