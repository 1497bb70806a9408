"""An HTTP MCP server of jobs that ask for approval; prints its URL. GET ``/answers`` shows all that came."""

import contextlib
import itertools
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script

TOOLS = [rpc.tool(f"job_{role}") for role in ("submit", "status", "cancel", "respond")]
SCHEMA = {"type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]}
NUMBERS = itertools.count(1)
JOBS: dict[str, Any] = {}
ANSWERS: list[Any] = []


def call(name: str, arguments: dict[str, Any]) -> Any:
    job: dict[str, Any]
    if name == "job_submit":
        job_id = f"job-{next(NUMBERS)}"
        JOBS[job_id] = None
        job = {"task_id": job_id, "status": "running"}
    else:
        job_id = arguments["task_id"]
        if name == "job_respond":
            ANSWERS.append(arguments["response"])
            JOBS[job_id] = arguments["response"]
        if JOBS[job_id] is None:
            request = {"question": "May it go on?", "schema": SCHEMA}
            job = {"task_id": job_id, "status": "input_required", "input_required": request}
        else:
            result = {"approved": JOBS[job_id]["approve"]}
            job = {"task_id": job_id, "status": "completed", "result": result}
    return rpc.text(json.dumps(job), structuredContent=job)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = rpc.answer(request, TOOLS, call)
        self.respond(202 if answer is None else 200, answer)

    def do_GET(self) -> None:
        self.respond(200 if self.path == "/answers" else 405, ANSWERS if self.path == "/answers" else None)

    def do_DELETE(self) -> None:
        self.respond(405, None)

    def respond(self, status: int, body: Any) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
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
