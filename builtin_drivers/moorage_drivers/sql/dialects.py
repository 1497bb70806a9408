# ruff: noqa: S608 (fragments are constants of ours; values are always bound)
"""Where the two databases differ in the hand-written statements."""

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.contract.empty import EMPTY


@dataclass(frozen=True, slots=True)
class Dialect:
    """Fragments of SQL text.

    ``now`` is microseconds since 1970: the clock that all replicas share on PostgreSQL, and ``:now`` where
    the caller's clock counts (SQLite, and tests that own the time).
    """

    name: str
    now: str
    skip_locked: str
    for_update: str

    @property
    def sqlite(self) -> bool:
        return self.name == "sqlite"

    def earlier(self, one: str, other: str) -> str:
        """The earlier of two moments, where NULL is none."""
        if self.sqlite:
            return f"MIN(COALESCE({one}, {other}), COALESCE({other}, {one}))"
        return f"LEAST({one}, {other})"

    def rows(self, columns: Mapping[str, str], *, absent: Mapping[str, str] = EMPTY) -> str:
        """A SELECT of the objects in the JSON array ``:doc``, one row each; ``absent`` columns are NULL.

        One bound document keeps the statement constant, whatever the batch's size.
        """
        nothing = "".join(f", CAST(NULL AS {kind}) AS {name}" for name, kind in absent.items())
        if self.sqlite:
            picked = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in columns)
            return f"SELECT {picked}{nothing} FROM json_each(:doc)"
        typed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        return f"SELECT *{nothing} FROM json_to_recordset(CAST(:doc AS json)) AS doc({typed})"

    def texts(self, bind: str) -> str:
        """A SELECT of the strings in the JSON array that is bound."""
        if self.sqlite:
            return f"SELECT value FROM json_each({bind})"
        return f"SELECT value FROM json_array_elements_text(CAST({bind} AS json))"


def sqlite() -> Dialect:
    return Dialect(name="sqlite", now=":now", skip_locked="", for_update="")


def postgresql(*, own_clock: bool) -> Dialect:
    """``own_clock``: the time is bound by the caller."""
    now = (
        "CAST(:now AS BIGINT)"
        if own_clock
        # Not clock_timestamp(): that one is volatile, and no index would be searched by it.
        else "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS BIGINT)"
    )
    return Dialect(
        name="postgresql",
        now=now,
        skip_locked="FOR UPDATE OF tasks SKIP LOCKED",
        for_update="FOR UPDATE",
    )
