"""An HTTP MCP server of jobs that ask for approval; prints its URL. GET ``/answers`` shows all that came."""

import itertools
import json
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script
from rpc_http import JsonHandler, serve  # type: ignore[import-not-found]

TOOLS = [rpc.tool(f"job_{role}") for role in ("submit", "status", "cancel", "respond")]
SCHEMA = {"type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]}
NUMBERS = itertools.count(1)
JOBS: dict[str, Any] = {}
ANSWERS: list[Any] = []


def call(name: str, arguments: dict[str, Any]) -> Any:
    job: dict[str, Any]
    if name == "job_submit":
        job_id = f"job-{next(NUMBERS)}"
        JOBS[job_id] = None
        job = {"task_id": job_id, "status": "running"}
    else:
        job_id = arguments["task_id"]
        if name == "job_respond":
            ANSWERS.append(arguments["response"])
            JOBS[job_id] = arguments["response"]
        if JOBS[job_id] is None:
            request = {"question": "May it go on?", "schema": SCHEMA}
            job = {"task_id": job_id, "status": "input_required", "input_required": request}
        else:
            result = {"approved": JOBS[job_id]["approve"]}
            job = {"task_id": job_id, "status": "completed", "result": result}
    return rpc.text(json.dumps(job), structuredContent=job)


class Handler(JsonHandler):  # type: ignore[misc] # beside this script, too
    def do_POST(self) -> None:
        request = self.body()
        answer = rpc.answer(request, TOOLS, call)
        self.respond(202 if answer is None else 200, answer)

    def do_GET(self) -> None:
        self.respond(200 if self.path == "/answers" else 405, ANSWERS if self.path == "/answers" else None)


if __name__ == "__main__":
    serve(Handler)
