"""Contributes the assistants ``direct`` and ``agent``, and the checkpointer that keeps their states."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager

from moorage.contract import Assistant, AssistantSpec, GatewayContext, LifecycleSpec, hookimpl

CHECKPOINTS_PRECEDENCE = 100
"""Early, so that states can be kept before anything runs, and closed last."""


def _open_checkpoints(context: GatewayContext) -> AbstractAsyncContextManager[None]:
    from moorage_drivers.assistants.checkpoints import open_checkpoints

    return open_checkpoints(context)


def _direct(context: GatewayContext) -> Assistant:
    from moorage_drivers.assistants.direct import DirectAssistant

    return DirectAssistant(context)


def _agent(context: GatewayContext) -> Assistant:
    from moorage_drivers.assistants.agent import AgentAssistant

    return AgentAssistant(context)


def _agent_unavailable(context: GatewayContext) -> str | None:
    if getattr(context.settings.get("assistants"), "model", None):
        return None
    return "no model is configured: set assistants.model in moorage.toml, or MOORAGE_ASSISTANTS_MODEL"


@hookimpl
def moorage_assistants() -> Iterable[AssistantSpec]:
    return [
        AssistantSpec(
            "direct", "Runs the tool calls that a message states as JSON; needs no model.", _direct
        ),
        AssistantSpec("agent", "A LangChain agent on the configured model.", _agent, _agent_unavailable),
    ]


@hookimpl
def moorage_lifecycle() -> Iterable[LifecycleSpec]:
    return [LifecycleSpec("checkpoints", CHECKPOINTS_PRECEDENCE, _open_checkpoints)]
