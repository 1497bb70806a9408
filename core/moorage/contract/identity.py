"""Who calls, and on whose behalf (RUN-9, CRED-8)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.contract.empty import empty


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller. It comes from authentication alone, never from a body (RUN-9)."""

    user_id: str
    roles: frozenset[str] = frozenset({"user"})

    @property
    def is_admin(self) -> bool:
        return "admin" in self.roles


@dataclass(frozen=True, slots=True)
class CallContext:
    """On whose behalf, and in which thread and run, something happens.

    ``secrets`` live for the run only (RUN-1) and are absent where ``background`` is true (CRED-7).
    """

    principal: Principal
    thread_id: str | None = None
    run_id: str | None = None
    assistant_id: str | None = None
    secrets: Mapping[str, Any] = field(default_factory=empty, repr=False)
    background: bool = False
