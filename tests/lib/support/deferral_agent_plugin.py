"""A gateway plugin: the default agent on a model that does what the user's message says (``obedient``).

A message is JSON: a list of tool calls, one step each. The last answer tells what the model was shown.
"""

import json
from collections.abc import Iterable
from typing import Any

from moorage.contract import Assistant, AssistantSpec, GatewayContext, hookimpl

MOORAGE_API = ">=0.1"


def _build(context: GatewayContext) -> Assistant:
    from langchain_core.messages import AIMessage, HumanMessage

    from moorage_drivers.assistants.agent import AgentAssistant
    from support.chat_models import ScriptedModel, call

    model = ScriptedModel()

    def obey(messages: Any) -> AIMessage:
        last = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
        done = sum(bool(m.tool_calls) for m in messages[last:] if isinstance(m, AIMessage))
        steps = json.loads(messages[last].text)["steps"]
        model.script.append(obey)
        if done < len(steps):
            name, args = steps[done]
            return call(name, hash((last, done)) % 10**9, **args)
        offered = model.tools[-(len(steps) + 1) :]
        return AIMessage(json.dumps({"offered": offered, "prompt": messages[0].text}))

    model.script.append(obey)
    return AgentAssistant(context, lambda: model)


@hookimpl
def moorage_assistants() -> Iterable[AssistantSpec]:
    return [AssistantSpec("obedient", "The default agent on a model that obeys.", _build)]
