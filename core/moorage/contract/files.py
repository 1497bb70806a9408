"""A thread's files, by the names that agents know them by (STDIO-4, API-5)."""

from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

VIRTUAL_ROOT = "/mnt/user-data"
"""What agents call the root of a thread's tree, wherever it lies."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A regular file of a thread, open for reading; whoever asked for it closes ``stream``."""

    name: str
    size_bytes: int
    modified_at: datetime
    media_type: str
    stream: BinaryIO


class ThreadFiles(Protocol):
    """Opens files of threads; a service of the gateway."""

    async def open(self, user_id: str, thread_id: str, path: str) -> OpenedFile:
        """``path`` is a virtual path, or what follows `VIRTUAL_ROOT` in one.

        Raises `NotFound` for what does not exist, is no regular file, or lies outside the thread's tree,
        by a symbolic link included. The caller has checked that the thread is the user's.
        """
        ...
