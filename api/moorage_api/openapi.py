"""The OpenAPI document at ``/schema`` (API-1)."""

from importlib.metadata import version
from typing import Any

from litestar import Response, Router
from litestar.exceptions import NotFoundException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from moorage_api.auth.middleware import SCHEMA_PATH

DESCRIPTION = """\
Threads, runs and assistants follow the LangGraph Platform under `/api`, so that `langgraph_sdk` works \
unchanged with `get_client(url="http://…/api", api_key=…)`. Durable tasks are `mcp-tasks` of a thread. \
Errors are problem documents (RFC 9457)."""


def _no_page(response: Response[Any]) -> Response[Any]:
    """The document's router answers unknown addresses with a page of its own; here they are problems."""
    if response.status_code == 404:
        raise NotFoundException
    return response


def openapi_config() -> OpenAPIConfig:
    """JSON and YAML only: documentation pages would load scripts from elsewhere."""
    return OpenAPIConfig(
        title="Moorage",
        version=version("moorage-api"),
        description=DESCRIPTION,
        path=SCHEMA_PATH,
        openapi_router=Router(
            SCHEMA_PATH, route_handlers=[], after_request=_no_page, include_in_schema=False
        ),
        render_plugins=[JsonRenderPlugin(path=["", "/openapi.json"]), YamlRenderPlugin()],
        security=[{"bearer": []}, {"apiKey": []}],
        components=Components(
            security_schemes={
                "bearer": SecurityScheme(type="http", scheme="bearer"),
                "apiKey": SecurityScheme(type="apiKey", name="X-Api-Key", security_scheme_in="header"),
            }
        ),
    )
