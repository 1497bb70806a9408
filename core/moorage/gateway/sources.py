"""All tool sources as one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from moorage.contract import CallContext, GatewayTool, ServerState, ToolSource
from moorage.gateway.building import Built

log = logging.getLogger(__name__)
T = TypeVar("T")


class ToolSources(ToolSource):
    """Asks every source at once; one that fails costs only its own tools (TOOL-2, PLUG-7)."""

    def __init__(self, sources: Sequence[Built[ToolSource]]) -> None:
        self._sources = sources

    async def tools(self, context: CallContext) -> Sequence[GatewayTool]:
        found = await self._ask(lambda source: source.tools(context), GatewayTool)
        return [tool for tools in found for tool in tools]

    async def servers(self, *, probe: bool = False) -> Sequence[ServerState]:
        found = await self._ask(lambda source: source.servers(probe=probe), ServerState)
        return [state for states in found for state in states]

    async def reset(self) -> None:
        await self._ask(lambda source: source.reset())

    async def close_thread(self, user_id: str, thread_id: str) -> None:
        await self._ask(lambda source: source.close_thread(user_id, thread_id))

    async def _ask(
        self, ask: Callable[[ToolSource], Awaitable[object]], kind: type[T] | None = None
    ) -> list[tuple[T, ...]]:
        asked = (self._one(source, ask, kind) for source in self._sources)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        good: list[tuple[T, ...]] = []
        for source, answer in zip(self._sources, answers, strict=True):
            if isinstance(answer, BaseException):
                text = f"tool source {source.name!r} failed: {type(answer).__name__}: {answer}"
                source.account.failed(text)
                log.warning("plugin %r: %s", source.plugin, text, exc_info=answer)
            else:
                good.append(answer)
        return good

    async def _one(
        self,
        source: Built[ToolSource],
        ask: Callable[[ToolSource], Awaitable[object]],
        kind: type[T] | None,
    ) -> tuple[T, ...]:
        try:
            with source.account.call():
                async with asyncio.timeout(source.timeout_seconds) as deadline:
                    answer = await ask(source.object)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise TimeoutError(f"no answer within {source.timeout_seconds:g} seconds") from error
        if kind is None:
            return ()
        if not isinstance(answer, Sequence) or not all(isinstance(one, kind) for one in answer):
            raise TypeError(f"answered with {type(answer).__name__} that is no sequence of {kind.__name__}")
        return tuple(answer)
