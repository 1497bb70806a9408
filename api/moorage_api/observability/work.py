"""A span and a measurement for every poll, cancellation and delivery (API-4).

Neither carries results, users, or the text of an error (CRED-9).
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from opentelemetry.trace import SpanKind, Status, StatusCode, get_tracer

from moorage.contract.gateway import GatewayContext
from moorage.contract.observing import WorkKind, WorkObserver
from moorage_api.observability.instruments import Instruments, instruments_of

NO_FAILURES = ("ok", "pending", "busy")
"""A sink that asks for patience has not failed (NOTE-3)."""


class WorkSpans:
    """A `WorkObserver`."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._tracer = get_tracer("moorage")

    @contextmanager
    def observe(
        self, kind: WorkKind, name: str, attributes: Mapping[str, str]
    ) -> Iterator[Callable[[str], None]]:
        outcomes = ["cancelled"]
        started = time.perf_counter()
        with self._tracer.start_as_current_span(
            f"task {kind}",
            kind=SpanKind.PRODUCER if kind == "deliver" else SpanKind.CLIENT,
            attributes={
                "moorage.sink" if kind == "deliver" else "moorage.driver": name,
                **{f"moorage.{key}": value for key, value in attributes.items()},
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield outcomes.append
            finally:
                if outcomes[-1] not in NO_FAILURES:
                    span.set_status(Status(StatusCode.ERROR, outcomes[-1]))
                self._instruments.work.labels(kind, name, outcomes[-1]).inc()
                self._instruments.work_seconds.labels(kind, name).observe(time.perf_counter() - started)


@asynccontextmanager
async def watching_work(context: GatewayContext) -> AsyncIterator[None]:
    """The life-cycle that provides it."""
    context.provide(WorkObserver, WorkSpans(instruments_of(context)))
    yield
