"""The application behind a real socket, in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar import Litestar

from moorage_api.server import GatewayServer, listen
from moorage_api.settings import ApiSettings


@asynccontextmanager
async def serving(app: Litestar, settings: ApiSettings | None = None) -> AsyncIterator[str]:
    """Serve it on a free port; yields the base URL."""
    sock = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    ready = asyncio.Event()
    server = GatewayServer(app, settings or ApiSettings(), ready.set, signals=())
    task = asyncio.create_task(server.serve([sock]))
    waiting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield url
    finally:
        waiting.cancel()
        if not task.done():
            server.handle_exit(15, None)
        try:
            await task
        finally:
            sock.close()
