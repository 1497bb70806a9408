"""Where the task runtime tells what it does (API-4)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from moorage.contract.gateway import GatewayContext
from moorage.contract.observing import WorkKind, WorkObserver

Observe = Callable[[WorkKind, str, Mapping[str, str]], AbstractContextManager[Callable[[str], None]]]


@contextmanager
def unobserved(kind: WorkKind, name: str, attributes: Mapping[str, str]) -> Iterator[Callable[[str], None]]:
    yield lambda outcome: None


def observed_by(context: GatewayContext) -> Observe:
    """Tells the gateway's `WorkObserver`, which may be provided after the runtime was built."""

    def observe(
        kind: WorkKind, name: str, attributes: Mapping[str, str]
    ) -> AbstractContextManager[Callable[[str], None]]:
        if context.has(WorkObserver):
            return context.service(WorkObserver).observe(kind, name, attributes)
        return unobserved(kind, name, attributes)

    return observe
