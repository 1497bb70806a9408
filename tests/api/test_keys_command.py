"""``moorage keys`` (API-2, OPS-1)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from support.api_fakes import FakeGateway
from support.serve_fake import install
from typer.testing import CliRunner

from moorage_api.auth.keys import key_hash

pytestmark = pytest.mark.req("API-2", "OPS-1")


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGateway]:
    import sys

    for name in [name for name in sys.modules if name.startswith("moorage_api.cli")]:
        monkeypatch.delitem(sys.modules, name)
    made = FakeGateway()
    install(made)
    yield made
    for name in [name for name in sys.modules if name.startswith("moorage_api.cli")]:
        del sys.modules[name]


def run(*arguments: str) -> tuple[int, str, str]:
    from moorage_api.cli.keys import app

    assert isinstance(app, typer.Typer)
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_a_key_is_printed_once_listed_without_itself_and_revoked(gateway: FakeGateway) -> None:
    status, out, _ = run("create", "laptop", "--user", "alice", "--role", "admin", "--role", "user", "--json")
    made: Any = json.loads(out)
    assert status == 0
    assert (made["user_id"], made["roles"]) == ("alice", ["admin", "user"])
    assert key_hash(made["key"]) in gateway.store.keys.records
    status, out, _ = run("list", "--json")
    assert [one["name"] for one in json.loads(out)] == ["laptop"]
    assert made["key"] not in out
    status, out, _ = run("list")
    assert status == 0
    assert "laptop" in out
    status, out, _ = run("revoke", "laptop", "--json")
    assert (status, json.loads(out)["revoked_at"] is not None) == (0, True)


def test_people_get_the_key_on_a_line_of_its_own(gateway: FakeGateway) -> None:
    status, out, _ = run("create", "laptop", "--user", "alice")
    assert status == 0
    lines = out.splitlines()
    assert "alice" in lines[0]
    assert key_hash(lines[1]) in gateway.store.keys.records
    assert next(iter(gateway.store.keys.records.values())).roles == frozenset({"user"})


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("create", "twice", "--user", "alice"), 1, "twice"),
        (("create", "new", "--user", "alice", "--role", "root"), 1, "root"),
        (("create", "new", "--user", "a b"), 1, "user id"),
        (("revoke", "nobody"), 4, "nobody"),
        (("create", "new"), 2, "--user"),
        (("nothing",), 2, "nothing"),
    ],
)
def test_mistakes_are_named_and_have_exit_codes(
    gateway: FakeGateway, arguments: tuple[str, ...], status: int, message: str
) -> None:
    run("create", "twice", "--user", "alice")
    got, out, err = run(*arguments)
    assert (got, out) == (status, "")
    assert message in err
