"""An HTTP server that keeps the raw headers of every request, by JSON-RPC method; prints its URL.

``--require NAME=VALUE`` answers 401 without exactly that header.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script

TOOLS = [rpc.tool("seen"), rpc.tool("touch")]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[dict[str, Any]] = []  # noqa: RUF012 - one server, one list
    required: tuple[str, str] | None = None

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append(
            {
                "method": request.get("method"),
                "headers": [list(pair) for pair in self.headers.raw_items()],
                "path": self.path,
                "connection": self.client_address[1],
            }
        )
        if self.required and self.headers.get(self.required[0]) != self.required[1]:
            self.respond(401, {"error": {"message": "who are you?"}})
            return
        answer = rpc.answer(request, TOOLS, self.call)
        if answer is None:
            self.respond(202, None)
        else:
            self.respond(200, answer)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return rpc.text(name, structuredContent={"seen": list(self.seen)} if name == "seen" else None)

    def do_GET(self) -> None:
        self.respond(405, None)

    do_DELETE = do_GET

    def respond(self, status: int, body: Any) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--require")
    options = parser.parse_args()
    if options.require:
        name, _, value = options.require.partition("=")
        Handler.required = (name, value)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_address[1]}/mcp", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
