"""What the HTTP API contributes. Importing this imports neither Litestar nor anything else that is slow."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from moorage.contract import CliGroup, GatewayContext, Interceptor, InterceptorSpec, LifecycleSpec, hookimpl

if TYPE_CHECKING:
    import typer

MOORAGE_API = ">=0.1"


@hookimpl
def moorage_cli_groups() -> Iterable[CliGroup]:
    return (
        CliGroup("serve", "Run the gateway and its HTTP API.", _serve),
        CliGroup("keys", "Create, list and revoke API keys.", _keys),
        CliGroup("demo", "Show a long job outliving the gateway.", _demo),
    )


@hookimpl
def moorage_credential_interceptors() -> Iterable[InterceptorSpec]:
    return (InterceptorSpec("observability", 10, _observer),)


@hookimpl
def moorage_lifecycle() -> Iterable[LifecycleSpec]:
    return (LifecycleSpec("observability", 10, _watching_work),)


def _watching_work(context: GatewayContext) -> AbstractAsyncContextManager[None]:
    from moorage_api.observability.work import watching_work

    return watching_work(context)


def _observer(context: GatewayContext) -> Interceptor:
    from moorage_api.observability.calls import build

    return build(context)


def _serve() -> Any:
    from moorage_api.cli.serve import serve

    return _single(serve)


def _keys() -> Any:
    from moorage_api.cli.keys import app

    return app


def _demo() -> Any:
    from moorage_api.demo.command import demo

    return _single(demo)


def _single(command: Any) -> "typer.Typer":
    import typer

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    return app
