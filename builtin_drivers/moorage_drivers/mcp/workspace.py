"""Where a thread's files lie, and what agents call that place (STDIO-1, STDIO-4)."""

import re
import tempfile
from pathlib import Path

_SAFE_PART = re.compile(r"[A-Za-z0-9_@+=,:-][A-Za-z0-9_@+=,:.-]{0,127}")


class UnsafeName(ValueError):
    """A user or thread id that cannot be part of a path."""


def thread_root(home: Path, user_id: str, thread_id: str) -> Path:
    """The thread's tree, which agents see as ``/mnt/user-data``. Raises `UnsafeName`."""
    for kind, part in (("user", user_id), ("thread", thread_id)):
        if not _SAFE_PART.fullmatch(part):
            raise UnsafeName(f"this {kind} id cannot be used in a path")
    return home / "users" / user_id / "threads" / thread_id / "user-data"


def thread_workspace(home: Path, user_id: str, thread_id: str) -> Path:
    """The thread's working directory, made where it is missing. Raises `UnsafeName`."""
    workspace = thread_root(home, user_id, thread_id) / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    return workspace


def private_workspace() -> tempfile.TemporaryDirectory[str]:
    """For discovery, and for a call without a thread: nobody else's, and gone afterwards."""
    return tempfile.TemporaryDirectory(prefix="moorage-mcp-", ignore_cleanup_errors=True)


def temporary_folder(workspace: Path) -> Path:
    """``<workspace>/.mcp/tmp``, private to us (STDIO-1)."""
    folder = workspace / ".mcp" / "tmp"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder
