"""Route handlers, one module per domain."""

from litestar.types import ControllerRouterHandler

from moorage_api.routes import absent, assistants, configuration, operations, runs, stateless, tasks, threads
from moorage_api.routes.files import get_thread_file
from moorage_api.routes.health import healthz, healthz_head, readyz, readyz_head
from moorage_api.routes.metrics import metrics
from moorage_api.routes.thread_events import stream_thread_events


def all_routes() -> list[ControllerRouterHandler]:
    """Every route of the application but ``/schema``."""
    return [
        healthz,
        readyz,
        healthz_head,
        readyz_head,
        metrics,
        assistants.router,
        threads.router,
        stream_thread_events,
        get_thread_file,
        runs.router,
        stateless.router,
        tasks.router,
        operations.router,
        configuration.router,
        *absent.absent_routes(),
    ]
