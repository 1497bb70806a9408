"""The driver suite for remotes that speak HTTP."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from moorage.contract import GatewayContext, TaskDriver
from moorage.testing.driver import DriverConformance
from moorage.testing.http_remote import HttpRemote, HttpReply, HttpRequest
from moorage.testing.remote import Operation, Said, Trouble

GARBLED: Sequence[Any] = (
    HttpReply("", 200),
    HttpReply("{not json", 200),
    HttpReply("<html>It works!</html>", 200, "text/html"),
    HttpReply([], 200),
    HttpReply("null", 200),
    HttpReply('"text"', 200),
    HttpReply({}, 200),
    HttpReply({"unrelated": True}, 200),
)
"""Bodies that no JSON protocol of objects knows."""


class HttpDriverConformance(DriverConformance[HttpRemote]):
    """`DriverConformance` over a real HTTP server on loopback, whose address is ``remote.url``.

    Beside `build` and `spell`, which returns an `HttpReply` or a JSON body, say which operation and job a
    request means (`route`). Refusals, overload and unknown jobs are the statuses 422, 503 and 404, unless
    `fail` says otherwise.
    """

    def build(self, gateway: GatewayContext, remote: HttpRemote) -> TaskDriver:
        """The driver, on the server at ``remote.url``."""
        raise NotImplementedError(f"{type(self).__name__} must say how its driver is built: build()")

    def route(self, request: HttpRequest) -> tuple[Operation, str | None] | None:
        """What a request asks for, and of which job (None for a submit); None for no such path."""
        raise NotImplementedError(f"{type(self).__name__} must say what a request means: route()")

    def garbled(self, said: Said) -> Sequence[Any]:
        """See `DriverConformance.garbled`."""
        return GARBLED

    def fail(self, trouble: Trouble, operation: Operation, remote_id: str | None) -> Any:
        """See `DriverConformance.fail`."""
        if trouble is Trouble.OVERLOADED:
            return HttpReply({"error": "try later"}, 503)
        if trouble is Trouble.REFUSED:
            return HttpReply({"error": "these arguments make no sense"}, 422)
        if trouble is Trouble.FORGOTTEN:
            return HttpReply({"error": "no such job"}, 404)
        return None

    @asynccontextmanager
    async def _remote(self) -> AsyncIterator[HttpRemote]:
        remote = HttpRemote(self.spell, self.fail, self.route)
        remote.start()
        try:
            yield remote
        finally:
            remote.stop()
