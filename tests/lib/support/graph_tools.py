"""LangChain tools as a tool source hands them to assistants."""

from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from moorage.contract import GatewayTool


def gateway_tool(function: Callable[..., Any], name: str | None = None, **fields: Any) -> GatewayTool:
    made: BaseTool = StructuredTool.from_function(
        coroutine=function, name=name or function.__name__, description=function.__doc__ or "a tool"
    )
    return GatewayTool(
        name=made.name,
        raw_name=made.name,
        server="s",
        description=made.description,
        input_schema={},
        native=made,
        **fields,
    )
