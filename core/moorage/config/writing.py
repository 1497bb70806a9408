"""Replaces a file's content so that nobody ever sees half of it (CONF-5)."""

import contextlib
import errno
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

# A rename onto a mount point is EBUSY, across a mount EXDEV; the others mean that the folder may not be
# written although the file may.
_NO_RENAME = frozenset({errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS})
_NEW_FILE_MODE = 0o600


def serialise(raw: dict[str, Any], like: bytes | None = None) -> bytes:
    """JSON text in the indentation that the old content has, two spaces otherwise."""
    found = re.search(rb"\n([ \t]+)\S", like or b"")
    lead = found[1].decode() if found else "  "
    indent = "\t" if lead.startswith("\t") else len(lead)
    try:
        return (json.dumps(raw, indent=indent, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can only write escaped
        return (json.dumps(raw, indent=indent) + "\n").encode()


def replace_file(target: Path, data: bytes) -> None:
    """Write ``data`` in the place of ``target``, which is no symlink, under the caller's lock.

    A temporary file in the same folder is written, synced and renamed. Where a rename is impossible, the
    content is written in place. The mode (and where possible the owner) stays; a new file is private.
    Raises `OSError`; the old content is then intact and no temporary file is left.
    """
    try:
        _by_rename(target, data)
    except OSError as error:
        if error.errno not in _NO_RENAME or not target.exists():
            raise
        _in_place(target, data)


def _by_rename(target: Path, data: bytes) -> None:
    before = os.stat(target) if target.exists() else None
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _NEW_FILE_MODE)
    try:
        try:
            _write_all(descriptor, data)
            if before is not None:
                _keep_owner_and_mode(descriptor, before)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def _in_place(target: Path, data: bytes) -> None:
    descriptor = os.open(target, os.O_RDWR)
    try:
        old = _read_all(descriptor)
        try:
            _overwrite(descriptor, data)
        except BaseException:
            # The old content fits: its blocks are still allocated.
            _overwrite(descriptor, old)
            raise
    finally:
        os.close(descriptor)


def _overwrite(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _write_all(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _keep_owner_and_mode(descriptor: int, before: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        # Only root can give a file away; a mode is kept in any case, and never wider than before.
        with contextlib.suppress(OSError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
        mode = before.st_mode & 0o7777
        if os.fstat(descriptor).st_gid != before.st_gid:
            mode &= ~0o070
        os.fchmod(descriptor, mode)


def _sync_folder(folder: Path) -> None:
    # The rename itself has happened; a file system that cannot sync folders does not undo it.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
