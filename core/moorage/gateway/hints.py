"""Routing hints of all plugins as one provider (ROUTE-2)."""

import logging
from collections.abc import Sequence

from moorage.contract import RoutingHint, RoutingHintProvider, ServerConfig
from moorage.gateway.building import Built
from moorage.process_exit import EXITS

log = logging.getLogger(__name__)


class RoutingHints:
    """The highest precedence that has an opinion wins; a provider that fails has none (PLUG-7)."""

    def __init__(self, built: Sequence[Built[RoutingHintProvider]]) -> None:
        """``built`` by precedence, the lowest first."""
        self._built = tuple(reversed(built))

    def hint(self, server: ServerConfig, raw_name: str) -> RoutingHint | None:
        """See `RoutingHintProvider`."""
        for one in self._built:
            try:
                with one.account.call():
                    hint = one.object.hint(server, raw_name)
            except EXITS:
                raise
            except BaseException as error:
                self._amiss(one, f"failed: {type(error).__name__}")
                continue
            if isinstance(hint, RoutingHint):
                return hint
            if hint is not None:
                self._amiss(one, "answered with no hint")
        return None

    def _amiss(self, one: Built[RoutingHintProvider], what: str) -> None:
        text = f"routing hints {one.name!r} {what}"
        one.account.failed(text)
        log.warning("plugin %r: %s", one.plugin, text)
