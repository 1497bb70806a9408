"""A small secrets store with the KV v2 protocol, in a thread: enough of HashiCorp Vault to read from."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "token-of-the-gateway"


class Vault:
    """``secrets``: path → fields. ``reads`` counts what was asked for; ``broken`` answers 503."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, Any]] = {}
        self.reads: list[str] = []
        self.broken = False
        self.url = ""


@contextmanager
def vault() -> Iterator[Vault]:
    made = Vault()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix("/v1/secret/data/")
            made.reads.append(path)
            if self.headers.get("X-Vault-Token") != TOKEN:
                self._send(403, {"errors": ["permission denied"]})
            elif made.broken:
                self._send(503, {"errors": ["Vault is sealed"]})
            elif path not in made.secrets:
                self._send(404, {"errors": []})
            else:
                self._send(200, {"data": {"data": made.secrets[path], "metadata": {"version": 1}}})

        def _send(self, status: int, body: Any) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
