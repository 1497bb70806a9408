"""A short fight on each database; the long one is ``python -m benchmarks.chaos`` (TASK-19)."""

from pathlib import Path

import pytest
from support.chaos.fight import Plan, fight
from support.postgres import PostgresServer, postgres_server


@pytest.mark.req("TASK-6", "TASK-9", "TASK-10", "TASK-19", "TASK-22", "NOTE-1", "NOTE-2")
@pytest.mark.timeout(170)
async def test_postgresql_with_kills_and_a_restart_of_the_database(tmp_path: Path) -> None:
    with postgres_server(careless=True) as server:
        plan = Plan(tasks=300, workers=3, submitters=2, kills=8, restart=server.restart)
        verdict = await fight(server.create(), tmp_path, plan)
    assert verdict.broken == []
    assert verdict.tasks > 150
    assert verdict.kills == 8
    assert verdict.polls > verdict.accepted > 150


@pytest.mark.req("TASK-6", "TASK-9", "TASK-10", "TASK-22", "NOTE-1", "NOTE-2")
@pytest.mark.timeout(170)
async def test_sqlite_with_kills(tmp_path: Path, sqlite_template: Path) -> None:
    database = tmp_path / "chaos.db"
    database.write_bytes(sqlite_template.read_bytes())
    plan = Plan(tasks=200, workers=2, submitters=1, kills=6)
    verdict = await fight(f"sqlite:///{database}", tmp_path, plan)
    assert verdict.broken == []
    assert verdict.tasks > 100


@pytest.mark.req("TASK-6")
@pytest.mark.timeout(170)
async def test_the_fight_would_show_a_broken_fence(tmp_path: Path, postgres: PostgresServer) -> None:
    plan = Plan(tasks=150, workers=3, submitters=1, kills=0, broken_fence=True)
    verdict = await fight(postgres.create(), tmp_path, plan)
    assert any("under two leases" in line for line in verdict.broken)
