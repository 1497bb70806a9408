"""docs/explanation/launch-policy.md: its settings and its plugin work."""

import re
import tomllib
from pathlib import Path

import pytest

from moorage.contract import LauncherGrammars, LaunchRefused, LaunchRequest
from moorage.testing.context import gateway_context
from moorage_plugins.launch_policy.commands import CommandRules
from moorage_plugins.launch_policy.settings import read

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "launch-policy.md"


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.req("LAUNCH-5", "LAUNCH-10")
def test_the_settings_and_the_grammar_of_the_page_let_docker_start(tmp_path: Path) -> None:
    """C04 (1)."""
    settings = read(tomllib.loads(block("toml"))["plugins"]["launch_policy"], {})
    assert "169.254.10.1" in settings.hosts
    plugin: dict[str, object] = {}
    exec(block("python"), plugin)
    hook = plugin["moorage_launcher_grammars"]
    assert callable(hook)
    contributed = {one.command: one for one in hook()}

    class Contributed:
        def grammars(self) -> dict[str, object]:
            return contributed

    context = gateway_context(tmp_path)
    rules = CommandRules(settings, context)

    def request(*args: str) -> LaunchRequest:
        return LaunchRequest("s", "stdio", command="docker", args=args)

    with pytest.raises(LaunchRefused, match="grammar"):
        rules.validate(request("run", "-i", "--rm", "-e", "TOKEN", "img"))
    context.provide(LauncherGrammars, Contributed())
    rules.validate(request("run", "-i", "--rm", "-e", "TOKEN", "img"))
    with pytest.raises(LaunchRefused, match="--entrypoint"):
        rules.validate(request("run", "--entrypoint", "sh", "img"))


@pytest.mark.req("LAUNCH-10")
def test_the_page_says_that_this_is_no_boundary() -> None:
    text = " ".join(PAGE.read_text().split())
    assert "defence in depth, not a boundary" in text
    assert "a longer denylist is not the fix" in text
