"""``python -m support.serve_fake serve|keys …``: the API's commands around a gateway made of memory.

``FAKE_FAIL`` makes the gateway's opening fail, ``FAKE_SLOW`` makes it hang.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from moorage.contract import StoreUnavailable
from moorage.settings import Settings
from support.api_fakes import FakeGateway


def install(gateway: FakeGateway) -> None:
    """Stand in for how the core opens things."""

    @asynccontextmanager
    async def opened(_: Settings) -> AsyncIterator[Any]:
        if os.environ.get("FAKE_FAIL"):
            raise StoreUnavailable("the database is down")
        if os.environ.get("FAKE_SLOW"):
            print("opening", file=sys.stderr, flush=True)
            await asyncio.sleep(3600)
        async with gateway.open() as made:
            yield made

    @asynccontextmanager
    async def store(_: Settings) -> AsyncIterator[Any]:
        yield gateway.store

    fake: Any = ModuleType("moorage_api.cli.opening")
    fake.settings = lambda config=None: Settings(home=Path("h"), database_url="memory:")
    fake.gateway, fake.store = opened, store
    sys.modules[fake.__name__] = fake
    import moorage_api.cli

    vars(moorage_api.cli)["opening"] = fake


if __name__ == "__main__":
    install(FakeGateway())
    from moorage_api.plugin import moorage_cli_groups

    groups = {group.name: group for group in moorage_cli_groups()}
    groups[sys.argv[1]].load()(sys.argv[2:])
