"""Change detection and reload (CONF-2, CONF-4, CONF-7; C16)."""

import os
import threading
from pathlib import Path

import pytest
from support.extensions import Extensions

from moorage.config import FILE_NAME, PATH_VARIABLE, ExtensionsFile, WatchedFile, sections_in_use


@pytest.fixture
def config(tmp_path: Path) -> Extensions:
    config = Extensions(tmp_path)
    config.write({"s": {"command": "one"}, "other": {"command": "x"}})
    config.file.current()
    return config


def command(config: Extensions) -> str | None:
    return config.file.current().servers["s"].command


@pytest.mark.req("CONF-4")
def test_same_size_and_same_mtime(config: Extensions) -> None:
    stat = config.path.stat()
    config.write({"s": {"command": "two"}, "other": {"command": "x"}})
    os.utime(config.path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (config.path.stat().st_size, config.path.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert command(config) == "two"


@pytest.mark.req("CONF-4")
def test_mtime_that_goes_backward(config: Extensions) -> None:
    config.write({"s": {"command": "two-longer"}})
    os.utime(config.path, (1, 1))
    assert command(config) == "two-longer"
    config.write({"s": {"command": "three"}})
    os.utime(config.path, (0, 0))
    assert command(config) == "three"


@pytest.mark.req("CONF-4")
def test_many_edits_within_one_second(config: Extensions) -> None:
    for number in range(50):
        config.write({"s": {"command": f"{number:03}"}})
        assert command(config) == f"{number:03}"


@pytest.mark.req("CONF-4")
def test_a_switch_to_another_file_with_an_older_mtime(config: Extensions, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"mcpServers": {"s": {"command": "elsewhere"}}}')
    os.utime(other, (1, 1))
    config.env[PATH_VARIABLE] = str(other)
    assert command(config) == "elsewhere"
    assert config.file.path == other
    del config.env[PATH_VARIABLE]
    assert command(config) == "one"


@pytest.mark.req("CONF-4")
def test_a_symlink_that_is_switched(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f'{{"mcpServers": {{"s": {{"command": "{name}"}}}}}}')
        os.utime(tmp_path / name, (1, 1))
    config = Extensions(tmp_path)
    config.path.symlink_to("one")
    assert command(config) == "one"
    config.path.unlink()
    config.path.symlink_to("two")
    assert command(config) == "two"
    signature = config.file.current().signature
    assert signature is not None
    assert signature.path == str(tmp_path / "two")


@pytest.mark.req("CONF-4")
def test_equal_content_causes_no_reload(config: Extensions, tmp_path: Path) -> None:
    before = config.file.current()
    assert config.file.current() is before
    os.utime(config.path, (5, 5))
    assert config.file.current() is before
    data = config.path.read_bytes()
    config.path.unlink()
    config.path.write_bytes(data)
    assert config.file.current() is before
    copy = tmp_path / "copy.json"
    copy.write_bytes(data)
    config.env[PATH_VARIABLE] = str(copy)
    assert config.file.current().servers is before.servers  # another path, the very same servers


@pytest.mark.req("CONF-2")
@pytest.mark.parametrize("how", ["search", "env"])
def test_a_file_that_disappears_leaves_everything_in_place(tmp_path: Path, how: str) -> None:
    config = Extensions(tmp_path, {PATH_VARIABLE: str(tmp_path / FILE_NAME)} if how == "env" else {})
    config.write({"s": {"command": "one"}})
    before = config.file.current()
    config.path.unlink()
    assert config.file.current() is before
    config.write({"s": {"command": "back"}})
    assert command(config) == "back"


@pytest.mark.req("CONF-2")
def test_a_file_that_disappears_does_not_give_way_to_one_further_up(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / FILE_NAME).write_text('{"mcpServers": {"s": {"command": "further up"}}}')
    config = Extensions(folder)
    config.write({"s": {"command": "one"}})
    assert command(config) == "one"
    config.path.unlink()
    assert command(config) == "one"
    assert Extensions(folder).file.current().servers["s"].command == "further up"


@pytest.mark.req("CONF-2", "CONF-4")
def test_a_nearer_file_that_appears_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / FILE_NAME).write_text('{"mcpServers": {"s": {"command": "further up"}}}')
    config = Extensions(folder)
    assert command(config) == "further up"
    config.write({"s": {"command": "nearer"}})
    assert command(config) == "nearer"


BROKEN = [
    b'{"mcpServers": {"s": {"comm',
    b"",
    b"[]",
    b"null",
    b'{"mcpServers": []}',
    b'{"mcpServers": "x"}',
    b"\xff\xfe\x00",
    b"not json",
    b"[" * 5000,
]


@pytest.mark.req("CONF-7")
@pytest.mark.parametrize("data", BROKEN)
def test_a_broken_file_at_start_loads_nothing_and_is_reported(tmp_path: Path, data: bytes) -> None:
    config = Extensions(tmp_path)
    config.path.write_bytes(data)
    snapshot = config.file.current()
    assert snapshot.servers == {}
    assert [fault.fatal for fault in snapshot.faults] == [True]
    assert "line" in snapshot.faults[0].where
    config.write({"s": {"command": "repaired"}})
    assert command(config) == "repaired"
    assert config.file.current().faults == ()


@pytest.mark.req("CONF-7")
@pytest.mark.parametrize("data", BROKEN)
def test_a_broken_file_at_reload_leaves_the_last_good_one_in_force(config: Extensions, data: bytes) -> None:
    good = config.path.read_bytes()
    before = config.file.current()
    config.path.write_bytes(data)
    after = config.file.current()
    assert after.servers is before.servers
    assert any(fault.fatal for fault in after.faults)
    reported = len(config.warnings)
    assert config.file.current() is after
    assert len(config.warnings) == reported  # once, not on every call
    config.path.write_bytes(good)
    assert config.file.current() is before


@pytest.mark.req("CONF-7")
def test_an_unreadable_file_leaves_the_last_good_one_in_force(config: Extensions) -> None:
    before = config.file.current()
    data = config.path.read_bytes()
    config.path.unlink()
    config.path.mkdir()
    config.env[PATH_VARIABLE] = str(config.path)
    after = config.file.current()
    assert after.servers is before.servers
    assert "cannot be read" in config.messages()
    assert config.file.current() is after
    config.path.rmdir()
    config.path.write_bytes(data)
    assert config.file.current() is before


@pytest.mark.req("CONF-7")
def test_at_reload_a_broken_entry_keeps_its_last_good_configuration(config: Extensions) -> None:
    config.write({"s": None, "other": {"command": "new"}, "fresh": {"command": "f"}})
    snapshot = config.file.current()
    assert {name: server.command for name, server in snapshot.servers.items()} == {
        "s": "one",
        "other": "new",
        "fresh": "f",
    }
    assert snapshot.refused == {}
    assert any(fault.fatal and fault.server == "s" for fault in snapshot.faults)
    config.write({"other": {"command": "new"}})
    assert set(config.file.current().servers) == {"other"}


@pytest.mark.req("CONF-7", "ADMIN-3")
def test_a_broken_entry_that_is_disabled_does_not_stay_in_force(config: Extensions) -> None:
    config.write({"s": {"command": "one", "tool_call_timeout": 0, "enabled": False}})
    snapshot = config.file.current()
    assert snapshot.servers == {}
    assert set(snapshot.refused) == {"s"}


@pytest.mark.req("CONF-7")
def test_bad_interceptors_at_reload_leave_the_last_good_list(tmp_path: Path) -> None:
    config = Extensions(tmp_path)
    config.write({}, mcpInterceptors=["m:b"])
    assert config.file.current().interceptors == ("m:b",)
    config.write({"s": {"command": "x"}}, mcpInterceptors=5)
    assert config.file.current().interceptors == ("m:b",)
    assert set(config.file.current().servers) == {"s"}


@pytest.mark.req("CONF-7")
def test_duplicate_keys_are_warned_about(tmp_path: Path) -> None:
    config = Extensions(tmp_path)
    config.path.write_text('{"mcpServers": {"s": {"command": "a"},\n "s": {"command": "b"}}}')
    assert command(config) == "b"
    (warning,) = config.warnings
    assert not warning.fatal
    assert warning.where == "mcpServers.s (line 2, column 2)"


@pytest.mark.req("CONF-4")
def test_one_snapshot_for_all_threads(config: Extensions) -> None:
    config.write({"s": {"command": "two"}})
    seen: list[object] = []
    threads = [threading.Thread(target=lambda: seen.append(config.file.current())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(snapshot) for snapshot in seen}) == 1


@pytest.mark.req("CONF-4")
def test_the_helper_serves_any_file(tmp_path: Path) -> None:
    path = tmp_path / "any.txt"
    watched = WatchedFile(lambda: path)
    with pytest.raises(FileNotFoundError):
        watched.look()
    path.write_text("a")
    state = watched.look()
    assert state is not None
    assert state.data == b"a"
    assert watched.look() is None
    path.write_text("b")
    assert watched.look() is not None
    path.unlink()
    with pytest.raises(FileNotFoundError):
        watched.look()
    path.write_text("b")
    assert watched.look() is None


@pytest.mark.req("CONF-7")
def test_faults_are_logged_where_nobody_asks_for_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).write_text('{"mcpServers": {"s": 5}}')
    ExtensionsFile(explicit=None, env={}, cwd=tmp_path).current()
    assert "mcpServers.s" in caplog.text


@pytest.mark.req("PLUG-4")
def test_sections_in_use(tmp_path: Path) -> None:
    config = Extensions(tmp_path)
    config.write(
        {
            "s": {"url": "http://h", "user_auth": {}, "unclaimed": {}},
            "t": {"command": "x", "tools": {"raw": {"routing": {}}}},
        }
    )
    assert sections_in_use(config.file.current()) == {"user_auth", "routing"}
