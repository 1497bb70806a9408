"""Held to what Moorage asks of credential interceptors."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.contract import InterceptorSpec, ToolCall
from moorage.testing import InterceptorConformance

from {{ cookiecutter.package }}.plugin import SECTION, moorage_credential_interceptors
from {{ cookiecutter.package }}.section import Section


class Test{{ cookiecutter.title }}Interceptor(InterceptorConformance):
    def spec(self) -> InterceptorSpec:
        (spec,) = moorage_credential_interceptors()
        return spec

    def sections(self) -> Mapping[str, Any]:
        users = ("alice", "bob", "carol", "dave")
        values: dict[str, str | None] = {user: f"secret-of-{user}" for user in users}
        return {SECTION: Section(header="X-Wiki-User", users=values)}

    def expects(self, user: str) -> Mapping[str, str]:
        return {"X-Wiki-User": f"secret-of-{user}"}

    def refused(self) -> Sequence[ToolCall]:
        return (self.call("nobody"), self.call(None))

    def hidden(self) -> Sequence[str]:
        return ("secret-of-alice",)
