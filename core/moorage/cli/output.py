"""How commands print: tables for people, JSON for scripts."""

import json
from collections.abc import Sequence
from typing import Any


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, states: int | None = None) -> None:
    """A table on stdout. ``states`` is the column whose words are coloured."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(
            *(Text(cell, style=_STYLES.get(cell, "") if n == states else "") for n, cell in enumerate(row))
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        # A pipe has no width; wrapping there would only break what greps it.
        console = Console(highlight=False, width=10_000)
        table.expand = False
    console.print(table, crop=False)


_STYLES = {
    "loaded": "green",
    "ok": "green",
    "failed": "red",
    "fail": "red",
    "refused": "red",
    "blocked": "yellow",
    "warn": "yellow",
    "warning": "yellow",
    "error": "red",
}
