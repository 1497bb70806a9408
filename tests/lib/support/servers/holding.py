"""An HTTP MCP server of jobs that is steered by files: ``holding.py FOLDER``; prints its URL.

``hold-submit`` and ``hold-status`` keep those calls waiting while they exist; with ``done`` jobs have ended.
``log`` has a line when a call begins, and one when it is answered.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script
from rpc_http import JsonHandler, serve  # type: ignore[import-not-found]

FOLDER = Path(sys.argv[1])
TOOLS = [rpc.tool(name) for name in ("job_submit", "job_status", "job_cancel")]
LOCK = threading.Lock()


def log(line: str) -> None:
    with LOCK, (FOLDER / "log").open("a") as file:
        file.write(line + "\n")


def call(name: str, arguments: dict[str, Any]) -> Any:
    log(f"begin {name}")
    hold = FOLDER / name.replace("job_", "hold-")
    while hold.exists():
        time.sleep(0.01)
    status = "completed" if name == "job_status" and (FOLDER / "done").exists() else "running"
    job = {"task_id": arguments.get("task_id", "job-1"), "status": status, "result": {"frames": 3}}
    return rpc.text(json.dumps(job), structuredContent=job)


class Handler(JsonHandler):  # type: ignore[misc] # beside this script, too
    def do_POST(self) -> None:
        request = self.body()
        answer = rpc.answer(request, TOOLS, call)
        self.respond(202 if answer is None else 200, answer)
        if request.get("method") == "tools/call":
            log(f"answered {request['params']['name']}")


if __name__ == "__main__":
    serve(Handler)
