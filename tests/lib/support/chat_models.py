"""A chat model that a test scripts."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

Step = AIMessage | str | Exception | Callable[[Sequence[BaseMessage]], AIMessage]


def call(name: str, number: int = 1, **args: Any) -> AIMessage:
    """A message that calls one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{number}", "type": "tool_call"}])


class ScriptedModel(BaseChatModel):
    """Answers call after call with the next step; remembers what it was shown and which tools it got."""

    script: list[Any] = Field(default_factory=list)
    shown: list[list[BaseMessage]] = Field(default_factory=list)
    tools: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        self.tools.append([tool.name for tool in tools])
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.shown.append(list(messages))
        step: Step = self.script.pop(0) if self.script else "I have nothing more to say."
        if isinstance(step, Exception):
            raise step
        if isinstance(step, str):
            step = AIMessage(step)
        message = step if isinstance(step, AIMessage) else step(messages)
        return ChatResult(generations=[ChatGeneration(message=message)])
