"""A queue made of a folder, as batch systems have had them for decades.

A job is a file, and its state is where the file lies. Renaming is atomic, so that gateways and workers need
nothing else to agree.

``new/`` holds what waits, ``running/`` what a worker has taken, ``done/`` how it ended; a file in ``cancel/``
asks for a job's end.
"""

import json
import os
from pathlib import Path
from typing import Any

FOLDERS = ("tmp", "new", "running", "done", "cancel")


class Spool:
    """The folder. Every method may block for as long as the disk does, and raises `OSError`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        for name in FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def put(self, job_id: str, job: Any) -> dict[str, Any]:
        """Queue a job; putting the same id again changes nothing."""
        self.prepare()
        if (shown := self._found(job_id)) is None:
            self.write("new", job_id, job)
            shown = {"id": job_id, "state": "queued"}
        return shown

    def look(self, job_id: str) -> dict[str, Any]:
        """Where the job is; state ``gone`` where it is nowhere."""
        return self._found(job_id) or self._found(job_id) or {"id": job_id, "state": "gone"}

    def withdraw(self, job_id: str) -> dict[str, Any]:
        """End a job: at once where it waits, by asking its worker where it runs."""
        try:
            self._path("new", job_id).rename(self._path("tmp", job_id))
        except FileNotFoundError:
            self._path("cancel", job_id).touch()
            return self.look(job_id)
        self.write("done", job_id, {"state": "cancelled"})
        self._path("tmp", job_id).unlink(missing_ok=True)
        return self.look(job_id)

    def write(self, where: str, job_id: str, content: Any) -> None:
        """Whole or not at all: written aside, then renamed."""
        aside = self.folder / "tmp" / f"{job_id}.{os.getpid()}.part"
        with aside.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self._path(where, job_id))

    def _found(self, job_id: str) -> dict[str, Any] | None:
        # In the direction in which jobs move, so that one on its way is not missed.
        if self._path("new", job_id).exists():
            return {"id": job_id, "state": "queued"}
        if self._path("running", job_id).exists():
            return {"id": job_id, "state": "running"}
        try:
            ended = json.loads(self._path("done", job_id).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return {**ended, "id": job_id} if isinstance(ended, dict) else {"id": job_id, "state": "gone"}

    def _path(self, where: str, job_id: str) -> Path:
        if not job_id.isalnum():
            raise OSError("a job's id is of letters and digits")
        return self.folder / where / f"{job_id}.json"
