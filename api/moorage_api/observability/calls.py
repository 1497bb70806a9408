"""An interceptor around all others: one span and one measurement for every call to a server (API-4).

Polls, cancellations and answers of durable tasks are calls, too; their phase tells. Neither spans nor
metrics carry arguments, headers, results, users, or the text of an error (CRED-9).
"""

import time

from opentelemetry.trace import SpanKind, Status, StatusCode, get_tracer

from moorage.contract.credentials import Next, ToolCall
from moorage.contract.gateway import GatewayContext
from moorage.contract.tools import ToolResult
from moorage_api.observability.instruments import Instruments, instruments_of

PRECEDENCE = 10
"""Outermost: what other interceptors do belongs to the call."""


class CallObserver:
    """Observes and changes nothing."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._tracer = get_tracer("moorage")

    async def __call__(self, call: ToolCall, next: Next, /) -> ToolResult:  # noqa: A002
        attributes = {
            "moorage.server": call.server.name,
            "moorage.tool": call.tool,
            "moorage.phase": call.phase,
            "moorage.transport": call.transport,
            **({"moorage.thread_id": call.thread_id} if call.thread_id else {}),
            **({"moorage.run_id": call.run_id} if call.run_id else {}),
        }
        started = time.perf_counter()
        outcome = "cancelled"
        with self._tracer.start_as_current_span(
            f"mcp {call.phase}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await next(call)
                outcome = "error" if result.is_error else "ok"
                return result
            except Exception as error:
                outcome = type(error).__name__
                raise
            finally:
                if outcome != "ok":
                    span.set_status(Status(StatusCode.ERROR, outcome))
                labels = (call.server.name, call.phase)
                self._instruments.calls.labels(*labels, outcome).inc()
                self._instruments.call_seconds.labels(*labels).observe(time.perf_counter() - started)


def build(context: GatewayContext) -> CallObserver:
    return CallObserver(instruments_of(context))
