"""A section ``signing`` of a server's config, with a secret that a GET masks and a PUT keeps."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moorage.contract import ConfigSection, hookimpl

if TYPE_CHECKING:
    from pydantic import BaseModel


def load_model() -> "type[BaseModel]":
    from pydantic import BaseModel, ConfigDict

    class Signing(BaseModel):
        model_config = ConfigDict(extra="allow")

        key: str
        label: str = ""

    return Signing


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    return (ConfigSection("signing", load_model, secret_paths=("key",), presentation_paths=("label",)),)


if __name__ == "__main__":
    from moorage.config import SectionSet, masked
    from moorage.testing import host_with

    sections = SectionSet([one.spec for one in host_with(sys.modules[__name__]).sections()])
    server = {"url": "https://wiki.example/mcp", "signing": {"key": "a-secret", "label": "main"}}
    print(masked({"mcpServers": {"wiki": server}}, sections)["mcpServers"]["wiki"]["signing"])
