"""What a failed tool tells the agent; a tool's error never ends the run (TOOL-10)."""

from collections.abc import Callable

from moorage.contract import RunContext

MAX_CHARACTERS = 1_000


def explain_for(run: RunContext | None) -> Callable[[Exception], str]:
    """The tool node's handler: a bounded text without the run's secrets (CRED-9)."""
    redact: Callable[[str], str] = run.redact if run is not None else str

    def explain(error: Exception) -> str:
        text = redact(f"{type(error).__name__}: {error}")
        return f"The tool failed. {text}"[:MAX_CHARACTERS]

    return explain
