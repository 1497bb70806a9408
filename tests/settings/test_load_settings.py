"""Settings: one file and ``MOORAGE_*``; what is wrong fails the start by name (CONF-6, TASK-25)."""

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.contract import ConfigError
from moorage.settings import LimitSettings, Settings, TaskSettings, load_settings
from moorage.settings_load import TABLES, table_fields, variable_name

pytestmark = pytest.mark.req("CONF-6")

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loaded(toml: str | None = None, **env: str) -> Settings:
        if toml is not None:
            (tmp_path / "moorage.toml").write_text(toml)
        return load_settings(env=env, cwd=tmp_path)

    return loaded


def test_without_anything_the_defaults_count_and_state_lies_in_the_working_directory(
    load: Load, tmp_path: Path
) -> None:
    settings = load()
    assert settings.home == tmp_path / ".moorage"
    assert settings.database_url == f"sqlite:///{tmp_path}/.moorage/moorage.sqlite"
    assert settings.source is None
    assert settings.extensions_config is None
    assert (settings.tasks, settings.limits) == (TaskSettings(), LimitSettings())


@pytest.mark.req("TASK-25")
def test_the_defaults_of_tasks_are_those_of_the_specification(load: Load) -> None:
    tasks = load().tasks
    assert (tasks.poll_interval_seconds, tasks.lease_seconds, tasks.concurrency) == (5, 120, 8)
    assert (tasks.backoff_cap_seconds, tasks.input_required_interval_seconds) == (300, 60)
    assert (tasks.degraded_after_errors, tasks.result_limit_bytes, tasks.preview_characters) == (
        3,
        65536,
        2000,
    )


def test_a_variable_wins_over_the_file_and_the_file_over_the_default(load: Load, tmp_path: Path) -> None:
    settings = load(
        "[tasks]\nconcurrency = 3\nlease_seconds = 30\n[limits]\nrecursion_limit = 7\n",
        MOORAGE_TASKS_CONCURRENCY="5",
        MOORAGE_TASKS_POLL_INTERVAL_SECONDS="0.5",
    )
    assert settings.source == tmp_path / "moorage.toml"
    assert settings.tasks.concurrency == 5
    assert settings.tasks.lease_seconds == 30
    assert settings.tasks.poll_interval_seconds == 0.5
    assert settings.limits.recursion_limit == 7


def test_a_blank_variable_counts_as_unset(load: Load) -> None:
    assert (
        load(MOORAGE_TASKS_CONCURRENCY=" ", MOORAGE_DATABASE_URL="", MOORAGE_HOME="").tasks.concurrency == 8
    )


def test_blocking_adds_up(load: Load) -> None:
    settings = load('[plugins]\nblock = ["a"]\n', MOORAGE_BLOCK_PLUGINS="b, c,")
    assert settings.plugins.block == ("a", "b", "c")


def test_tables_of_plugins_and_of_other_distributions_are_kept(load: Load) -> None:
    settings = load('[api]\nport = 1\n[plugins]\nstrict = true\n[plugins.vault]\nurl = "x"\n')
    assert settings.other == {"api": {"port": 1}}
    assert settings.plugins.strict is True
    assert settings.plugins.options == {"vault": {"url": "x"}}


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False), ("auto", "auto"), ("OFF", False)])
def test_tasks_can_be_on_off_or_auto(load: Load, text: str, value: object) -> None:
    assert load(MOORAGE_TASKS_ENABLED=text).tasks.enabled is value or value == "auto"
    assert load(MOORAGE_TASKS_ENABLED=text).tasks.enabled == value


def test_paths_count_from_where_they_are_written(tmp_path: Path) -> None:
    elsewhere = tmp_path / "etc"
    elsewhere.mkdir()
    (elsewhere / "moorage.toml").write_text(
        'home = "state"\nextensions_config = "ext.json"\n[plugins]\ndirectory = "local"\n'
    )
    settings = load_settings(
        env={"MOORAGE_CONFIG": "etc/moorage.toml", "MOORAGE_PLUGINS_DIR": "~/mine", "HOME": "/home/me"},
        cwd=tmp_path,
    )
    assert settings.home == elsewhere / "state"
    assert settings.extensions_config == elsewhere / "ext.json"
    assert settings.plugins.directory == Path("/home/me/mine")


def test_the_file_is_also_found_in_the_home(tmp_path: Path) -> None:
    home = tmp_path / "state"
    home.mkdir()
    (home / "moorage.toml").write_text("[tasks]\nconcurrency = 2\n")
    settings = load_settings(env={"MOORAGE_HOME": "state"}, cwd=tmp_path)
    assert (settings.home, settings.tasks.concurrency) == (home, 2)
    assert load_settings(env={}, cwd=tmp_path, home=home).tasks.concurrency == 2


WRONG_FILES = [
    ("[tasks]\nlease_second = 3\n", "tasks.lease_second", "did you mean lease_seconds?"),
    ("[tasks]\nconcurrency = 0\n", "tasks.concurrency", "1 to 1,024"),
    ("[tasks]\nconcurrency = true\n", "tasks.concurrency", "whole number"),
    ("[tasks]\nconcurrency = 2.0\n", "tasks.concurrency", "whole number"),
    ('[tasks]\nlease_seconds = "5"\n', "tasks.lease_seconds", "number"),
    ("[tasks]\nlease_seconds = nan\n", "tasks.lease_seconds", "finite"),
    ("[tasks]\nlease_seconds = inf\n", "tasks.lease_seconds", "finite"),
    ("[tasks]\nlease_seconds = -1\n", "tasks.lease_seconds", "2 to 3,600"),
    ("[tasks]\nretention_days = 0\n", "tasks.retention_days", "0.001 to 36,500"),
    ("[tasks]\nretention_days = false\n", "tasks.retention_days", "number"),
    ("[tasks]\nenabled = 1\n", "tasks.enabled", "true or false or 'auto'"),
    ("[task]\nconcurrency = 2\n", "task", "did you mean tasks?"),
    ("tasks = 3\n", "tasks", "table"),
    ("database = 'x'\n", "database", "did you mean database_url?"),
    ("database_url = 'moorage.db'\n", "database_url", "database URL"),
    ("home = 3\n", "home", "path"),
    ("[plugins]\nblock = 'a'\n", "plugins.block", "list of texts"),
    ("[plugins]\nstrikt = true\n", "plugins.strikt", "did you mean strict?"),
    ("[plugins]\nstrict = 'yes'\n", "plugins.strict", "true or false"),
    ("[assistants]\nmodel = ''\n", "assistants.model", "not blank"),
]


@pytest.mark.parametrize(("toml", "key", "says"), WRONG_FILES)
def test_what_is_wrong_in_the_file_is_named(
    load: Load, tmp_path: Path, toml: str, key: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(toml)
    assert str(caught.value).startswith(f"{tmp_path / 'moorage.toml'}: {key}: ")
    assert says in str(caught.value)


WRONG_VARIABLES = [
    ("MOORAGE_TASKS_CONCURENCY", "3", "did you mean MOORAGE_TASKS_CONCURRENCY?"),
    ("MOORAGE_TASKS_CONCURRENCY", "many", "whole number"),
    ("MOORAGE_TASKS_CONCURRENCY", "2.5", "whole number"),
    ("MOORAGE_TASKS_LEASE_SECONDS", "nan", "finite"),
    ("MOORAGE_TASKS_LEASE_SECONDS", "0", "2 to 3,600"),
    ("MOORAGE_PLUGINS_STRICT", "perhaps", "true or false"),
    ("MOORAGE_DATABASE_URL", "moorage.db", "database URL"),
]


@pytest.mark.parametrize(("name", "text", "says"), WRONG_VARIABLES)
def test_what_is_wrong_in_a_variable_is_named(load: Load, name: str, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(**{name: text})
    assert str(caught.value).startswith(f"{name}: ")
    assert says in str(caught.value)


@pytest.mark.req("CRED-9")
def test_no_error_quotes_what_may_be_a_secret(load: Load) -> None:
    for name in ("MOORAGE_DATABASE_URL", "MOORAGE_TASKS_CONCURRENCY", "MOORAGE_TASKS_ENABLED"):
        with pytest.raises(ConfigError) as caught:
            load(**{name: "hunter2-hunter2"})
        assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(load(MOORAGE_DATABASE_URL="postgresql://me:hunter2@db/x"))


@pytest.mark.parametrize("content", [b"[tasks", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "moorage.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"moorage\.toml: the file is no"):
        load_settings(env={}, cwd=tmp_path)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "moorage.toml").write_bytes(b"\xef\xbb\xbf[tasks]\nconcurrency = 2\n")
    assert load_settings(env={}, cwd=tmp_path).tasks.concurrency == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "moorage.toml").mkdir()
    with pytest.raises(ConfigError, match=r"moorage\.toml: the file cannot be read"):
        load_settings(env={}, cwd=tmp_path)


def test_a_file_that_was_asked_for_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"MOORAGE_CONFIG .*none\.toml.*no such file"):
        load_settings(env={"MOORAGE_CONFIG": "none.toml"}, cwd=tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        load_settings(env={}, cwd=tmp_path, config=tmp_path / "none.toml")


def test_a_file_in_the_home_cannot_move_the_home(tmp_path: Path) -> None:
    home = tmp_path / ".moorage"
    home.mkdir()
    (home / "moorage.toml").write_text('home = "/elsewhere"\n')
    with pytest.raises(ConfigError, match="MOORAGE_HOME"):
        load_settings(env={}, cwd=tmp_path)


def test_every_field_has_a_variable_of_its_own() -> None:
    names = [variable_name(table, item.name) for table in TABLES for item in table_fields(table)]
    assert len(names) == len(set(names))


def test_every_number_has_a_range_that_holds_its_default() -> None:
    for kind in TABLES.values():
        for item in fields(kind):
            if item.type in (int, float, float | None):
                low, high = item.metadata["range"]
                assert item.default is None or low <= item.default <= high, item.name


@pytest.mark.req("TASK-25")
@given(value=st.floats(allow_nan=True, allow_infinity=True) | st.integers())
def test_a_number_is_within_its_range_or_refused(value: float) -> None:
    try:
        settings = load_settings(env={"MOORAGE_TASKS_LEASE_SECONDS": repr(value)}, cwd=Path(os.sep))
    except ConfigError:
        assert not 2 <= value <= 3600
    else:
        assert settings.tasks.lease_seconds == value
