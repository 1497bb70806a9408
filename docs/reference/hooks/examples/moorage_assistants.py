"""An assistant that repeats what it hears, and remembers nothing."""

import sys
from collections.abc import AsyncIterator, Iterable
from typing import Any

from moorage.contract import (
    Assistant,
    AssistantEvent,
    AssistantSpec,
    GatewayContext,
    InvalidUpdate,
    RunContext,
    ThreadState,
    hookimpl,
)


class Echo:
    async def stream(self, run: RunContext, input: Any) -> AsyncIterator[AssistantEvent]:  # noqa: A002
        said = list((input or {}).get("messages", []))
        answer = [{"type": "ai", "content": message.get("content", "")} for message in said]
        yield AssistantEvent("values", {"messages": [*said, *answer]})

    async def state(self, thread_id: str, *, checkpoint_id: str | None = None) -> ThreadState | None:
        return None

    async def history(
        self, thread_id: str, *, limit: int = 10, before: str | None = None
    ) -> AsyncIterator[ThreadState]:
        return
        yield

    async def update_state(
        self, thread_id: str, values: Any, *, as_node: str | None = None, checkpoint_id: str | None = None
    ) -> ThreadState:
        raise InvalidUpdate("this assistant keeps no state")

    async def delete_thread(self, thread_id: str) -> None:
        return None


def build(context: GatewayContext) -> Assistant:
    return Echo()


@hookimpl
def moorage_assistants() -> Iterable[AssistantSpec]:
    return (AssistantSpec("echo", "Repeats what it hears.", build),)


if __name__ == "__main__":
    from moorage.testing import host_with

    (one,) = host_with(sys.modules[__name__]).assistants()
    print(f"{one.spec.name}: {one.spec.description}")
