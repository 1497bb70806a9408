"""The hot statements use the partial indexes, however many rows have ended (TASK-21)."""

import re
import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest
from support.stored_tasks import COMPLETED, Tasks

from moorage.contract import Store

FINISHED, ACTIVE = 300, 5
VALUES: dict[str, Any] = {"owner": "replica-1", "token": "t", "lease": 5_000_000, "count": 8, "now": 10**16}
INDEX = {"claim": "ix_tasks_due", "claim_notifications": "ix_tasks_notify"}


def explained(url: str, sql: str) -> str:
    """The database's own plan. Unknown names among the values do no harm to SQLite, and psycopg takes those
    that are in the statement."""
    names = set(re.findall(r"(?<!:):(\w+)", sql))
    values = {name: VALUES[name] for name in names}
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
        return "\n".join(str(row[3]) for row in rows)
    with psycopg.connect(url) as database:
        database.execute("ANALYZE tasks")
        # Reading a table of some hundred rows whole is cheapest; of a million it is not.
        database.execute("SET enable_seqscan = off")
        text = re.sub(r"(?<!:):(\w+)", r"%(\1)s", sql.replace("%", "%%"))
        return "\n".join(row[0] for row in database.execute(f"EXPLAIN {text}", values).fetchall())


@pytest.mark.req("TASK-21", "TASK-6")
@pytest.mark.parametrize("name", sorted(INDEX))
async def test_claims_read_no_row_that_has_ended(
    name: str, tasks: Tasks, store: Store, store_url: str
) -> None:
    for number in range(FINISHED):
        await tasks.track(f"old-{number}", outcome=COMPLETED)
    for number in range(ACTIVE):
        await tasks.track(f"new-{number}")
    sql = getattr(store.tasks._sql, name)  # type: ignore[attr-defined]
    plan = explained(store_url, sql)
    assert INDEX[name] in plan, plan
    assert not re.search(r"SCAN tasks(?! USING (?:COVERING )?INDEX ix_)|Seq Scan on tasks", plan), plan
