"""Metrics and spans say what happens and carry nobody's data (API-4)."""

import io
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.api_fakes import FakeGateway
from support.fake_driver import FakeDriver, cancelled, working
from support.http import serving

from moorage.clock import SystemClock
from moorage.contract import (
    AttentionKind,
    CallContext,
    CredentialDenied,
    DeliveryOutcome,
    DeliveryState,
    ExtensionsSource,
    GatewayContext,
    Headers,
    Notification,
    Principal,
    Redactor,
    ServerConfig,
    TaskBinding,
    TaskRef,
    TaskStatus,
    ToolCall,
    ToolResult,
    TransientDriverError,
)
from moorage.settings import TaskSettings
from moorage.tasks.asking import Asker
from moorage.tasks.delivery import Courier
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.observing import observed_by
from moorage_api.app import create_app
from moorage_api.log_redaction import redact_log
from moorage_api.observability.calls import CallObserver, build
from moorage_api.observability.work import watching_work

pytestmark = pytest.mark.req("API-4", "CRED-9")

SECRET = "s3cr3t-value-of-alice"


@pytest.fixture
def context() -> GatewayContext:
    return GatewayContext(
        home=Path("unused"),
        replica_id="r",
        database_url="memory:",
        clock=SystemClock(),
        extensions=cast("ExtensionsSource", SimpleNamespace()),
    )


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for module in ("calls", "work"):
        monkeypatch.setattr(f"moorage_api.observability.{module}.get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def call(**changes: Any) -> ToolCall:
    fields: Mapping[str, Any] = {
        "server": ServerConfig("jobs", "http"),
        "tool": "look",
        "arguments": {"text": SECRET},
        "headers": Headers({"Authorization": SECRET}),
        "phase": "status",
        "principal": Principal("alice"),
        "secrets": {"a": SECRET},
        "thread_id": "t1",
        **changes,
    }
    return ToolCall(**fields)


async def test_calls_are_counted_and_traced_by_server_phase_and_outcome(
    context: GatewayContext, spans: InMemorySpanExporter
) -> None:
    observer: CallObserver = build(context)

    async def good(_: ToolCall) -> ToolResult:
        return ToolResult(structured={"a": SECRET})

    async def refused(_: ToolCall) -> ToolResult:
        raise CredentialDenied(f"not with {SECRET}")

    await observer(call(), good)
    await observer(call(phase="submit"), good)
    with pytest.raises(CredentialDenied):
        await observer(call(), refused)

    gateway = FakeGateway()
    gateway.context = context
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        key = {"X-Api-Key": await gateway.store.keys.issue("prometheus", "metrics")}
        answer = await http.get("/metrics", headers=key)
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.text
    assert 'moorage_server_calls_total{outcome="ok",phase="status",server="jobs"} 1.0' in text
    assert 'moorage_server_calls_total{outcome="ok",phase="submit",server="jobs"} 1.0' in text
    assert 'moorage_server_calls_total{outcome="CredentialDenied",phase="status",server="jobs"} 1.0' in text
    assert 'moorage_server_call_duration_seconds_count{phase="status",server="jobs"} 2.0' in text
    finished = spans.get_finished_spans()
    assert [span.name for span in finished] == ["mcp status", "mcp submit", "mcp status"]
    assert [span.status.is_ok for span in finished] == [True, True, False]
    seen = text + "".join(span.to_json() for span in finished)
    assert SECRET not in seen
    assert "alice" not in seen


class RefusingSink:
    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        return DeliveryOutcome(DeliveryState.FAILED, SECRET)


EVENT = Notification(
    delivery_id="task-1:1:0",
    task_id="task-1",
    task_name="look",
    version=1,
    attempt=0,
    kind=AttentionKind.TERMINAL,
    status=TaskStatus.COMPLETED,
    user_id="alice",
    thread_id="t",
    assistant_id=None,
    server_name="jobs",
    result=SECRET,
)


async def test_polls_cancellations_and_deliveries_of_any_driver_and_sink_are_traced(
    context: GatewayContext, spans: InMemorySpanExporter
) -> None:
    """Whatever the driver speaks; the words of a server and of an error stay out."""
    observe = observed_by(context)
    asker = Asker(TaskSettings(), str, observe)
    driver = FakeDriver()
    driver.on_poll["*"] = [working(), working(), TransientDriverError(f"refused {SECRET}")]
    driver.on_cancel["*"] = [cancelled()]
    named = NamedDriver("far", "far-plugin", driver)
    ref = TaskRef("task-1", "jobs", TaskBinding("far", "look"), "remote-1", CallContext(Principal("alice")))
    courier = Courier("hook", RefusingSink(), str, observe)
    assert (await asker.status(named, ref)).error is None, "nobody watches yet"
    async with watching_work(context):
        assert (await asker.status(named, ref)).error is None
        assert (await asker.status(named, ref)).error is not None
        await asker.cancel(named, ref)
        await courier.deliver(EVENT)
    finished = spans.get_finished_spans()
    assert [(span.name, span.status.is_ok) for span in finished] == [
        ("task poll", True),
        ("task poll", False),
        ("task cancel", True),
        ("task deliver", False),
    ]
    gateway = FakeGateway()
    gateway.context = context
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        key = {"X-Api-Key": await gateway.store.keys.issue("prometheus", "metrics")}
        text = (await http.get("/metrics", headers=key)).text
    assert 'moorage_task_work_total{kind="poll",name="far",outcome="ok"} 1.0' in text
    assert 'moorage_task_work_total{kind="poll",name="far",outcome="error"} 1.0' in text
    assert 'moorage_task_work_total{kind="deliver",name="hook",outcome="failed"} 1.0' in text
    seen = text + "".join(span.to_json() for span in finished)
    assert SECRET not in seen
    assert "alice" not in seen


async def test_http_metrics_group_by_route_and_see_refusals() -> None:
    gateway = FakeGateway()
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        key = {"X-Api-Key": await gateway.store.keys.issue("root", "admin")}
        await http.get("/api/threads/a-thread-of-somebody", headers=key)
        await http.get("/api/threads/a-thread-of-somebody")
        text = (await http.get("/metrics", headers=key)).text
    path = 'path="/api/threads/{thread_id}"'
    lines = [
        line for line in text.splitlines() if line.startswith("moorage_http_requests_total") and path in line
    ]
    assert any('status_code="404"' in line for line in lines)
    assert any('status_code="401"' in line for line in lines)
    assert "a-thread-of-somebody" not in text


async def test_metrics_are_for_admins_and_the_metrics_role() -> None:
    gateway = FakeGateway()
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        for role, status in (("user", 403), ("metrics", 200), ("admin", 200)):
            key = {"X-Api-Key": await gateway.store.keys.issue(f"{role}-user", role)}
            assert (await http.get("/metrics", headers=key)).status_code == status


class Knowing:
    """A `Redactor` that knows one secret."""

    def register(self, value: str, *, lasting: bool = True) -> None:
        raise NotImplementedError

    def redact(self, text: str) -> str:
        return text.replace(SECRET, "***")


def test_the_log_is_redacted_tracebacks_included(
    context: GatewayContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    context.provide(Redactor, Knowing())
    redact_log(context)
    redact_log(context)
    try:
        raise ValueError(f"refused {SECRET}")
    except ValueError:
        logging.getLogger("moorage.test").exception("with %s", SECRET)
    assert SECRET not in stream.getvalue()
    assert "moorage.test with ***" in stream.getvalue()
    assert "ValueError: refused ***" in stream.getvalue()
