"""The files of threads: opened for the API, and scanned for what changed (STDIO-2, API-5)."""

import asyncio
import mimetypes
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from moorage.contract import VIRTUAL_ROOT, NotFound, OpenedFile
from moorage_drivers.mcp.workspace import UnsafeName, thread_root

IGNORED_FOLDERS = frozenset(
    {".mcp", ".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".cache",
     ".mypy_cache", ".pytest_cache", ".ruff_cache", ".idea", ".DS_Store"}
)  # fmt: skip
"""What a summary of changes leaves out, at any depth (STDIO-2)."""
MAX_SCANNED = 20_000
# File systems stamp with a clock that lags behind by up to a tick.
_CLOCK_LAG_NS = 10_000_000


class HomeFiles:
    """The gateway's `ThreadFiles`, below its home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    async def open(self, user_id: str, thread_id: str, path: str) -> OpenedFile:
        """See `ThreadFiles.open`."""
        return await asyncio.to_thread(self._open, user_id, thread_id, path)

    def _open(self, user_id: str, thread_id: str, path: str) -> OpenedFile:
        inner = f"/{path.lstrip('/')}/".removeprefix(f"{VIRTUAL_ROOT}/").strip("/")
        try:
            root = thread_root(self._home, user_id, thread_id).resolve(strict=True)
            found = (root / inner).resolve(strict=True)
            descriptor = _open_inside(root, found)
        except (OSError, UnsafeName, ValueError, RuntimeError):
            raise NotFound("there is no such file in this thread") from None
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            os.close(descriptor)
            raise NotFound("there is no such file in this thread")
        return OpenedFile(
            name=Path(inner).name,
            size_bytes=facts.st_size,
            modified_at=datetime.fromtimestamp(facts.st_mtime, UTC),
            media_type=mimetypes.guess_type(found.name)[0] or "application/octet-stream",
            stream=os.fdopen(descriptor, "rb"),
        )


def _open_inside(root: Path, found: Path) -> int:
    """Open a resolved path step by step, so that no link put in its way meanwhile leads out."""
    parts = found.relative_to(root).parts
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Not blocking: a pipe in the tree must not hold the thread that opens it.
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except IndexError:
        raise FileNotFoundError("the root itself is no file") from None
    finally:
        os.close(folder)


def changed_since(folder: Path, start_ns: int, *, everything: bool = False) -> Iterator[Path]:
    """Regular files below ``folder`` that were created or changed since ``start_ns`` (`time.time_ns`).

    ``everything`` includes `IGNORED_FOLDERS`. Looks at no more than `MAX_SCANNED` entries.
    """
    waiting, seen = [str(folder)], 0
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                seen += 1
                if seen > MAX_SCANNED:
                    return
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if everything or entry.name not in IGNORED_FOLDERS:
                            waiting.append(entry.path)
                    elif entry.is_file(follow_symlinks=False) and (
                        entry.stat(follow_symlinks=False).st_ctime_ns >= start_ns - _CLOCK_LAG_NS
                    ):
                        yield Path(entry.path)
                except OSError:
                    continue
