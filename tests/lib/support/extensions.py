"""Sections like those of the built-in plugins, and extensions configs in a folder."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from moorage.config import ExtensionsFile, SectionSet
from moorage.contract import ConfigFault, ConfigSection


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class OAuthBlock(Open):
    grant_type: Literal["client_credentials", "refresh_token"] = "client_credentials"
    token_url: str
    client_id: str = ""
    client_secret: str | None = None
    refresh_token: str | None = None
    extra_token_params: dict[str, str] = {}


class UserAuthBlock(Open):
    header: str = "Authorization"
    users: dict[str, str | None] = {}
    on_missing: Literal["deny", "passthrough"] = "deny"


class ContextHeadersBlock(Open):
    headers: dict[str, str] = {}
    on_missing: Literal["deny", "passthrough"] = "deny"


class RoutingBlock(Open):
    mode: Literal["off", "prefer"] = "off"
    priority: int = 0
    keywords: list[str] = []


class ToolsetBlock(Open):
    name: str
    submit_tool: str
    status_tool: str
    label: str = ""


SECTIONS = (
    ConfigSection(
        "oauth",
        lambda: OAuthBlock,
        secret_paths=("client_secret", "refresh_token", "extra_token_params.*"),
        secrets_as_null=True,
        destination_paths=("token_url",),
        http_only=True,
    ),
    ConfigSection("user_auth", lambda: UserAuthBlock, secret_paths=("users.*",), http_only=True),
    ConfigSection("headers_from_context", lambda: ContextHeadersBlock, http_only=True),
    ConfigSection(
        "routing", lambda: RoutingBlock, levels=frozenset({"server", "tool"}), presentation_paths=("*",)
    ),
    ConfigSection("task_toolsets", lambda: ToolsetBlock, accepts_list=True, presentation_paths=("label",)),
)
SECTION_SET = SectionSet(SECTIONS)


class Extensions:
    """An extensions config in a folder of its own, as a gateway sees it."""

    def __init__(self, folder: Path, env: dict[str, str] | None = None, **options: Any) -> None:
        self.path = folder / "extensions_config.json"
        self.env = env if env is not None else {}
        self.warnings: list[ConfigFault] = []
        options.setdefault("sections", SECTIONS)
        options.setdefault("explicit", None)
        self.file = ExtensionsFile(env=self.env, cwd=folder, on_warning=self.warnings.append, **options)

    def write(self, servers: Any, **top: Any) -> None:
        self.path.write_text(json.dumps({"mcpServers": servers, **top}, indent=2))

    def raw(self) -> Any:
        return json.loads(self.path.read_bytes())

    def messages(self) -> str:
        """All faults so far in one text."""
        return "\n".join(f"{fault.where}: {fault.message}" for fault in self.warnings)
