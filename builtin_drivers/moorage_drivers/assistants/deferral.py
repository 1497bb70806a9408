"""Deferred tools: with many of them an agent sees the schemas of those only that it has found (ROUTE-4)."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import Field

from moorage.contract import GatewayTool, routing_prompt
from moorage.tasks.prompt import one_line
from moorage_drivers.assistants.graph import GraphContext
from moorage_drivers.assistants.tool_index import ToolIndex, identity

TOOL_SEARCH = "tool_search"
MAX_FOUND = 5
MAX_KEPT = 200
"""Promotions that a thread remembers; the oldest go first."""
_LISTED_SERVERS = 50
_STATE = "promoted_tools"


def _merged(old: list[str] | None, new: list[str] | None) -> list[str]:
    """Two searches in one step both count."""
    known = [one for one in old or () if isinstance(one, str) and one not in (new or ())]
    return [*known, *(new or ())][-MAX_KEPT:]


class DeferralState(AgentState[Any]):
    """What the thread has found, as `identity` says it; no client's to set with its input."""

    promoted_tools: NotRequired[Annotated[list[str], PrivateStateAttr, _merged]]


class Deferral(AgentMiddleware[Any, GraphContext]):
    """Withholds the tools that are not promoted from the model, and refuses calls to them.

    Always part of the agent, so that its states have one shape; without deferred tools it does nothing.
    """

    state_schema = DeferralState

    def __init__(self, tools: Sequence[GatewayTool], *, above: int | None, by_keywords: int) -> None:
        """``above``: with more tools than this all are deferred; never, where it is None."""
        super().__init__()
        self._tools = tools
        self._index = ToolIndex(tools if above is not None and len(tools) > above else ())
        self._by_keywords = by_keywords
        self.tools = [self._search_tool()] if self.active else []

    @property
    def active(self) -> bool:
        return bool(self._index.by_name)

    def promoted(self, state: Any) -> frozenset[str]:
        """Visible names that may be called now: found by search, or for the latest user message's sake."""
        kept = {one for one in state.get(_STATE) or () if isinstance(one, str)}
        found = {name for name, tool in self._index.by_name.items() if identity(tool) in kept}
        text = latest_words(state.get("messages") or ())
        wanted = self._index.for_message(text, self._by_keywords)
        return frozenset(found | {tool.name for tool in wanted})

    async def awrap_model_call(
        self, request: ModelRequest[GraphContext], handler: Callable[[ModelRequest[GraphContext]], Any]
    ) -> ModelResponse[Any] | AIMessage:
        if self.active:
            request = self._narrowed(request)
        answer: ModelResponse[Any] = await handler(request)
        return answer

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        name = request.tool_call["name"]
        if name in self._index.by_name and name not in self.promoted(request.state):
            return ToolMessage(
                f"Nothing was called: {name} has to be found with {TOOL_SEARCH} before it can be used.",
                name=name,
                tool_call_id=request.tool_call["id"],
                status="error",
            )
        return await handler(request)

    def _narrowed(self, request: ModelRequest[GraphContext]) -> ModelRequest[GraphContext]:
        promoted = self.promoted(request.state)
        withheld = self._index.by_name.keys() - promoted
        shown = [one for one in request.tools if not (isinstance(one, BaseTool) and one.name in withheld)]
        parts = (
            request.system_message.text if request.system_message else "",
            routing_prompt(self._tools, deferred=withheld),
            self._notice(withheld),
        )
        prompt = SystemMessage("\n\n".join(part for part in parts if part))
        return request.override(tools=shown, system_message=prompt)

    def _notice(self, withheld: set[str]) -> str:
        if not withheld:
            return ""
        counts = Counter(self._index.by_name[name].server for name in withheld)
        listed = [f"{one_line(server, 64)} ({count})" for server, count in sorted(counts.items())]
        if len(listed) > _LISTED_SERVERS:
            listed[_LISTED_SERVERS:] = [f"{len(listed) - _LISTED_SERVERS} more servers"]
        return (
            f"{len(withheld)} further tools are not shown. Search for what you need with {TOOL_SEARCH}; what"
            f" it finds can be called from then on. They belong to: {', '.join(listed)}."
        )

    def _search_tool(self) -> BaseTool:
        async def search(
            query: Annotated[str, Field(description="What the tool should do, or its name.")],
            runtime: ToolRuntime[Any, Any],
        ) -> Command[Any]:
            found = self._index.search(query, MAX_FOUND)
            lines = [f"- {tool.name}: {one_line(tool.description)}" for tool in found]
            text = (
                "\n".join(["These can be called now:", *lines])
                if found
                else "No tool matches; try other words."
            )
            message = ToolMessage(text, name=TOOL_SEARCH, tool_call_id=runtime.tool_call_id)
            return Command(update={"messages": [message], _STATE: [identity(tool) for tool in found]})

        return StructuredTool.from_function(
            coroutine=search,
            name=TOOL_SEARCH,
            description="Find further tools by what they do. What is found can be called from then on.",
        )


def latest_words(messages: Sequence[AnyMessage]) -> str:
    """The latest message of a real user; those of the gateway itself are not meant (NOTE-6)."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage) and not message.additional_kwargs.get("moorage_internal"):
            return str(message.text)
    return ""
