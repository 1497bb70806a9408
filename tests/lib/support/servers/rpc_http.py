"""The HTTP side of the small servers here: JSON in, JSON out, and clients that leave early are no news."""

import contextlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """Answers 405 to what a server does not take over."""

    protocol_version = "HTTP/1.1"

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def respond(self, status: int, body: Any) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

    def do_GET(self) -> None:
        self.respond(405, None)

    def do_DELETE(self) -> None:
        self.respond(405, None)

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().handle()

    def log_message(self, *_: Any) -> None:
        pass


def serve(handler: type[JsonHandler]) -> None:
    """On a free port, for ever; prints the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
