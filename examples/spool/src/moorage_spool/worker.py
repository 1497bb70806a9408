"""``python -m moorage_spool.worker FOLDER COMMAND [ARGUMENTS]``: runs the jobs of a spool folder, one by one.

The command gets a job's arguments as JSON on its standard input. What it prints is the result (as JSON, if
it is JSON); a status other than 0 is a failure, told by the end of its standard error. One worker a folder:
at its start it queues again what a former one left.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from moorage_spool.spool import Spool

TICK_SECONDS = 0.1
TAIL_CHARACTERS = 2_000


def work(spool: Spool, command: list[str], *, until_empty: bool = False) -> None:
    """Serve for ever, or until nothing waits any more."""
    spool.prepare()
    for left in (spool.folder / "running").glob("*.json"):
        left.rename(spool.folder / "new" / left.name)
    while True:
        waiting = sorted((spool.folder / "new").glob("*.json"), key=lambda path: path.stat().st_mtime)
        if not waiting and until_empty:
            return
        for path in waiting[:1]:
            taken = spool.folder / "running" / path.name
            try:
                path.rename(taken)
            except FileNotFoundError:
                continue  # withdrawn meanwhile
            spool.write("done", path.stem, run(spool, path.stem, taken, command))
            taken.unlink()
        if not waiting:
            time.sleep(TICK_SECONDS)


def run(spool: Spool, job_id: str, taken: Path, command: list[str]) -> dict[str, Any]:
    """Run one job to its end; returns what ``done/`` says of it."""
    cancel = spool.folder / "cancel" / f"{job_id}.json"
    output, errors = spool.folder / "tmp" / f"{job_id}.out", spool.folder / "tmp" / f"{job_id}.err"
    with taken.open("rb") as job, output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(command, stdin=job, stdout=out, stderr=err)
        while process.poll() is None:
            if cancel.exists():
                process.terminate()
                process.wait()
                return {"state": "cancelled"}
            time.sleep(TICK_SECONDS)
    if process.returncode != 0:
        told = errors.read_text(errors="replace").strip()[-TAIL_CHARACTERS:]
        return {"state": "failed", "error": told or f"status {process.returncode}"}
    text = output.read_text(errors="replace").strip()
    try:
        return {"state": "done", "result": json.loads(text)}
    except ValueError:
        return {"state": "done", "result": text}


if __name__ == "__main__":
    work(Spool(Path(sys.argv[1])), sys.argv[2:])
