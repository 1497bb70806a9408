"""A store for URLs like ``archive://…``: SQLite under a scheme of its own, with another default folder."""

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from moorage.contract import Clock, Store, StoreSpec, hookimpl


@asynccontextmanager
async def opened(url: str, clock: Clock, migrate: bool) -> AsyncIterator[Store]:
    from moorage_drivers.sql.store import open_store  # late: listing plugins must stay quick

    async with open_store(url.replace("archive://", "sqlite:///"), clock, migrate) as store:
        yield store


def upgrade(url: str) -> str:
    from moorage_drivers.sql.migrate import upgrade as migrate

    return migrate(url.replace("archive://", "sqlite:///"))


@hookimpl
def moorage_stores() -> Iterable[StoreSpec]:
    return (StoreSpec("archive", frozenset({"archive"}), opened, upgrade),)


if __name__ == "__main__":
    from moorage.testing import host_with

    (store,) = host_with(sys.modules[__name__]).stores()
    print(f"{store.spec.name} opens {', '.join(store.spec.schemes)}://")
