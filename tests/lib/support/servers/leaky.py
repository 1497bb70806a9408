"""An HTTP MCP server whose failures quote what they were sent: headers, path and query.

Its tools are failures: ``status_401``, ``status_403``, ``status_500``, ``reset``, ``slow``, ``rpc_error``;
``ok`` answers. With the argument ``closed`` it refuses to initialise, and says why.
"""

import sys
import time

import rpc  # type: ignore[import-not-found] # beside this script
from rpc_http import JsonHandler, serve  # type: ignore[import-not-found]

NAMES = ("ok", "status_401", "status_403", "status_500", "reset", "slow", "rpc_error")
TOOLS = [rpc.tool(name) for name in NAMES]
CLOSED = "closed" in sys.argv[1:]


class Handler(JsonHandler):  # type: ignore[misc] # beside this script, too
    def do_POST(self) -> None:
        request = self.body()
        quoted = f"{self.path} {self.headers.raw_items()}"
        called = request.get("method") == "tools/call"
        tool = str(request["params"]["name"]) if called else ""
        if CLOSED or tool in ("status_401", "status_403", "status_500"):
            status = 403 if CLOSED else int(tool.removeprefix("status_"))
            self.respond(status, {"error": {"message": f"refused: {quoted}"}})
        elif tool == "reset":
            self.connection.close()
        elif tool == "rpc_error":
            self.respond(200, rpc.error(request, f"failed on {quoted}"))
        else:
            if tool == "slow":
                time.sleep(3)
            answer = rpc.answer(request, TOOLS, lambda name, arguments: rpc.text(name))
            self.respond(202 if answer is None else 200, answer)


if __name__ == "__main__":
    serve(Handler)
