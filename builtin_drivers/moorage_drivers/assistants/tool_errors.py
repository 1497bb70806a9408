"""What a failed tool tells the agent; a tool's error never ends the run (TOOL-10)."""

from collections.abc import Callable

from moorage.contract import GatewayContext, Redactor

MAX_CHARACTERS = 1_000


def explain_with(context: GatewayContext) -> Callable[[Exception], str]:
    """The tool node's handler: a bounded text without secrets (CRED-9)."""

    def explain(error: Exception) -> str:
        text = f"{type(error).__name__}: {error}"
        if context.has(Redactor):
            text = context.service(Redactor).redact(text)
        return f"The tool failed. {text}"[:MAX_CHARACTERS]

    return explain
