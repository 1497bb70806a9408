"""A stdio server that keeps state as a browser does: pages that are open, a cookie jar, screenshots."""

import json
import os
import sys
import tempfile
from typing import Any

import rpc  # type: ignore[import-not-found] # beside this script

TEXT = {"type": "string"}
TOOLS = [
    rpc.tool("open", inputSchema={"type": "object", "properties": {"url": TEXT}, "required": ["url"]}),
    rpc.tool("log_in", inputSchema={"type": "object", "properties": {"name": TEXT}, "required": ["name"]}),
    rpc.tool("back"),
    rpc.tool("state"),
    rpc.tool("screenshot"),
    rpc.tool("crash"),
]


class Browser:
    def __init__(self) -> None:
        self.history: list[str] = []
        self.cookies: dict[str, str] = {}

    def state(self) -> dict[str, Any]:
        return {"pid": os.getpid(), "history": self.history, "cookies": self.cookies}

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        match tool:
            case "open":
                self.history.append(arguments["url"])
            case "log_in":
                self.cookies["session"] = arguments["name"]
            case "back":
                if len(self.history) < 2:
                    return rpc.text("there is no page to go back to", isError=True)
                self.history.pop()
            case "screenshot":
                with tempfile.NamedTemporaryFile(suffix=".png", prefix="shot-", delete=False) as file:
                    file.write(json.dumps(self.state()).encode())
                link = {"type": "resource_link", "uri": f"file://{file.name}", "name": "screenshot"}
                return {"content": [link]}
            case "crash":
                os._exit(1)
        return rpc.text(json.dumps(self.state()))


def main() -> None:
    browser = Browser()
    for line in sys.stdin:
        answer = rpc.answer(json.loads(line), TOOLS, browser.call)
        if answer is not None:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
