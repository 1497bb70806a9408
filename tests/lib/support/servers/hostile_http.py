"""A streamable HTTP server whose tools each answer with another fault of the transport; prints its URL.

``--forget FILE``: while that file exists, sessions are unknown. ``--init FAULT``: initialize itself fails.
"""

import argparse
import gzip
import json
import os
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script

FAULTS = [
    "status_400", "status_401", "status_403", "status_404", "status_429", "status_500", "status_503",
    "html", "bad_json", "truncated", "early_end", "reset", "sse_junk", "sse_early_end", "sse_other_id",
    "wrong_id", "accepted", "redirect_loop", "redirect_away", "no_type", "list_result", "request_back",
    "resumable_early_end", "sse_open_for_ever",
]  # fmt: skip
FINE = ["ok", "slow", "slow_sse", "gzip", "chatty_sse", "resumed", "notes", "redirect_once"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log: list[Any] = []  # noqa: RUF012 - one server, one list
    open_streams = 0
    forget: str | None = None
    init: str | None = None

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        request = json.loads(body)
        self.log.append(
            {"method": request.get("method"), "params": request.get("params"), "id": request.get("id"),
             "session": self.headers.get("mcp-session-id"), "connection": self.client_address[1]}
        )  # fmt: skip
        if "id" not in request:
            self.respond(202, b"")
        elif request["method"] == "initialize" and self.init:
            self.fault(self.init, request)
        elif request["method"] != "initialize" and self.forget and os.path.exists(self.forget):
            self.respond(404, b"{}")
        elif request["method"] == "tools/call":
            self.fault(request["params"]["name"], request)
        else:
            answer = rpc.answer(request, [rpc.tool(name) for name in FAULTS + FINE], lambda *_: None)
            headers = {"mcp-session-id": uuid.uuid4().hex} if request["method"] == "initialize" else {}
            self.json(answer, headers)

    def fault(self, name: str, request: dict[str, Any]) -> None:
        fine = rpc.reply(request, rpc.text(name))
        if name.startswith("status_"):
            self.respond(int(name[-3:]), json.dumps({"error": {"message": f"fault {name}"}}).encode())
            return
        match name:
            case "html":
                self.respond(200, b"<html>a proxy</html>", "text/html")
            case "bad_json":
                self.respond(200, b'{"jsonrpc": "2.0", ')
            case "truncated":
                self.head(200, "application/json", 10_000)
                self.wfile.write(b'{"jsonrpc"')
                self.close_connection = True
            case "early_end":
                self.respond(200, b"")
            case "reset":
                self.close_connection = True
            case "sse_junk":
                self.events(b"event: message\ndata: {nonsense\n\n", hold=600)
            case "sse_early_end":
                self.events(b": nothing\n\n")
            case "sse_other_id":
                self.events(self.event({**fine, "id": 999}))
            case "sse_open_for_ever":
                self.events(b": nothing\n\n", hold=600)
            case "wrong_id":
                self.json({**fine, "id": 999})
            case "accepted":
                self.respond(202, b"")
            case "redirect_loop":
                self.redirect(self.path)
            case "redirect_once" if self.path == "/mcp":
                self.redirect("/mcp/")
            case "redirect_away":
                self.redirect("http://127.0.0.2:9/elsewhere")
            case "no_type":
                self.respond(200, b"ok", "")
            case "list_result":
                self.json(rpc.reply(request, ["no", "object"]))
            case "request_back":
                self.json({"jsonrpc": "2.0", "id": request["id"], "method": "ping"})
            case "resumable_early_end":
                self.events(b"id: gone-1\ndata:\n\n")
            case "resumed":
                self.events(f"id: {json.dumps(request['id'])}\nretry: 10\ndata:\n\n".encode())
            case "slow":
                time.sleep(1.0)
                self.json(fine)
            case "slow_sse":
                self.events(b": wait\n\n", self.event(fine), pause=1.0)
            case "chatty_sse":
                note = {
                    "jsonrpc": "2.0",
                    "method": "notifications/message",
                    "params": {"level": "info", "data": "x"},
                }
                self.events(
                    b"event: ping\ndata: x\n\n", self.event(note), self.event(fine).replace(b"\n", b"\r\n")
                )
            case "gzip":
                self.respond(
                    200, gzip.compress(json.dumps(fine).encode()), extra={"content-encoding": "gzip"}
                )
            case "notes":
                facts = {
                    "log": list(self.log),
                    "open": Handler.open_streams,
                    "threads": threading.active_count(),
                }
                self.json(rpc.reply(request, rpc.text("notes", structuredContent=facts)))
            case _:
                self.json(fine)

    def do_GET(self) -> None:
        last = self.headers.get("last-event-id")
        if last is None or last.startswith("gone"):
            self.respond(405, b"")
            return
        answer = {"jsonrpc": "2.0", "id": json.loads(last), "result": rpc.text("resumed")}
        self.events(self.event(answer))

    def do_DELETE(self) -> None:
        self.log.append({"method": "DELETE", "session": self.headers.get("mcp-session-id")})
        self.respond(200, b"")

    def event(self, message: Any) -> bytes:
        return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"

    def events(self, *events: bytes, pause: float = 0.0, hold: float = 0.0) -> None:
        Handler.open_streams += 1
        try:
            self.head(200, "text/event-stream", None)
            for number, event in enumerate(events):
                time.sleep(pause if number else 0)
                self.wfile.write(event)
                self.wfile.flush()
            until = time.monotonic() + hold
            while time.monotonic() < until:
                time.sleep(0.05)
                self.wfile.write(b": still here\n\n")
                self.wfile.flush()
        except OSError:
            pass
        finally:
            Handler.open_streams -= 1
            self.close_connection = True

    def redirect(self, where: str) -> None:
        self.send_response(307)
        self.send_header("Location", where)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def json(self, message: Any, headers: dict[str, str] | None = None) -> None:
        self.respond(200, json.dumps(message).encode(), extra=headers)

    def head(self, status: int, kind: str, length: int | None, extra: dict[str, str] | None = None) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        if length is None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(length))
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()

    def respond(
        self, status: int, body: bytes, kind: str = "application/json", extra: dict[str, str] | None = None
    ) -> None:
        self.head(status, kind, len(body), extra)
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--forget")
    parser.add_argument("--init")
    options = parser.parse_args()
    Handler.forget, Handler.init = options.forget, options.init
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_address[1]}/mcp", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
