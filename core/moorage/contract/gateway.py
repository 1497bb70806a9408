"""What a plugin's builders get to know of the gateway they are built in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from moorage.contract.clock import Clock
from moorage.contract.empty import empty
from moorage.contract.errors import StoreUnavailable
from moorage.contract.servers import ExtensionsSource
from moorage.contract.stores import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """Handed to every ``build``. Built once at start (CONF-6).

    ``settings``: the settings tables that plugins may read (``tasks``, ``assistants``, ``limits``, and
    ``plugins.<name>`` for a plugin's own).
    """

    home: Path
    replica_id: str
    database_url: str = field(repr=False)
    clock: Clock
    extensions: ExtensionsSource
    settings: Mapping[str, Any] = field(default_factory=empty, repr=False)
    store: Store | None = None
    _services: dict[type[Any], object] = field(default_factory=dict, repr=False)

    def provide(self, protocol: type[T], service: T) -> None:
        """Offer a service (`ToolCaller`, `TaskSubmitter`, …) to what is built or called later.

        Raises `RuntimeError` where one is offered already.
        """
        if protocol in self._services:
            raise RuntimeError(f"{protocol.__name__} is already provided")
        self._services[protocol] = service

    def service(self, protocol: type[T]) -> T:
        """The service offered under this protocol; look it up when it is needed, not in ``build``.

        Raises `LookupError` where none is.
        """
        try:
            return cast("T", self._services[protocol])
        except KeyError:
            raise LookupError(f"this gateway has no {protocol.__name__}") from None

    def has(self, protocol: type[Any]) -> bool:
        return protocol in self._services

    def durable_store(self) -> Store:
        """The SQL store; raises `StoreUnavailable` (TASK-14)."""
        if self.store is None or not self.store.durable:
            raise StoreUnavailable(
                "durable tasks need a SQL store: set MOORAGE_DATABASE_URL to SQLite or PostgreSQL"
            )
        return self.store
