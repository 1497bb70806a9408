"""What is written of a run: its event rows and its end."""

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from moorage.contract.runs import AssistantEvent, RunStatus
from moorage.contract.stores import RunRecord, Store
from moorage.runs.records import TASK_ATTEMPT_KEY, TASK_ID_KEY, TASK_VERSION_KEY

log = logging.getLogger(__name__)

PAYLOAD_LIMIT_BYTES = 65_536
PREVIEW_CHARACTERS = 2_000

Completed = Callable[[RunRecord], Awaitable[None]]
"""Told of every run that has ended, by the process that recorded the end."""


class Journal:
    """Writes events and ends of runs."""

    def __init__(self, store: Store, completed: Completed | None = None) -> None:
        self._store = store
        self._completed = [completed] if completed is not None else []

    def also_tell(self, completed: Completed) -> None:
        """Tell this one, too, of every end."""
        self._completed.append(completed)

    async def started(self, run: RunRecord) -> None:
        """The run begins; a notification run is an event of its task as well (NOTE-6)."""
        task_id = run.metadata.get(TASK_ID_KEY) if run.internal else None
        if isinstance(task_id, str):
            await self._append(
                run,
                "task_notification",
                {
                    "task_id": task_id,
                    "version": run.metadata.get(TASK_VERSION_KEY),
                    "attempt": run.metadata.get(TASK_ATTEMPT_KEY),
                },
                task_id=task_id,
            )
        await self._append(run, "run_start", {"assistant_id": run.assistant_id, "internal": run.internal})

    async def event(self, run: RunRecord, event: AssistantEvent) -> None:
        """One piece of the stream, where it belongs into the log."""
        if event.mode == "custom":
            await self._append(run, "custom", {}, payload=event.data)
        if event.mode != "updates" or not isinstance(event.data, Mapping):
            return
        for node, update in event.data.items():
            await self._append(run, "updates", {"node": node}, payload=update)
            for event_type, metadata in _tool_events(update):
                await self._append(run, event_type, metadata)

    async def conclude(
        self, run_id: str, *, expected: frozenset[RunStatus], to: RunStatus, error: str | None = None
    ) -> bool:
        """End the run, once: whoever's update lands writes the last event; False for all others."""
        if not await self._store.runs.transition(run_id, expected=expected, to=to, error=error):
            return False
        run = await self._store.runs.get(run_id)
        if run is None:
            return True
        await self._append(run, "run_end", {"status": to.value, "error": error})
        for completed in self._completed:
            try:
                await completed(run)
            except Exception:
                log.exception("telling of the end of run %s failed", run_id)
        return True

    async def _append(
        self,
        run: RunRecord,
        event_type: str,
        metadata: Mapping[str, Any],
        *,
        payload: Any = None,
        task_id: str | None = None,
    ) -> None:
        await self._store.events.append(
            run.thread_id,
            event_type=event_type,
            run_id=run.run_id,
            task_id=task_id,
            metadata=metadata,
            payload=_bounded(payload),
        )


def _tool_events(update: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Calls and results of tools in a node's update; names and ids only, no arguments."""
    messages = update.get("messages") if isinstance(update, Mapping) else None
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, Mapping):
            continue
        for call in message.get("tool_calls") or ():
            if isinstance(call, Mapping):
                yield "tool_call", {"tool": call.get("name"), "tool_call_id": call.get("id")}
        if message.get("type") == "tool":
            yield (
                "tool_result",
                {
                    "tool": message.get("name"),
                    "tool_call_id": message.get("tool_call_id"),
                    "status": message.get("status"),
                },
            )


def _bounded(payload: Any) -> Any:
    if payload is None:
        return None
    text = json.dumps(payload, default=str)
    if len(text) <= PAYLOAD_LIMIT_BYTES:
        return json.loads(text)
    return {"truncated": True, "size_bytes": len(text), "preview": text[:PREVIEW_CHARACTERS]}
