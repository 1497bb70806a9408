"""``python -m moorage_drivers.example_server [--port PORT]``: the example server over HTTP."""

import argparse
import socket
import sysconfig
import threading
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.fastmcp import FastMCP

from moorage_drivers.example_server.jobs import Job


def build() -> FastMCP:
    """The server with its tools; jobs live in its process."""
    server = FastMCP("folder-jobs", stateless_http=True, json_response=True)
    jobs: dict[str, Job] = {}

    def answer(task_id: str) -> dict[str, Any]:
        job = jobs.get(task_id)
        if job is None:
            return {"task_id": task_id, "status": "failed", "error_code": "task_not_found"}
        reply: dict[str, Any] = {"task_id": task_id, "status": job.status, "poll_after_seconds": 0.5}
        if job.figures is not None:
            reply["result"] = job.figures
        if job.error is not None:
            reply["error"] = job.error
        return reply

    @server.tool()
    def hash_folder(folder: str | None = None, seconds: float = 10.0) -> dict[str, Any]:
        """Count and hash the files below a folder, by default Python's standard library.

        It takes at least the given number of seconds.
        """
        path = Path(folder or sysconfig.get_path("stdlib"))
        if not path.is_dir():
            raise ValueError("there is no such folder")
        job = Job(path, min(max(seconds, 0.0), 3600.0))
        jobs[job.task_id] = job
        threading.Thread(target=job.run, daemon=True, name=f"job-{job.task_id}").start()
        return {"task_id": job.task_id, "status": "running"}

    @server.tool()
    def hash_status(task_id: str) -> dict[str, Any]:
        """How a job is doing."""
        return answer(task_id)

    @server.tool()
    def hash_cancel(task_id: str) -> dict[str, Any]:
        """Stop a job."""
        job = jobs.get(task_id)
        if job is not None:
            job.cancel()
        return answer(task_id)

    @server.tool()
    def count_files(folder: str) -> dict[str, Any]:
        """An ordinary tool: how many entries a folder has, at once."""
        return {"entries": len(list(Path(folder).iterdir()))}

    return server


def main(argv: list[str] | None = None) -> None:
    """Serve until interrupted; prints the URL once the port is bound."""
    parser = argparse.ArgumentParser(prog="python -m moorage_drivers.example_server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8931, help="0 takes a free one (default: 8931)")
    options = parser.parse_args(argv)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host, options.port))
        print(f"http://{options.host}:{listener.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(build().streamable_http_app(), log_level="warning", lifespan="on")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
