"""``moorage keys``: made, listed and revoked in the database itself, whether or not a gateway runs."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from moorage.contract.errors import MoorageError, NotFound
from moorage.contract.stores import ApiKeyRecord, KeyRepository
from moorage_api.auth.keys import ROLES, check_name, check_roles, key_hash, new_key
from moorage_api.cli import opening

T = TypeVar("T")

EXIT_FAILED = 1
EXIT_NOT_FOUND = 4
"""As for ``moorage tasks``."""

app = typer.Typer(
    help="Create, list and revoke API keys.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What to call the key.")],
    user: Annotated[str, typer.Option(help="The id of the user whom it stands for.")],
    role: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(sorted(ROLES))}; may be repeated. Default: user.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it, this once. Exit status 1 where there is a live key of that name."""

    async def make(keys: KeyRepository) -> tuple[ApiKeyRecord, str]:
        key = new_key()
        record = await keys.create(
            name=check_name(name, "a key's name"),
            user_id=check_name(user, "a user id"),
            roles=check_roles(role or ["user"]),
            key_hash=key_hash(key),
        )
        return record, key

    record, key = _run(make)
    if as_json:
        print(json.dumps({**_shown(record), "key": key}))
    else:
        roles = ", ".join(sorted(record.roles))
        print(f"Key {record.name!r} of user {record.user_id!r} ({roles}), shown this once:")
        print(key)


@app.command("list")
def list_keys(as_json: Json = False) -> None:
    """List all keys, revoked ones included; never the keys themselves."""
    records = _run(lambda keys: keys.list())
    if as_json:
        print(json.dumps([_shown(record) for record in records]))
        return
    table = Table("id", "name", "user", "roles", "created", "revoked")
    for record in records:
        shown = _shown(record)
        table.add_row(
            *(shown[field] for field in ("key_id", "name", "user_id")),
            ", ".join(shown["roles"]),
            shown["created_at"],
            shown["revoked_at"] or "",
        )
    Console(highlight=False).print(table)


@app.command()
def revoke(key: Annotated[str, typer.Argument(help="The key's id or name.")], as_json: Json = False) -> None:
    """End a key; gateways refuse it from the next request on. Exit status 4 where there is no such key."""

    async def end(keys: KeyRepository) -> ApiKeyRecord:
        record = await keys.revoke(key)
        if record is None:
            raise NotFound(f"there is no live key {key!r}")
        return record

    record = _run(end)
    print(json.dumps(_shown(record)) if as_json else f"Revoked key {record.name!r} ({record.key_id}).")


def _shown(record: ApiKeyRecord) -> dict[str, Any]:
    return {
        "key_id": record.key_id,
        "name": record.name,
        "user_id": record.user_id,
        "roles": sorted(record.roles),
        "created_at": record.created_at.isoformat(),
        "revoked_at": record.revoked_at.isoformat() if record.revoked_at else None,
    }


def _run(work: Callable[[KeyRepository], Awaitable[T]]) -> T:
    async def with_store() -> T:
        async with opening.store(opening.settings()) as store:
            return await work(store.keys)

    try:
        return asyncio.run(with_store())
    except MoorageError as error:
        Console(stderr=True, highlight=False).print(f"Error: {error}", style="red", markup=False)
        raise typer.Exit(EXIT_NOT_FOUND if isinstance(error, NotFound) else EXIT_FAILED) from None
