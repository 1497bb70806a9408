"""An assistant that counts words. It keeps its threads in memory: use LangGraph's checkpointers for more."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from moorage.contract import AssistantEvent, InvalidUpdate, RunContext, ThreadState


class {{ cookiecutter.title }}Assistant:
    """An assistant (`moorage.contract.Assistant`): a stream of events a run, and the thread's state."""

    def __init__(self) -> None:
        self._states: dict[str, list[ThreadState]] = {}

    async def stream(self, run: RunContext, input: Any) -> AsyncIterator[AssistantEvent]:
        given = list((input or {}).get("messages", []))
        messages = [*self._messages(run.thread_id), *given]
        yield AssistantEvent("values", {"messages": messages})
        text = str(given[-1].get("content", "")) if given else ""
        answer = {"type": "ai", "content": f"That was {len(text.split())} words."}
        yield AssistantEvent("updates", {"count": {"messages": [answer]}})
        state = self._keep(run.thread_id, [*messages, answer], {"run_id": run.run_id})
        yield AssistantEvent("values", dict(state.values))

    async def state(self, thread_id: str, *, checkpoint_id: str | None = None) -> ThreadState | None:
        states = self._states.get(thread_id, [])
        return next((one for one in states if checkpoint_id in (None, one.checkpoint_id)), None)

    async def history(
        self, thread_id: str, *, limit: int = 10, before: str | None = None
    ) -> AsyncIterator[ThreadState]:
        states = self._states.get(thread_id, [])
        known = [one.checkpoint_id for one in states]
        begin = known.index(before) + 1 if before in known else 0
        for state in states[begin : begin + limit]:
            yield state

    async def update_state(
        self, thread_id: str, values: Any, *, as_node: str | None = None, checkpoint_id: str | None = None
    ) -> ThreadState:
        if not isinstance(values, Mapping) or not isinstance(values.get("messages"), list):
            raise InvalidUpdate("an update is an object with a list of messages")
        return self._keep(thread_id, [*self._messages(thread_id), *values["messages"]], {})

    async def delete_thread(self, thread_id: str) -> None:
        self._states.pop(thread_id, None)

    def _messages(self, thread_id: str) -> list[Any]:
        states = self._states.get(thread_id)
        return list(states[0].values["messages"]) if states else []

    def _keep(self, thread_id: str, messages: list[Any], metadata: Mapping[str, Any]) -> ThreadState:
        states = self._states.setdefault(thread_id, [])
        state = ThreadState(
            values={"messages": messages},
            checkpoint_id=f"state-{len(states) + 1}",
            parent_checkpoint_id=states[0].checkpoint_id if states else None,
            metadata=metadata,
            created_at=datetime.now(UTC),
        )
        states.insert(0, state)
        return state
