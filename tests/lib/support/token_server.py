"""A real token endpoint over HTTP, which tests steer and whose requests they read."""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Answer = Callable[[dict[str, str]], Any]


class TokenServer:
    """``answer`` makes the reply to a form: a mapping is sent as JSON with status 200, a `Response` as it is.

    By default tokens are numbered and live for an hour. With ``rotating``, each refresh token works once, and
    a used one ends the whole line, as careful servers do.
    """

    def __init__(self) -> None:
        self.url = ""
        self.forms: list[dict[str, str]] = []
        self.expires_in: Any = 3600
        self.answer: Answer = self._ordinary
        self.held = threading.Event()
        """Replies wait while it is cleared."""
        self.held.set()
        self.rotating: str | None = None
        self.reused = False
        self._numbers = itertools.count(1)

    def _ordinary(self, form: dict[str, str]) -> Any:
        number = next(self._numbers)
        reply = {
            "access_token": f"access-token-{number}",
            "token_type": "Bearer",
            "expires_in": self.expires_in,
        }
        if self.rotating is not None:
            if form.get("refresh_token") != self.rotating or self.reused:
                self.reused = True
                return JSONResponse({"error": "invalid_grant", "sent": form}, 400)
            self.rotating = reply["refresh_token"] = f"refresh-token-{number}"
        return reply

    async def _handle(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        self.forms.append(form)
        await run_in_threadpool(self.held.wait, 30)
        reply = self.answer(form)
        return reply if isinstance(reply, Response) else JSONResponse(reply)


@contextmanager
def token_server() -> Iterator[TokenServer]:
    made = TokenServer()
    app = Starlette(routes=[Route("/token", made._handle, methods=["POST", "GET"])])
    config = uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.005)
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        made.url = f"http://127.0.0.1:{port}/token"
        yield made
    finally:
        made.held.set()
        server.should_exit = True
        thread.join(10)
