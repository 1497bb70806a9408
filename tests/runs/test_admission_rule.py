"""What is refused, cleaned, clamped and hidden, without any store."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs import ALICE

from moorage.contract import AdmissionRejected
from moorage.runs.identity import claims_identity, clean_input
from moorage.runs.redaction import check_metadata, hide, hide_kwargs, hide_stream
from moorage.runs.request import run_request
from moorage.settings import LimitSettings

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("auth_token"), inner),
    max_leaves=10,
)


def built(body: dict[str, Any], **options: Any) -> Any:
    limits = LimitSettings(recursion_limit=50)
    return run_request(
        {"assistant_id": "a", **body}, thread_id="t", principal=ALICE, limits=limits, **options
    )


@pytest.mark.req("RUN-2")
@pytest.mark.parametrize("value", ["S3CRET-value", "", None, {"a": 1}, 0])
def test_the_key_is_refused_by_presence_and_the_message_shows_the_way(value: Any) -> None:
    with pytest.raises(AdmissionRejected, match=r"config\.context\.secrets") as refused:
        check_metadata({"auth_token": value})
    assert "S3CRET" not in str(refused.value)


@pytest.mark.req("RUN-2")
@pytest.mark.parametrize(
    "metadata",
    [{"Auth_Token": "x"}, {"nested": {"auth_token": "x"}}, {"token": "x", "api_key": "y"}, {}, None],
)
def test_no_heuristics(metadata: Any) -> None:
    check_metadata(metadata)


@pytest.mark.req("RUN-4")
@given(JSON)
def test_hiding_takes_the_top_level_key_only_and_never_touches_its_input(value: Any) -> None:
    before = copy.deepcopy(value)
    shown = hide(value)
    assert value == before
    if isinstance(value, dict):
        assert shown == {k: v for k, v in value.items() if k != "auth_token"}
    else:
        assert shown is value


@pytest.mark.req("RUN-4")
def test_stored_requests_and_streams_lose_the_key_where_a_run_put_it() -> None:
    kwargs = {"metadata": {"auth_token": "S", "k": 1}, "config": {"metadata": {"auth_token": "S"}, "x": 2}}
    before = copy.deepcopy(kwargs)
    assert hide_kwargs(kwargs) == {"metadata": {"k": 1}, "config": {"metadata": {}, "x": 2}}
    assert kwargs == before
    assert hide_stream("messages", [{"id": 1}, {"auth_token": "S"}]) == [{"id": 1}, {}]
    debug = {
        "type": "task",
        "payload": {"metadata": {"auth_token": "S"}, "config": {"metadata": {"auth_token": 1}}},
    }
    assert "auth_token" not in str(hide_stream("debug", debug))


@pytest.mark.req("RUN-1")
def test_secrets_are_taken_out_of_both_contexts_and_kept_nested() -> None:
    request = built(
        {
            "config": {"context": {"secrets": {"a": {"b": "inner"}}, "topic": "x"}},
            "context": {"secrets": {"c": "outer"}, "tone": "y"},
        }
    )
    assert request.secrets == {"a": {"b": "inner"}, "c": "outer"}
    assert request.context == {"topic": "x", "tone": "y"}
    assert "inner" not in repr(request) + str(request.config)
    assert "outer" not in repr(request) + str(request.config)


@pytest.mark.req("RUN-1")
@pytest.mark.parametrize(
    "body",
    [
        {"context": {"secrets": "hunter2-hunter2"}},
        {"context": {"secrets": ["hunter2-hunter2"]}},
        {"config": {"context": {"secrets": None}}},
        {"context": "hunter2-hunter2"},
    ],
)
def test_secrets_that_are_no_mapping_are_refused_without_quoting_them(body: dict[str, Any]) -> None:
    with pytest.raises(AdmissionRejected, match="must be an object") as refused:
        built(body)
    assert "hunter2" not in str(refused.value)


@pytest.mark.req("RUN-9")
@pytest.mark.parametrize(
    "key",
    [
        "user_id", "userId", "USER-ID", "user", "roles", "role", "owner", "principal", "permissions",
        "langgraph_auth_user", "langgraph_auth_user_id", "__pregel_runtime", "__anything", "moorage",
        "moorage_internal", "internal", "is_admin", "isInternal",
    ],
)  # fmt: skip
def test_claims_are_dropped_from_context_configurable_and_config(key: str) -> None:
    request = built(
        {
            "context": {key: "alice", "kept": 1},
            "config": {
                key: "alice",
                "context": {key: "alice"},
                "configurable": {key: "alice", "kept": 2},
                "metadata": {key: "alice", "kept": 3},
            },
        }
    )
    assert request.context == {"kept": 1}
    assert request.config == {
        "configurable": {"kept": 2},
        "metadata": {"kept": 3},
        "recursion_limit": 25,
    }
    assert request.principal is ALICE


@pytest.mark.req("RUN-9")
def test_ordinary_names_are_no_claims() -> None:
    for key in ("topic", "username_hint", "model", "temperature", "users_manual", "ownership"):
        assert not claims_identity(key)


@pytest.mark.req("RUN-9")
def test_messages_lose_marks_and_ids_that_are_the_gateways_own() -> None:
    message = {
        "role": "user",
        "content": "hi",
        "id": "moorage-task-1",
        "moorage_internal": True,
        "additional_kwargs": {"moorage_internal": True, "__x": 1, "kept": 2},
    }
    plain = {"role": "user", "content": "hi", "id": "mine"}
    cleaned = clean_input({"messages": [message, plain], "__internal": 1})
    assert cleaned == {
        "messages": [{"role": "user", "content": "hi", "additional_kwargs": {"kept": 2}}, plain]
    }
    assert message["id"] == "moorage-task-1"
    assert clean_input({"messages": message})["messages"]["additional_kwargs"] == {"kept": 2}


@pytest.mark.req("RUN-10")
@pytest.mark.parametrize(("asked", "got"), [(None, 25), (10, 10), (50, 50), (10_000, 50)])
def test_limits_are_clamped(asked: int | None, got: int) -> None:
    assert built({"config": {"recursion_limit": asked}}).config["recursion_limit"] == got


@pytest.mark.req("RUN-10")
@pytest.mark.parametrize("asked", [0, -1, True, 2.5, "9"])
def test_limits_that_make_no_sense_are_refused(asked: Any) -> None:
    with pytest.raises(AdmissionRejected, match="recursion_limit"):
        built({"config": {"recursion_limit": asked}})


@pytest.mark.req("RUN-2")
def test_the_legacy_key_goes_from_the_config_silently() -> None:
    config = {"metadata": {"auth_token": "S", "a": 1}, "configurable": {"auth_token": "S", "b": 2}}
    request = built({"config": {**config, "context": {"auth_token": "S"}}})
    assert "auth_token" not in str(request.config) + str(request.context)
    assert request.config["metadata"] == {"a": 1}


@pytest.mark.req("RUN-5")
@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"config": []}, "config"),
        ({"config": {"configurable": 3}}, "config.configurable"),
        ({"config": {"tags": "x"}}, "config.tags"),
        ({"assistant_id": " "}, "assistant_id"),
        ({"multitask_strategy": "sometimes"}, "multitask_strategy"),
        ({"stream_mode": ["values", "smoke"]}, "stream_mode"),
        ({"after_seconds": -1}, "after_seconds"),
        ({"after_seconds": float("inf")}, "after_seconds"),
        ({"after_seconds": 1e9}, "after_seconds"),
        ({"webhook": "file:///etc/passwd"}, "webhook"),
        ({"webhook": "https://user:pw@example.org/"}, "webhook"),
        ({"checkpoint_id": 5}, "checkpoint_id"),
        ({"command": {"resume": 1}, "input": {}}, "command"),
        ({"command": 1}, "command"),
        ({"interrupt_before": [1]}, "interrupt_before"),
    ],
)
def test_a_wrong_shape_is_refused_by_name(body: dict[str, Any], names: str) -> None:
    if body == {"config": []}:
        body = {"config": [1]}
    with pytest.raises(AdmissionRejected, match=names.replace(".", r"\.")):
        built(body)
