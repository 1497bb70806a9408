"""Every mode of the hostile servers has a test here, so that a new one cannot be forgotten."""

import re
from pathlib import Path

import pytest
from support.mcp_servers import SERVERS

MODES = re.compile(r"case ((?:\"[\w-]+\"(?: \| )?)+)|MODE == \"([\w-]+)\"")
PROTOCOL = {"initialize"}


def modes(script: str) -> set[str]:
    found = MODES.findall((SERVERS / f"{script}.py").read_text())
    named = {name for groups in found for group in groups for name in re.findall(r"[\w-]+", group)}
    return named - PROTOCOL


@pytest.mark.req("STDIO-5", "TOOL-5", "TOOL-10")
@pytest.mark.parametrize("script", ["hostile", "hostile_http"])
def test_every_mode_is_named_by_a_test(script: str) -> None:
    here = Path(__file__)
    tests = "".join(path.read_text() for path in here.parent.glob("test_*.py") if path != here)
    there = modes(script)
    assert len(there) > 20
    assert {mode for mode in there if f'"{mode}"' not in tests} == set()
