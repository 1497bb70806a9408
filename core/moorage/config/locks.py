"""Mutual exclusion of writers, within the process and between processes (CONF-5)."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from moorage.config.errors import ConfigWriteFailed

try:
    import fcntl
except (
    ImportError
):  # pragma: no cover - Windows has no such module; writers of one process still exclude each other
    fcntl = None  # type: ignore[assignment]

_RETRY_SECONDS = 0.01


def lock_path(target: Path) -> Path:
    """The sidecar beside the file itself (not beside a symlink to it), so that all writers find one."""
    return target.with_name(f".{target.name}.lock")


@contextlib.contextmanager
def file_lock(target: Path, *, timeout_seconds: float) -> Iterator[None]:
    """Hold the advisory locks of a file: of its sidecar, and of the file itself where it exists.

    The sidecar outlives the file's replacement. The file's own lock serves writers that see the same file
    in different folders (a single-file bind mount), where it is written in place. Blocks its thread.
    Raises `ConfigWriteFailed` when another process holds a lock for too long.
    """
    deadline = time.monotonic() + timeout_seconds
    with contextlib.ExitStack() as stack:
        sidecar = _open_sidecar(target)
        if sidecar is not None:
            stack.callback(os.close, sidecar)
            _acquire(sidecar, target, deadline)
        while True:
            descriptor = _open_existing(target)
            if descriptor is None:
                break
            _acquire_or_close(descriptor, target, deadline)
            if _is_still(descriptor, target):
                stack.callback(os.close, descriptor)
                break
            os.close(descriptor)
        yield


def _open_sidecar(target: Path) -> int | None:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    try:
        # Whoever may write the file may take part.
        mode = os.stat(target).st_mode & 0o666 if target.exists() else 0o600
        return os.open(lock_path(target), flags, mode)
    except OSError:
        return None  # a folder that cannot be written: the file's own lock remains


def _open_existing(target: Path) -> int | None:
    try:
        return os.open(target, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None


def _acquire_or_close(descriptor: int, target: Path, deadline: float) -> None:
    try:
        _acquire(descriptor, target, deadline)
    except BaseException:
        os.close(descriptor)
        raise


def _acquire(descriptor: int, target: Path, deadline: float) -> None:
    if fcntl is None:  # pragma: no cover
        return
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise ConfigWriteFailed(
                    "another process is writing the extensions config and does not finish; try again",
                    where=str(target),
                ) from None
            time.sleep(_RETRY_SECONDS)
        except OSError:
            return  # a file system without locks: the process-local lock remains
        else:
            return


def _is_still(descriptor: int, target: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(target))
    except OSError:
        return False
