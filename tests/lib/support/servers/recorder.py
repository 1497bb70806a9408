"""An HTTP MCP server that keeps the raw headers of every request, whatever the path; prints its URL.

Tools: ``touch``, and the jobs ``job_submit``, ``job_status``, ``job_cancel``, ``job_respond``. What happens
beside MCP: GET ``/seen`` answers all records, PUT ``/refuse`` takes a JSON list of ``Authorization`` values
that are answered with 401 from then on, PUT ``/redirect`` a URL that every POST is sent to.
"""

import contextlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script

TOOLS = [rpc.tool(name) for name in ("touch", "job_submit", "job_status", "job_cancel", "job_respond")]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[dict[str, Any]] = []  # noqa: RUF012 - one server, one list
    refused: frozenset[str] = frozenset()
    redirect: str | None = None

    def do_POST(self) -> None:
        request = json.loads(self.body())
        params = request.get("params") or {}
        self.seen.append(
            {
                "method": request.get("method"),
                "tool": params.get("name"),
                "arguments": params.get("arguments"),
                "headers": [list(pair) for pair in self.headers.raw_items()],
                "path": self.path,
            }
        )
        if self.redirect is not None:
            self.respond(307, None, Location=self.redirect)
        elif self.headers.get("authorization") in self.refused:
            self.respond(401, {"error": {"message": f"no: {self.headers.get('authorization')}"}})
        else:
            answer = rpc.answer(request, TOOLS, self.call)
            self.respond(202 if answer is None else 200, answer)

    def do_PUT(self) -> None:
        value = json.loads(self.body())
        if self.path == "/refuse":
            Handler.refused = frozenset(value)
        else:
            Handler.redirect = value
        self.respond(200, {})

    def do_GET(self) -> None:
        if self.path == "/seen":
            self.respond(200, self.seen)
        else:
            self.respond(405, None)

    def do_DELETE(self) -> None:
        self.respond(405, None)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if not name.startswith("job_"):
            return rpc.text(name)
        status = {"job_cancel": "cancelled"}.get(name, "running")
        job = {"task_id": arguments.get("task_id", "job-1"), "status": status}
        return rpc.text(json.dumps(job), structuredContent=job)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["content-length"]))

    def respond(self, status: int, body: Any, **headers: str) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a client that leaves early is no news
            super().handle()

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # a crowd may come at once


def main() -> None:
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
