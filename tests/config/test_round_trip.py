"""GET then PUT of the same body changes nothing, whatever the file holds (ADMIN-2), and shows no secret."""

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.extensions import SECTION_SET

from moorage.config import masked, merge
from moorage.config.merging import same
from moorage.config.segments import argument_segments, text_segments

# The machine may be busy; how long an example takes says nothing here.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.sampled_from(
    [
        "command", "args", "env", "headers", "url", "type", "transport", "cwd", "enabled", "disabled",
        "tools",
        "oauth", "user_auth", "headers_from_context", "routing", "task_toolsets", "users", "client_secret",
        "refresh_token", "extra_token_params", "token_url", "api_key", "token", "password", "name", "id",
        "session_init_timeout", "tool_call_timeout", "description", "x", "unknown",
    ]
)  # fmt: skip
TEXTS = st.sampled_from(
    [
        "", "$T", "${T}", "${T:-default}", "Bearer ${T}", "Bearer abc", "$$x", "plain", "--token",
        "--api-key=v",
        "--token=${T}", "-H", "Authorization: Bearer x", "https://u:p@h/mcp?key=k&token=t", "https://u:${P}@h/",
        "https://h/?a=1", "KEY=v", "API_KEY=v", '{"apiKey": "v"}', "Password=a;User=b", "-y", "@scope/pkg",
        "sk-abcdefghijklmnop1234", "postgresql://u@h/db", "\ue000", "ä 工具",
    ]
) | st.text(alphabet="ab=:/@?&-$ {}T*#", max_size=12).filter(lambda text: "***" not in text)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=30,
)
FILES = st.fixed_dictionaries(
    {"mcpServers": st.dictionaries(st.sampled_from(["a", "b", "c.d"]), JSON, max_size=3)},
    optional={"mcpInterceptors": JSON, "custom": JSON},
)


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON value with the keys of every object in another order."""
    match value:
        case dict():
            keys = list(value)
            chance.shuffle(keys)
            return {key: shuffled(value[key], chance) for key in keys}
        case list():
            return [shuffled(item, chance) for item in value]
        case _:
            return value


@pytest.mark.req("ADMIN-2")
@UNHURRIED
@given(FILES, st.randoms(use_true_random=False))
def test_get_then_put_changes_nothing_in_any_order_of_keys(
    raw: dict[str, Any], chance: random.Random
) -> None:
    body = json.loads(json.dumps(shuffled(masked(raw, SECTION_SET), chance), allow_nan=False))
    assert same(merge(body, raw, SECTION_SET), raw)


def planted(text: str) -> Any:
    """A literal, beside a placeholder that may be shown."""
    return st.sampled_from([text, "$SHOWN", "${SHOWN}", f"${{SHOWN:-{text}}}", f"Bearer {text}"])


SERVERS = st.fixed_dictionaries(
    {},
    optional={
        "env": st.dictionaries(st.text(max_size=5), planted("PLANTED"), max_size=3),
        "headers": st.dictionaries(st.text(max_size=5), planted("PLANTED"), max_size=3),
        "url": st.sampled_from(
            ["https://PLANTED@h/", "https://u:PLANTED@h/?x=1", "https://h/?x=1&api_key=PLANTED#f", "$SHOWN"]
        ),
        "args": st.lists(
            st.sampled_from(["--token=PLANTED", "Authorization: PLANTED", "x", "API_KEY=PLANTED", "-v"])
        ),
        "oauth": st.dictionaries(
            st.sampled_from(["client_secret", "refresh_token", "api_key", "password"]), planted("PLANTED")
        ),
        "user_auth": st.fixed_dictionaries(
            {"users": st.dictionaries(st.text(max_size=5), planted("PLANTED"), max_size=3)}
        ),
        "extra": st.recursive(
            st.dictionaries(
                st.sampled_from(["apiKey", "db-password", "TOKEN"]), planted("PLANTED"), max_size=2
            ),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
            max_leaves=4,
        ),
    },
)


@pytest.mark.req("ADMIN-1", "CRED-9")
@UNHURRIED
@given(SERVERS)
def test_no_literal_secret_is_shown(server: dict[str, Any]) -> None:
    assert "PLANTED" not in json.dumps(masked({"mcpServers": {"s": server}}, SECTION_SET))


@pytest.mark.req("ADMIN-1")
@UNHURRIED
@given(st.lists(TEXTS | st.text(), max_size=6))
def test_segments_put_together_are_the_texts(items: list[str]) -> None:
    for item, segments in zip(items, argument_segments(items), strict=True):
        assert segments is not None
        assert "".join(segment.text for segment in segments) == item
        assert "".join(segment.text for segment in text_segments(item)) == item
        labels = [segment.label for segment in segments if segment.label]
        assert len(labels) == len(set(labels))
