"""A job service to try the driver on: ``python tests/job_service.py [PORT]``.

``/mcp`` is an MCP server with the tool ``run``; ``/jobs`` is where its jobs are.
"""

import itertools
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOL = {
    "name": "run",
    "description": "Renders frames, slowly.",
    "inputSchema": {"type": "object", "properties": {"frames": {"type": "integer", "default": 3}}},
}


class Jobs:
    """Each job takes as many seconds as it has frames."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._jobs: dict[str, dict[str, Any]] = {}
        self._keys: dict[str, str] = {}
        self._lock = threading.Lock()

    def start(self, arguments: Any, key: str) -> dict[str, Any]:
        with self._lock:
            if key not in self._keys:
                job_id = self._keys[key] = f"job-{next(self._ids)}"
                frames = arguments.get("frames", 3) if isinstance(arguments, dict) else 3
                self._jobs[job_id] = {"frames": int(frames), "began": time.monotonic(), "state": "running"}
            return self._show(self._keys[key])

    def look(self, job_id: str) -> dict[str, Any] | None:
        with self._lock:
            return self._show(job_id) if job_id in self._jobs else None

    def cancel(self, job_id: str) -> dict[str, Any] | None:
        with self._lock:
            if job_id not in self._jobs:
                return None
            if self._show(job_id)["state"] == "running":
                self._jobs[job_id]["state"] = "cancelled"
            return self._show(job_id)

    def _show(self, job_id: str) -> dict[str, Any]:
        job = self._jobs[job_id]
        if job["state"] == "running" and time.monotonic() - job["began"] >= job["frames"]:
            job["state"] = "done"
        shown: dict[str, Any] = {"id": job_id, "state": job["state"], "again_in": 1}
        if job["state"] == "done":
            shown["result"] = {"frames": job["frames"]}
        return shown


def mcp(request: dict[str, Any]) -> dict[str, Any] | None:
    """The little of MCP that discovery needs."""
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "jobs", "version": "1"},
        },
        "tools/list": {"tools": [TOOL]},
        "ping": {},
    }
    if "id" not in request:
        return None
    method = request.get("method")
    if method in results:
        return {"jsonrpc": "2.0", "id": request["id"], "result": results[method]}
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}}


class Handler(BaseHTTPRequestHandler):
    """Routes requests; one thread each."""

    jobs = Jobs()

    def do_GET(self) -> None:
        if self.path.startswith("/jobs/"):
            self._answer(self.jobs.look(self.path.removeprefix("/jobs/")))
        else:
            self._send(405, None)

    def do_DELETE(self) -> None:
        self._answer(self.jobs.cancel(self.path.removeprefix("/jobs/")))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/mcp":
            reply = mcp(body)
            self._send(200 if reply else 202, reply)
        else:
            self._answer(self.jobs.start(body["arguments"], body["key"]))

    def _answer(self, job: dict[str, Any] | None) -> None:
        self._send(404 if job is None else 200, job or {"error": "no such job"})

    def _send(self, status: int, body: Any) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8940
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()
