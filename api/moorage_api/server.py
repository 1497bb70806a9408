"""Serving the application with uvicorn, to a bounded end."""

import asyncio
import contextlib
import logging
import math
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import FrameType
from typing import cast

import uvicorn
from litestar import Litestar

from moorage.contract.errors import ConfigError
from moorage_api.settings import ApiSettings
from moorage_api.streaming import CutShort
from moorage_api.wiring import KEY, Runtime

log = logging.getLogger(__name__)
STOP_TIMEOUT_SECONDS = 8.0
"""How long closing the gateway may take after the last request; then the process goes anyway."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises `ConfigError` that says why it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
    # With the protocol named, asyncio sends what it is given at once (TCP_NODELAY) on every connection that
    # is accepted here; else a body that follows its head waits for the client's delayed acknowledgement.
    named = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=made.detach())
    named.set_inheritable(False)
    return named


def address(sock: socket.socket) -> str:
    """The URL of what listens there."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class GatewayServer(uvicorn.Server):
    """uvicorn around an application whose gateway opens before the first request is accepted.

    A start that fails raises what went wrong, with everything that was open already closed again (C74). A
    first signal ends it gracefully, also in the middle of a start; a second one at once.
    """

    def __init__(
        self,
        app: Litestar,
        settings: ApiSettings,
        ready: Callable[[], None] = lambda: None,
        *,
        stopping: Callable[[], None] = lambda: None,
        signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
    ) -> None:
        config = uvicorn.Config(
            # Litestar's and uvicorn's types of ASGI messages differ in spelling only.
            cast("Callable[..., object]", app),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=math.ceil(settings.shutdown_grace_seconds),
        )
        super().__init__(config)
        self._application = app
        self._ready = ready
        self._stopping = stopping
        self._signals = signals
        self._serving: asyncio.Task[None] | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Open, serve until a signal, close."""
        self._serving = asyncio.current_task()
        with self.capture_signals(), _quiet_about_what_is_cut_short():
            async with self._life():
                await self._serve(sockets)

    @contextlib.asynccontextmanager
    async def _life(self) -> AsyncIterator[None]:
        life = self._application.lifespan()
        try:
            await life.__aenter__()
        except BaseExceptionGroup as error:
            # Litestar opens the gateway inside a task group of its own, which wraps what the gateway raises.
            raise _innermost(error) from None
        try:
            yield
        finally:
            try:
                async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                    await life.__aexit__(*sys.exc_info())
            except TimeoutError:
                log.error("closing the gateway took more than %g seconds; going anyway", STOP_TIMEOUT_SECONDS)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, so that they do not hold up the stop; before the start is complete, give up."""
        runtime: Runtime = self._application.state[KEY]
        runtime.stopping.set()
        self._stopping()
        super().handle_exit(sig, frame)
        if not self.started and self._serving is not None:
            self._serving.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals in the loop, which wakes up at once, and do not raise them again at the end: a
        gateway that was asked to stop and did has exit status 0."""
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in self._signals:
                loop.remove_signal_handler(number)


@contextlib.contextmanager
def _quiet_about_what_is_cut_short() -> Iterator[None]:
    """uvicorn logs what breaks a connection as a fault with its traceback; this one is meant."""

    def is_a_fault(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        while error is not None and not isinstance(error, CutShort):
            inner = _innermost(error)
            error = inner if inner is not error else error.__cause__ or error.__context__
        return error is None

    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(is_a_fault)
    try:
        yield
    finally:
        logger.removeFilter(is_a_fault)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
