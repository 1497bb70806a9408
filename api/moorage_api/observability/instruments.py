"""The gateway's own metrics, in a registry of their own, so that two gateways in a process stay apart."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from moorage.contract.gateway import GatewayContext

CALL_SECONDS = (0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Instruments:
    """A service of the gateway: `instruments_of` makes it on first use."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "moorage_server_calls",
            "Calls to MCP servers by phase (call, submit, status, cancel, respond) and outcome",
            ("server", "phase", "outcome"),
            registry=self.registry,
        )
        self.call_seconds = Histogram(
            "moorage_server_call_duration_seconds",
            "How long calls to MCP servers took",
            ("server", "phase"),
            registry=self.registry,
            buckets=CALL_SECONDS,
        )
        self.work = Counter(
            "moorage_task_work",
            "Polls and cancellations of durable tasks by driver, deliveries by sink, and outcome",
            ("kind", "name", "outcome"),
            registry=self.registry,
        )
        self.work_seconds = Histogram(
            "moorage_task_work_duration_seconds",
            "How long polls, cancellations and deliveries took",
            ("kind", "name"),
            registry=self.registry,
            buckets=CALL_SECONDS,
        )


def instruments_of(context: GatewayContext) -> Instruments:
    """This gateway's instruments."""
    if not context.has(Instruments):
        context.provide(Instruments, Instruments())
    return context.service(Instruments)
