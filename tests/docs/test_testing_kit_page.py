"""testing-kit.md and containment.md: what they show runs, what they name is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moorage import testing
from moorage.gateway.launches import VERDICT_SECONDS
from moorage.gateway.lifecycles import LIFECYCLE_SECONDS
from moorage.gateway.watchdog import BLOCKED_AFTER_SECONDS
from moorage.host.loading import LOAD_TIMEOUT_SECONDS
from moorage.testing import plugin

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "testing-kit.md").read_text()

SINK = """
from moorage.contract import DeliveryOutcome, DeliveryState, SinkSpec, hookimpl

class Sink:
    async def deliver(self, notification):
        return DeliveryOutcome(DeliveryState.DELIVERED)

@hookimpl
def moorage_notification_sinks():
    return (SinkSpec("mine", lambda context: Sink()),)
"""
VALIDATOR = """
from moorage.contract import LaunchRefused, LaunchValidatorSpec, hookimpl

class Validator:
    def validate(self, request):
        if request.transport == "stdio":
            raise LaunchRefused(f"server {request.server!r}: no processes here")

@hookimpl
def moorage_launch_validators():
    return (LaunchValidatorSpec("mine", lambda context: Validator()),)
"""


@pytest.mark.req("DX-2")
def test_the_snippets_of_the_page_pass_as_an_author_runs_them(tmp_path: Path) -> None:
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(snippets) == 2
    (tmp_path / "my_sink.py").write_text(SINK)
    (tmp_path / "my_validator.py").write_text(VALIDATOR)
    for number, text in enumerate(snippets):
        (tmp_path / f"test_snippet_{number}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\npythonpath = .\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_the_page_names_every_fixture_and_every_suite() -> None:
    fixtures = {name for name in vars(plugin) if name.startswith("moorage_")}
    suites = {name for name in testing.__all__ if name.endswith("Conformance")}
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert named == fixtures | suites


@pytest.mark.req("PLUG-7")
def test_the_page_on_containment_says_what_holds() -> None:
    page = " ".join((DOCS / "explanation" / "containment.md").read_text().split())
    assert f"with {LOAD_TIMEOUT_SECONDS:g} seconds for all of it" in page
    assert f"takes more than {LIFECYCLE_SECONDS:g} seconds" in page
    assert f"given up after {VERDICT_SECONDS:g} seconds" in page
    assert BLOCKED_AFTER_SECONDS == 1.0
    assert "not come round for a second" in page
    assert "`os._exit`" in page
