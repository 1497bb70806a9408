"""The reference page says what is true (docs/reference/extensions-config.md)."""

import re
from pathlib import Path

import pytest
from support.extensions import Extensions

from moorage.config import FILE_NAME, PATH_VARIABLE
from moorage.config.document import parse_document
from moorage.config.entries import SERVER_KEYS
from moorage.config.loading import TOP_LEVEL_KEYS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "extensions-config.md"


@pytest.mark.req("CONF-1")
def test_the_examples_load_without_a_warning(tmp_path: Path) -> None:
    blocks = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        config = Extensions(tmp_path, {"FILES_TOKEN": "token", "SEARCH_TOKEN": "token"})
        config.path.write_text(block)
        snapshot = config.file.current()
        assert set(snapshot.servers) == set(parse_document(block.encode()).value["mcpServers"])
        assert config.warnings == []


@pytest.mark.req("CONF-1", "CONF-2")
def test_every_key_is_documented() -> None:
    text = PAGE.read_text("utf-8")
    for name in [
        *SERVER_KEYS - {"tools"},
        "tools.<raw tool name>",
        *TOP_LEVEL_KEYS,
        FILE_NAME,
        PATH_VARIABLE,
    ]:
        assert f"`{name}`" in text
