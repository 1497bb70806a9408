"""The assistants that this gateway has (RUN-6)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from moorage.accounts import Account
from moorage.contract.errors import Conflict, MoorageError, NotFound, PluginError, PluginTimeout
from moorage.contract.runs import Assistant, ThreadState
from moorage.process_exit import EXITS


@dataclass(frozen=True, slots=True)
class NamedAssistant:
    """An assistant under its name, which is also its id. ``unavailable`` says why it cannot run here."""

    name: str
    description: str
    assistant: Assistant
    unavailable: str | None = None
    account: Account = field(default_factory=Account, compare=False)
    timeout_seconds: float = 60.0
    """What each call about a thread's state may take."""

    async def state(self, thread_id: str, *, checkpoint_id: str | None = None) -> ThreadState | None:
        """See `Assistant`. Raises `PluginError` for what the assistant does wrong (PLUG-7)."""
        async with self._contained("state"):
            found = await self.assistant.state(thread_id, checkpoint_id=checkpoint_id)
            return None if found is None else _state(found)

    async def history(
        self, thread_id: str, *, limit: int = 10, before: str | None = None
    ) -> AsyncIterator[ThreadState]:
        """See `Assistant`. Raises `PluginError` for what the assistant does wrong (PLUG-7)."""
        async with self._contained("history"):
            states = _states(self.assistant.history(thread_id, limit=limit, before=before))
        try:
            while True:
                async with self._contained("history"):
                    state = await anext(states, None)
                    if state is None:
                        return
                    _state(state)
                yield state
        finally:
            if isinstance(states, AsyncGenerator):
                # Where it fails now, everything that was asked for has been given.
                with suppress(PluginError):
                    async with self._contained("history"):
                        await states.aclose()

    async def update_state(
        self, thread_id: str, values: Any, *, as_node: str | None = None, checkpoint_id: str | None = None
    ) -> ThreadState:
        """See `Assistant`. Raises `PluginError` for what the assistant does wrong (PLUG-7)."""
        async with self._contained("state"):
            return _state(
                await self.assistant.update_state(
                    thread_id, values, as_node=as_node, checkpoint_id=checkpoint_id
                )
            )

    async def delete_thread(self, thread_id: str) -> None:
        """See `Assistant`. Raises `PluginError` for what the assistant does wrong (PLUG-7)."""
        async with self._contained("state"):
            await self.assistant.delete_thread(thread_id)

    @asynccontextmanager
    async def _contained(self, what: str) -> AsyncIterator[None]:
        deadline = asyncio.timeout(self.timeout_seconds)
        try:
            with self.account.call():
                async with deadline:
                    yield
        except (MoorageError, *EXITS):
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            # Without the error's own text: a database's message may quote the thread.
            late = f"no answer within {self.timeout_seconds:g} seconds"
            told = late if deadline.expired() else type(error).__name__
            reason = f"assistant {self.name!r} failed with a thread's {what}: {told}"
            self.account.told(reason)
            kind = PluginTimeout if deadline.expired() else PluginError
            raise kind(reason, plugin=self.account.plugin) from error


def _states(answer: object) -> AsyncIterator[ThreadState]:
    if not isinstance(answer, AsyncIterator):
        raise TypeError(f"answered with {type(answer).__name__}, not an async iterator")
    return answer


def _state(answer: object) -> ThreadState:
    if not isinstance(answer, ThreadState):
        raise TypeError(f"answered with {type(answer).__name__}, not a ThreadState")
    return answer


class AssistantDirectory:
    """Finds assistants by name."""

    def __init__(self, assistants: Mapping[str, NamedAssistant]) -> None:
        self._assistants = dict(assistants)

    def all(self) -> Sequence[NamedAssistant]:
        """By name."""
        return [self._assistants[name] for name in sorted(self._assistants)]

    def get(self, name: str) -> NamedAssistant:
        """Raises `NotFound`."""
        try:
            return self._assistants[name]
        except KeyError:
            known = ", ".join(sorted(self._assistants)) or "none"
            raise NotFound(f"there is no such assistant; this gateway has: {known}") from None

    def usable(self, name: str) -> NamedAssistant:
        """Raises `NotFound`, and `Conflict` where the assistant cannot run here."""
        named = self.get(name)
        if named.unavailable is not None:
            raise Conflict(f"assistant {named.name!r} is not available: {named.unavailable}")
        return named

    def for_state(self, name: str | None) -> NamedAssistant | None:
        """Who reads a thread's state: the assistant that last answered there, else any that works."""
        if name is not None and name in self._assistants:
            return self._assistants[name]
        return next((named for named in self.all() if named.unavailable is None), None)
