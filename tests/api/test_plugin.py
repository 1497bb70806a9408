"""The API's plugin is cheap to import (PLUG-8)."""

import subprocess
import sys

import pytest

HEAVY = (
    "litestar",
    "uvicorn",
    "httpx",
    "pydantic",
    "msgspec",
    "prometheus_client",
    "opentelemetry",
    "rich",
    "typer",
)


@pytest.mark.req("PLUG-8", "PLUG-2")
def test_contributions_are_listed_without_importing_what_is_slow() -> None:
    script = (
        "import sys, json; from moorage_api import plugin; "
        "groups = [g.name for g in plugin.moorage_cli_groups()]; "
        "specs = [s.name for s in plugin.moorage_credential_interceptors()]; "
        f"print(json.dumps([groups, specs, [m for m in {HEAVY!r} if m in sys.modules]]))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.strip() == '[["serve", "keys", "demo"], ["observability"], []]'


@pytest.mark.req("PLUG-1")
def test_it_is_announced_as_a_plugin_and_its_commands_by_name() -> None:
    from importlib.metadata import entry_points

    mine = [
        one for one in entry_points(group="moorage.plugins") if one.dist and one.dist.name == "moorage-api"
    ]
    assert [(one.name, one.value) for one in mine] == [("api", "moorage_api.plugin")]
    names = {
        one.name for one in entry_points(group="moorage.cli") if one.dist and one.dist.name == "moorage-api"
    }
    assert names == {"serve", "keys", "demo"}
