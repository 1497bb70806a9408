"""The assistants that this gateway has (RUN-6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moorage.accounts import Account
from moorage.contract.errors import Conflict, NotFound
from moorage.contract.runs import Assistant


@dataclass(frozen=True, slots=True)
class NamedAssistant:
    """An assistant under its name, which is also its id. ``unavailable`` says why it cannot run here."""

    name: str
    description: str
    assistant: Assistant
    unavailable: str | None = None
    account: Account = field(default_factory=Account, compare=False)


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
