"""Atomic writes against what file systems do (CONF-5; C19)."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.extensions import Extensions

from moorage.config import ConfigEditor, ConfigWriteFailed

LONG = {"command": "npx", "args": ["x" * 5000]}


@pytest.fixture
def config(tmp_path: Path) -> Extensions:
    folder = tmp_path / "home"
    folder.mkdir()
    config = Extensions(folder)
    config.write({"s": {"command": "npx", "args": ["srv"]}})
    return config


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


CLEAN = {"extensions_config.json", ".extensions_config.json.lock"}


def failing(number: int) -> Callable[..., Any]:
    def fail(*args: Any, **options: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.req("CONF-5")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664])
async def test_the_mode_stays(config: Extensions, mode: int) -> None:
    config.path.chmod(mode)
    await ConfigEditor(config.file).set_enabled("s", False)
    assert stat.S_IMODE(config.path.stat().st_mode) == mode
    assert files(config.path.parent) == CLEAN


@pytest.mark.req("CONF-5")
async def test_a_symlink_stays_one_and_its_target_is_written(config: Extensions, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "real.json"
    config.path.rename(target)
    target.chmod(0o600)
    config.path.symlink_to(Path("..") / "elsewhere" / "real.json")
    await ConfigEditor(config.file).set_enabled("s", False)
    assert config.path.is_symlink()
    assert os.readlink(config.path) == "../elsewhere/real.json"
    assert config.raw()["mcpServers"]["s"]["enabled"] is False
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert not config.file.current().servers["s"].enabled
    assert files(elsewhere) == {"real.json", ".real.json.lock"}


@pytest.mark.req("CONF-5")
@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV])
async def test_where_a_rename_is_impossible_the_file_is_written_in_place(
    config: Extensions, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    config.path.chmod(0o640)
    inode = config.path.stat().st_ino
    monkeypatch.setattr(os, "replace", failing(number))
    editor = ConfigEditor(config.file)
    await editor.replace({"mcpServers": {"s": LONG}})
    assert config.raw() == {"mcpServers": {"s": LONG}}
    await editor.replace({"mcpServers": {"s": {"args": []}}})  # shorter than before
    assert config.raw() == {"mcpServers": {"s": {"command": "npx", "args": []}}}
    assert config.path.stat().st_ino == inode
    assert stat.S_IMODE(config.path.stat().st_mode) == 0o640
    assert files(config.path.parent) == CLEAN


@pytest.mark.req("CONF-5")
async def test_a_folder_that_cannot_be_written(config: Extensions, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def no_new_files(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", no_new_files)
    await ConfigEditor(config.file).set_enabled("s", False)
    assert config.raw()["mcpServers"]["s"]["enabled"] is False
    assert files(config.path.parent) == {"extensions_config.json"}


@pytest.mark.req("CONF-5")
@pytest.mark.parametrize("function", ["write", "fsync"])
@pytest.mark.parametrize("in_place", [False, True])
async def test_a_full_disk_leaves_the_old_content_and_no_temporary_file(
    config: Extensions, monkeypatch: pytest.MonkeyPatch, function: str, in_place: bool
) -> None:
    data = config.path.read_bytes()
    calls = 0
    real = getattr(os, function)

    def full(descriptor: int, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        # In place, the first attempt is the temporary file, which is fine; then the new content, half of
        # which is written; then the old one again.
        if calls == (2 if in_place else 1):
            if function == "write":
                real(descriptor, bytes(args[0])[: len(args[0]) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, *args)

    monkeypatch.setattr(os, function, full)
    if in_place:
        monkeypatch.setattr(os, "replace", failing(errno.EBUSY))
    with pytest.raises(ConfigWriteFailed, match="No space left"):
        await ConfigEditor(config.file).replace({"mcpServers": {"s": LONG}})
    assert config.path.read_bytes() == data
    assert files(config.path.parent) == CLEAN
    monkeypatch.undo()
    assert (await ConfigEditor(config.file).replace({"mcpServers": {"s": LONG}})).written


@pytest.mark.req("CONF-5")
async def test_a_failing_rename_leaves_everything_as_it_was(
    config: Extensions, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = config.path.read_bytes()
    monkeypatch.setattr(os, "replace", failing(errno.EIO))
    with pytest.raises(ConfigWriteFailed):
        await ConfigEditor(config.file).set_enabled("s", False)
    assert config.path.read_bytes() == data
    assert files(config.path.parent) == CLEAN


@pytest.mark.req("CONF-5")
async def test_a_short_write_is_completed(config: Extensions, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:7]))
    await ConfigEditor(config.file).replace({"mcpServers": {"s": LONG}})
    monkeypatch.undo()
    assert config.raw() == {"mcpServers": {"s": LONG}}
