"""The jobs: count and hash the files below a folder, in a thread each."""

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED_FOLDERS = frozenset({"__pycache__", "site-packages", "dist-packages"})
"""Left out, since what lies there changes while Python runs or packages come and go."""


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file below ``folder``, sorted, without `SKIPPED_FOLDERS` and symbolic links."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            path = Path(root, name)
            if path.is_file() and not path.is_symlink():
                yield path


@dataclass
class Job:
    """One job and how far it is. ``figures`` are there once it has completed."""

    folder: Path
    seconds: float
    task_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    status: str = "running"
    error: str | None = None
    figures: dict[str, object] | None = None
    files_done: int = 0
    files_in_all: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Do the work, spread over at least ``seconds``."""
        try:
            self._hash(sorted(files_below(self.folder), key=self._name))
        except OSError as error:
            self.error = f"{type(error).__name__}: {error.strerror}"
            self._end("failed")

    def cancel(self) -> None:
        """Stop it, unless it has ended."""
        self._end("cancelled")
        self._stopped.set()

    def _end(self, status: str) -> None:
        with self._lock:
            if self.status == "running":
                self.status = status

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _hash(self, paths: list[Path]) -> None:
        started = time.monotonic()
        digest, total = hashlib.sha256(), 0
        self.files_in_all = len(paths)
        for number, path in enumerate(paths, start=1):
            content = path.read_bytes()
            total += len(content)
            line = f"{self._name(path)}\0{hashlib.sha256(content).hexdigest()}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
            self.files_done = number
            ahead = self.seconds * number / len(paths) - (time.monotonic() - started)
            if self._stopped.wait(ahead if ahead > 0.01 else 0):
                return
        self.figures = {
            "folder": str(self.folder),
            "files": len(paths),
            "bytes": total,
            "sha256": digest.hexdigest(),
        }
        self._end("completed")
