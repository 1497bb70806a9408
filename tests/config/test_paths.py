"""Where the file is found (CONF-2)."""

from pathlib import Path

import pytest
from support.extensions import Extensions

from moorage.config import FILE_NAME, PATH_VARIABLE, ExtensionsFile, resolve_path
from moorage.contract import ExtensionsSnapshot


@pytest.mark.req("CONF-2")
def test_order_of_resolution(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    for name in (FILE_NAME, "explicit.json", "named.json"):
        (tmp_path / name).write_text("{}")
    env = {PATH_VARIABLE: str(tmp_path / "named.json")}
    assert resolve_path(tmp_path / "explicit.json", env, deep) == tmp_path / "explicit.json"
    assert resolve_path(None, env, deep) == tmp_path / "named.json"
    assert resolve_path(None, {PATH_VARIABLE: ""}, deep) == tmp_path / FILE_NAME
    assert resolve_path(Path("../explicit.json"), {}, tmp_path / "a") == tmp_path / "a" / "../explicit.json"
    (deep / FILE_NAME).write_text("{}")
    assert resolve_path(None, {}, deep) == deep / FILE_NAME


@pytest.mark.req("CONF-2")
@pytest.mark.parametrize("how", ["explicit", "env"])
def test_a_named_file_that_does_not_exist_is_an_error(tmp_path: Path, how: str) -> None:
    (tmp_path / FILE_NAME).write_text("{}")  # what a search would find is no substitute
    missing = tmp_path / "gone.json"
    explicit = missing if how == "explicit" else None
    env = {} if how == "explicit" else {PATH_VARIABLE: str(missing)}
    file = ExtensionsFile(explicit=explicit, env=env, cwd=tmp_path)
    for call in (file.resolve_path, file.current, file.write_path):
        with pytest.raises(FileNotFoundError, match=r"gone\.json"):
            call()
    missing.write_text('{"mcpServers": {"s": {"command": "x"}}}')
    assert set(file.current().servers) == {"s"}


@pytest.mark.req("CONF-2")
def test_the_search_may_find_nothing_and_picks_a_new_file_up(tmp_path: Path) -> None:
    config = Extensions(tmp_path)
    assert config.file.current() == ExtensionsSnapshot()
    assert config.file.path is None
    assert config.file.write_path() == config.path
    config.write({"s": {"command": "x"}})
    assert set(config.file.current().servers) == {"s"}
    assert config.file.path == config.path
