"""What the commands share: settings, the open store, errors and their exit codes."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console

from moorage.contract import MoorageError, NotFound, Store

T = TypeVar("T")

EXIT_FAILED = 1
EXIT_TASK_FAILED = 3
EXIT_NOT_FOUND = 4

EXIT_CODES = (
    "Exit status: 0 done; 1 it could not be done; 2 wrong usage; 3 the task that was watched ended as failed "
    "or cancelled; 4 no such task."
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def command_group(about: str) -> typer.Typer:
    return typer.Typer(help=about, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def database_url() -> str:
    """The database of the settings in force here."""
    from moorage.settings_load import load_settings

    return load_settings(env=os.environ, cwd=Path.cwd()).database_url


def with_store(work: Callable[[Store], Awaitable[T]]) -> T:
    """Run ``work`` on the open store; errors end the command with their exit code."""
    from moorage.clock import SystemClock
    from moorage_drivers.sql.store import open_store

    async def opened() -> T:
        async with open_store(database_url(), SystemClock(), False) as store:
            return await work(store)

    return reporting(lambda: asyncio.run(opened()))


def reporting(work: Callable[[], T]) -> T:
    """Run ``work``; an error of Moorage's becomes one line on stderr and an exit code."""
    try:
        return work()
    except NotFound as error:
        _end(error, EXIT_NOT_FOUND)
    except MoorageError as error:
        _end(error, EXIT_FAILED)


def out(**options: Any) -> Console:
    return Console(highlight=False, **options)


def _end(error: MoorageError, code: int) -> NoReturn:
    out(stderr=True).print(f"Error: {error}", style="red", markup=False, soft_wrap=True)
    raise typer.Exit(code) from None
