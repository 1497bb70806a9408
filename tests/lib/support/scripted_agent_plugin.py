"""A gateway plugin: the default agent on a model that follows one plan (``scripted``)."""

from collections.abc import Iterable
from typing import Any

from moorage.contract import Assistant, AssistantSpec, GatewayContext, hookimpl

MOORAGE_API = ">=0.1"


def _plan(messages: Any) -> Any:
    """Submit what the user asks for; tell what a notification says."""
    from langchain_core.messages import AIMessage, HumanMessage

    from support.chat_models import call

    last = messages[-1]
    if not isinstance(last, HumanMessage):
        return AIMessage("I started it.")
    text = str(last.text)
    if last.additional_kwargs.get("moorage_internal"):
        return AIMessage(f"It ended: {text}")
    return call("jobs_hash_folder", folder=text, seconds=1)


def _build(context: GatewayContext) -> Assistant:
    from moorage_drivers.assistants.agent import AgentAssistant
    from support.chat_models import ScriptedModel

    return AgentAssistant(context, lambda: ScriptedModel(script=[_plan] * 10))


@hookimpl
def moorage_assistants() -> Iterable[AssistantSpec]:
    return [AssistantSpec("scripted", "The default agent on a scripted model.", _build)]
