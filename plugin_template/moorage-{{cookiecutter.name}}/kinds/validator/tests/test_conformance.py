"""Held to what Moorage asks of launch validators."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.contract import LaunchRequest, LaunchValidatorSpec
from moorage.testing import LaunchValidatorConformance

from {{ cookiecutter.package }}.plugin import NAME, moorage_launch_validators


class Test{{ cookiecutter.title }}Validator(LaunchValidatorConformance):
    def spec(self) -> LaunchValidatorSpec:
        (spec,) = moorage_launch_validators()
        return spec

    def settings(self) -> Mapping[str, Any]:
        return {"plugins": {NAME: {"hosts": ["wiki.example"]}}}

    def allowed(self) -> Sequence[LaunchRequest]:
        return (
            LaunchRequest("wiki", "http", url="https://wiki.example/mcp"),
            LaunchRequest("files", "stdio", command="npx", args=("-y", "server-files")),
        )

    def refused(self) -> Sequence[LaunchRequest]:
        return (
            LaunchRequest("other", "http", url="https://elsewhere.example/mcp"),
            LaunchRequest("odd", "sse", url="https://[broken"),
        )
