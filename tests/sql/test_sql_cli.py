"""``moorage db`` and ``moorage tasks`` (OPS-1, OPS-2), as an operator's shell sees them."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.clock import FakeClock
from support.stored_tasks import COMPLETED, Tasks
from typer.testing import CliRunner, Result

import moorage.settings_load
from moorage.clock import SystemClock
from moorage.contract import AttentionKind, Store, TaskOutcome, TaskStatus
from moorage.settings import Settings
from moorage_drivers.sql.cli.db import app as db
from moorage_drivers.sql.cli.tasks import app as tasks_group
from moorage_drivers.sql.migrate import HEAD
from moorage_drivers.sql.store import open_store

Run = Callable[..., Result]
ESCAPE = "\x1b[2J"


@pytest.fixture
def settings_url(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def settings(**_: Any) -> Settings:
        return Settings(home=tmp_path, database_url=store_url)

    monkeypatch.setattr(moorage.settings_load, "load_settings", settings, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return store_url


@pytest.fixture
def run(settings_url: str) -> Run:
    def invoke(*arguments: str, group: Any = tasks_group) -> Result:
        return CliRunner().invoke(group, list(arguments))

    return invoke


def on_store(url: str, work: Callable[[Tasks], Awaitable[None]]) -> None:
    """Do something to the database as a gateway would, before or between commands."""

    async def opened() -> None:
        async with open_store(url, SystemClock(), False) as store:
            await work(_tasks_of(store))

    asyncio.run(opened())


def _tasks_of(store: Store) -> Tasks:
    return Tasks(store.tasks, FakeClock(SystemClock().now()))


async def some(tasks: Tasks) -> None:
    await tasks.track("t1")
    await tasks.track("t2", user_id="bob", thread_id="thread-2", task_name="other")
    failed = TaskOutcome(status=TaskStatus.FAILED, error=f"[red]broke[/] {ESCAPE}")
    await tasks.track("t3", outcome=failed, attention=AttentionKind.TERMINAL, fingerprint="end")


@pytest.mark.req("OPS-1")
def test_tasks_of_all_users_are_listed_and_filtered(run: Run, settings_url: str) -> None:
    on_store(settings_url, some)

    def ids(*arguments: str) -> list[str]:
        shown = json.loads(run("list", "--json", *arguments).stdout)
        return [task["task_id"] for task in shown["items"]]

    assert ids() == ["t3", "t2", "t1"]
    assert ids("--user", "bob") == ["t2"]
    assert ids("--thread", "thread-1") == ["t3", "t1"]
    assert ids("--status", "failed", "--status", "cancelled") == ["t3"]
    first = json.loads(run("list", "--json", "--limit", "2").stdout)
    assert ids("--limit", "2", "--cursor", first["next_cursor"]) == ["t1"]
    assert run("list", "--cursor", "nonsense").exit_code == 2
    assert run("list", "--status", "nonsense").exit_code == 2
    assert "remote" not in run("list", "--json").stdout


@pytest.mark.req("OPS-1", "NOTE-5")
def test_people_get_a_table_that_no_server_can_paint_in(run: Run, settings_url: str) -> None:
    on_store(settings_url, some)

    listed, shown = run("list"), run("show", "t3")

    assert listed.exit_code == shown.exit_code == 0
    for text in (listed.stdout, shown.stdout):
        assert "[red]broke[/]" in text
        assert "\x1b" not in text
    assert "bob" in listed.stdout


@pytest.mark.req("OPS-1")
def test_a_narrow_terminal_cuts_no_id_and_no_status(
    run: Run, settings_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = "0123456789abcdef0123456789abcdef"

    async def long_names(tasks: Tasks) -> None:
        await tasks.track(task_id, task_name="a-name-that-is-longer-than-any-room", user_id="somebody-else")

    on_store(settings_url, long_names)
    monkeypatch.setenv("COLUMNS", "80")
    (line,) = [line for line in run("list").stdout.splitlines() if task_id in line]
    assert "working" in line
    assert len(line.rstrip()) <= 80


@pytest.mark.req("OPS-1", "TASK-20")
def test_a_task_is_found_by_id_or_unique_name(run: Run, settings_url: str) -> None:
    on_store(settings_url, some)

    assert json.loads(run("show", "t1", "--json").stdout)["task_id"] == "t1"
    assert json.loads(run("show", "other", "--json").stdout)["task_id"] == "t2"
    ambiguous = run("show", "count")
    assert ambiguous.exit_code == 1
    assert "t1" in ambiguous.stderr
    assert "t3" in ambiguous.stderr
    missing = run("cancel", "nothing")
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert "nothing" in missing.stderr


@pytest.mark.req("OPS-1", "TASK-17")
def test_a_cancel_is_recorded_for_the_gateway_to_perform(run: Run, settings_url: str) -> None:
    on_store(settings_url, some)

    asked = run("cancel", "other")
    again = json.loads(run("cancel", "t2", "--json").stdout)
    over = run("cancel", "t3")

    assert "requested" in asked.stdout
    assert (again["cancel_requested"], again["status"]) == (True, "working")
    assert (over.exit_code, "failed already" in over.stdout) == (0, True)

    async def due(tasks: Tasks) -> None:
        claims = await tasks.repository.claim("gateway", limit=10, lease_seconds=5)
        assert "t2" in {c.task.task_id for c in claims if c.task.next_cancel_at is not None}

    on_store(settings_url, due)


@pytest.mark.req("OPS-1")
@pytest.mark.parametrize(("status", "code"), [(TaskStatus.COMPLETED, 0), (TaskStatus.CANCELLED, 3)])
def test_watch_follows_a_task_to_its_end(run: Run, settings_url: str, status: TaskStatus, code: int) -> None:
    on_store(settings_url, some)

    async def end(tasks: Tasks) -> None:
        claims = await tasks.repository.claim("gateway", limit=10, lease_seconds=30)
        (claim,) = [claim for claim in claims if claim.task.task_id == "t1"]
        outcome = COMPLETED if status is TaskStatus.COMPLETED else TaskOutcome(status=status)
        assert await tasks.apply(tasks.polled(claim, outcome)) == {"t1"}

    gateway = threading.Thread(target=on_store, args=(settings_url, end))
    gateway.start()
    watched = run("watch", "t1", "--interval", "0.1", "--json")
    gateway.join()

    assert watched.exit_code == code
    assert json.loads(watched.stdout.splitlines()[-1])["status"] == status
    assert run("watch", "t1").exit_code == code


@pytest.mark.req("OPS-2")
def test_db_upgrade_says_where_the_database_is(run: Run, settings_url: str) -> None:
    shown = json.loads(run("upgrade", "--json", group=db).stdout)

    assert shown["revision"] == HEAD
    assert run("upgrade", group=db).stdout.strip().endswith(f"is at revision {HEAD}.")


@pytest.mark.req("OPS-1", "OPS-2")
def test_commands_name_the_remedy_where_nothing_was_migrated(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fresh" / "moorage.db"
    fresh = Settings(home=tmp_path, database_url=f"sqlite:///{path}")
    monkeypatch.setattr(moorage.settings_load, "load_settings", lambda **_: fresh, raising=False)

    refused = run("list")
    assert refused.exit_code == 1
    assert "moorage db upgrade" in refused.stderr
    assert run("upgrade", group=db).exit_code == 0
    assert json.loads(run("list", "--json").stdout) == {"items": [], "next_cursor": None}
