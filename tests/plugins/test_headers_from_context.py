"""``headers_from_context``: a run's own secrets, to mapped servers only (CRED-5, C25, C26, C28)."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.calls import Server, server_config, tool_call
from support.credential_parts import gateway_context

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.contract import CallPhase, CredentialDenied, ToolCall
from moorage_plugins.headers_from_context import plugin
from moorage_plugins.headers_from_context.model import HeadersFromContext

pytestmark = pytest.mark.req("CRED-5")


@pytest.fixture
def chain(tmp_path: Path) -> InterceptorChain:
    (spec,) = plugin.moorage_credential_interceptors()
    built = BuiltInterceptor(spec, spec.build(gateway_context(tmp_path)), "headers_from_context")
    return InterceptorChain([built])


def call(secrets: dict[str, Any], *, phase: CallPhase = "call", **block: Any) -> ToolCall:
    section = HeadersFromContext.model_validate(
        {"headers": {"AUTHORIZATION": "tenant_token", "X-Tenant": "tenant"}, **block}
    )
    server = server_config({"headers_from_context": section})
    return tool_call(server, secrets=secrets, headers={"authorization": "Bearer static"}, phase=phase)


async def test_mapped_keys_become_headers_and_nothing_else_leaves(chain: InterceptorChain) -> None:
    server = Server()
    await chain.run(call({"tenant_token": "Bearer t", "tenant": "acme", "other_token": "o"}), server)
    assert server.headers == {"authorization": "Bearer t", "X-Tenant": "acme"}


async def test_a_server_that_maps_nothing_gets_nothing(chain: InterceptorChain) -> None:
    server = Server()
    await chain.run(tool_call(secrets={"tenant_token": "t", "other_token": "o"}), server)
    assert server.headers == {}


@pytest.mark.parametrize("value", [None, "", "absent"])
async def test_a_missing_key_denies_and_is_all_that_the_error_names(
    chain: InterceptorChain, value: str | None
) -> None:
    secrets = {"tenant_token": "Bearer present-value", "tenant": value}
    if value == "absent":
        del secrets["tenant"]
    server = Server()
    with pytest.raises(CredentialDenied, match="key 'tenant'") as caught:
        await chain.run(call(secrets), server)
    assert not server.calls
    assert "present-value" not in str(caught.value)
    await chain.run(call(secrets, on_missing="passthrough"), server)
    assert server.headers == {"authorization": "Bearer present-value"}


@pytest.mark.req("CRED-2")
@pytest.mark.parametrize("on_missing", ["deny", "passthrough"])
@pytest.mark.parametrize(
    "value",
    [17, True, 1.5, ["list-value"], {"nested": "nested-value"}, b"bytes-value", "qzx\n", "qzx ", " qzx",
     "qz\x00k", "qzö", "秘密", "\r\nX-Admin: 1"],
)  # fmt: skip
async def test_a_value_that_is_no_sendable_text_is_denied_and_not_quoted(
    chain: InterceptorChain, value: object, on_missing: str
) -> None:
    server = Server()
    with pytest.raises(CredentialDenied, match="key 'tenant_token'") as caught:
        await chain.run(call({"tenant_token": value, "tenant": "acme"}, on_missing=on_missing), server)
    assert not server.calls
    assert str(value).strip() not in str(caught.value)
    assert "-value" not in str(caught.value)


@pytest.mark.req("CRED-7")
async def test_submit_carries_them_and_background_calls_do_not(chain: InterceptorChain) -> None:
    server = Server()
    await chain.run(call({"tenant_token": "t", "tenant": "acme"}, phase="submit"), server)
    assert server.headers == {"authorization": "t", "X-Tenant": "acme"}
    phases: list[CallPhase] = ["status", "cancel", "respond", "discover"]
    for phase in phases:
        await chain.run(call({"tenant_token": "leaked", "tenant": "acme"}, phase=phase), server)
        assert server.headers == {"authorization": "Bearer static"}


@pytest.mark.req("CRED-2")
@pytest.mark.parametrize(
    "headers",
    [
        {"X-Token": "a", "x-token": "b"},
        {"Host": "a"},
        {"Mcp-Session-Id": "a"},
        {"X A": "a"},
        {"": "a"},
        {"X-A": ""},
        {"X-A": 3},
    ],
)
def test_a_mapping_that_cannot_work_is_refused_at_load(headers: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="headers"):
        HeadersFromContext.model_validate({"headers": headers})


@pytest.mark.req("CRED-7")
def test_the_start_warns_where_a_tasks_background_calls_lose_the_headers() -> None:
    (section,) = plugin.moorage_config_sections()
    assert section.check is not None
    denies = HeadersFromContext.model_validate({"headers": {"X-T": "t"}})
    passes = HeadersFromContext.model_validate({"headers": {"X-T": "t"}, "on_missing": "passthrough"})
    with_tasks = {"task_toolsets": [{"name": "jobs"}]}
    (warning,) = section.check("billing", denies, with_tasks)
    assert "'billing'" in warning
    assert "polled" in warning
    assert section.check("billing", passes, with_tasks) == ()
    assert section.check("billing", denies, {}) == ()


@pytest.mark.req("CRED-6")
def test_the_section_is_for_http_and_shown_unmasked() -> None:
    (section,) = plugin.moorage_config_sections()
    assert section.http_only
    assert section.secret_paths == ()
