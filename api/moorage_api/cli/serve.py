"""``moorage serve``."""

import asyncio
import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from moorage.contract.errors import MoorageError
from moorage.gateway.process import Process
from moorage.settings import Settings
from moorage_api.app import create_app
from moorage_api.cli import opening
from moorage_api.log_redaction import redact_log
from moorage_api.server import STOP_TIMEOUT_SECONDS, GatewayServer, address, listen
from moorage_api.settings import ApiSettings, api_settings, check_exposure
from moorage_api.wiring import KEY, Runtime

log = logging.getLogger("moorage")

END_SECONDS = 10.0
"""Over and above the bounds of the single steps of a stop."""


def serve(
    host: Annotated[str | None, typer.Option(help="Where to listen; 127.0.0.1 by default.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="8930 by default; 0 takes a free one.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The extensions config, instead of searching for one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON once it listens.")] = False,
) -> None:
    """Run the gateway until it is told to stop (SIGINT, SIGTERM).

    A first start without any key prints a generated admin key, once. Exit status 0 after a graceful stop, 1
    where the start fails.
    """
    _log_to_stderr()
    try:
        settings = opening.settings(config)
        api = api_settings(settings)
        api = replace(api, host=host or api.host, port=api.port if port is None else port)
        check_exposure(api)
        process = Process()
        process.run(_serve(settings, api, process, as_json=as_json))
    except MoorageError as error:
        Console(stderr=True, highlight=False).print(f"Error: {error}", style="red", markup=False)
        raise typer.Exit(1) from None
    except asyncio.CancelledError:
        Console(stderr=True).print("Stopped before it was ready.", style="red")
        raise typer.Exit(1) from None


async def _serve(settings: Settings, api: ApiSettings, process: Process, *, as_json: bool) -> None:
    with listen(api.host, api.port) as sock:
        app = create_app(
            lambda: opening.gateway(settings),
            api,
            body_limit_bytes=settings.limits.request_body_bytes,
            make_admin_key=True,
        )
        runtime: Runtime = app.state[KEY]
        process.host = lambda: runtime.gateway.host if runtime.gateway is not None else None

        def ready() -> None:
            redact_log(runtime.gateway.context)
            _announce(address(sock), runtime.admin_key_made, as_json=as_json)

        # The grace for requests, the gateway's own end, and what is left then.
        bound = api.shutdown_grace_seconds + STOP_TIMEOUT_SECONDS + END_SECONDS
        server = GatewayServer(app, api, ready, stopping=lambda: process.ends_within(bound))
        await server.serve([sock])


def _announce(url: str, key: str | None, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"url": url, "pid": os.getpid(), "admin_key": key}), flush=True)
        return
    print(f"Moorage listens at {url}")
    if key is not None:
        print(f"Admin key, shown this once: {key}")
    print("Stop it with Ctrl+C.", flush=True)


def _log_to_stderr() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    for noisy in ("httpx", "httpcore", "mcp", "uvicorn.error", "alembic"):
        # They log every request with its URL, which may hold what is nobody's business.
        logging.getLogger(noisy).setLevel(logging.WARNING)
