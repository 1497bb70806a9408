"""What may be stored of a remote's word (BOUND; case C65)."""

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.contract import ProtocolViolation, TaskSnapshot, TaskStatus
from moorage.settings import TaskSettings
from moorage.tasks.bounds import attention_of, request_fingerprint, to_outcome
from moorage.tasks.text import bounded_error, describe

SETTINGS = TaskSettings(result_limit_bytes=1_024, preview_characters=50)


def done(**fields: Any) -> TaskSnapshot:
    return TaskSnapshot(status=TaskStatus.COMPLETED, **fields)


def asking(request: Any) -> TaskSnapshot:
    return TaskSnapshot(status=TaskStatus.INPUT_REQUIRED, input_required=request)


def wide(size_bytes: int) -> dict[str, str]:
    """An object of exactly that many bytes in UTF-8, most of them in non-ASCII characters."""
    frame = len('{"text":""}')
    return {"text": "é" * ((size_bytes - frame) // 2) + "x" * ((size_bytes - frame) % 2)}


@pytest.mark.req("BOUND-4")
def test_a_result_within_the_limit_is_kept_whole_and_in_its_own_order() -> None:
    outcome = to_outcome(done(result={"b": 1, "a": [None, True, 1.5]}), SETTINGS)

    assert outcome.result_json == '{"b":1,"a":[null,true,1.5]}'
    assert (outcome.result_preview, outcome.result_truncated) == (outcome.result_json, False)


@pytest.mark.req("BOUND-4")
@pytest.mark.parametrize(("size_bytes", "kept"), [(1_024, True), (1_025, False)])
def test_the_result_limit_counts_bytes_of_utf_8(size_bytes: int, kept: bool) -> None:
    outcome = to_outcome(done(result=wide(size_bytes), result_artifact={"uri": "file:///a"}), SETTINGS)

    assert (outcome.result_json is not None, outcome.result_truncated) == (kept, not kept)
    assert outcome.result_preview is not None
    assert len(outcome.result_preview) == 50
    assert outcome.result_preview.endswith("…")
    assert json.loads(outcome.result_artifact_json or "") == {"uri": "file:///a"}


@pytest.mark.req("BOUND-4")
def test_the_preview_of_a_text_is_the_text_itself() -> None:
    assert to_outcome(done(result="3 files\0"), SETTINGS).result_preview == "3 files\ufffd"


@pytest.mark.req("BOUND-2")
@pytest.mark.parametrize("field", ["result_artifact", "input_required"])
def test_payloads_of_64_kib_pass_whole_and_one_byte_more_fails(field: str) -> None:
    def snapshot(size_bytes: int) -> TaskSnapshot:
        value = wide(size_bytes)
        return asking(value) if field == "input_required" else done(result_artifact=value)

    outcome = to_outcome(snapshot(65_536), SETTINGS)
    stored = outcome.input_required_json or outcome.result_artifact_json
    assert json.loads(stored or "") == wide(65_536)
    with pytest.raises(ProtocolViolation, match=f"{field} is larger than 65536 bytes"):
        to_outcome(snapshot(65_537), SETTINGS)


@pytest.mark.req("BOUND-2", "BOUND-4")
@pytest.mark.parametrize(
    "value",
    [
        {"n": float("nan")},
        {"n": float("inf")},
        {"n": {1, 2}},
        {"n": b"bytes"},
        {"n": object()},
        {("a", "b"): 1},
    ],
)
def test_what_is_no_json_is_a_protocol_failure_wherever_it_stands(value: Any) -> None:
    for snapshot in (done(result=value), done(result_artifact=value), asking(value)):
        with pytest.raises(ProtocolViolation, match="is not valid JSON"):
            to_outcome(snapshot, SETTINGS)


@pytest.mark.req("BOUND-4")
def test_structures_without_an_end_are_a_protocol_failure() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    for value in (loop, deep):
        with pytest.raises(ProtocolViolation, match="is not valid JSON"):
            to_outcome(done(result=value), SETTINGS)


@pytest.mark.req("BOUND-2")
def test_an_artifact_must_be_an_object() -> None:
    with pytest.raises(ProtocolViolation, match="result_artifact must be an object"):
        to_outcome(done(result_artifact=["a"]), SETTINGS)


def test_mappings_of_any_kind_are_objects() -> None:
    outcome = to_outcome(done(result=MappingProxyType({"a": MappingProxyType({})})), SETTINGS)
    assert outcome.result_json == '{"a":{}}'


@pytest.mark.req("BOUND-1")
def test_an_error_of_any_size_and_kind_is_cut_to_4000_characters() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert len(bounded_error("x" * 5_000_000)) == 4_000
    assert len(bounded_error({"a": "x" * 5_000})) == 4_000
    assert bounded_error("a\0b\udc00") == "a\ufffdb\ufffd"
    assert "Unspeakable" in describe(Unspeakable())
    assert describe(KeyError("k")) == "KeyError: 'k'"


def test_a_failure_without_a_reason_still_says_something() -> None:
    outcome = to_outcome(TaskSnapshot(status=TaskStatus.FAILED), SETTINGS)
    assert outcome.error == "the server reported a failure without saying why"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.req("BOUND-2", "BOUND-4")
@given(value=json_values, request_value=st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_any_value_is_either_stored_faithfully_in_ascii_or_a_protocol_failure(
    value: Any, request_value: dict[str, Any]
) -> None:
    try:
        outcome = to_outcome(done(result=value), TaskSettings())
        asked = to_outcome(asking(request_value), TaskSettings())
    except ProtocolViolation:
        return
    if value is not None:
        assert outcome.result_json is not None
        assert outcome.result_json.isascii()
        assert json.loads(outcome.result_json) == value
        (outcome.result_preview or "").encode("utf-8")
        assert "\0" not in (outcome.result_preview or "")
    assert json.loads(asked.input_required_json or "") == request_value


@pytest.mark.req("NOTE-1")
def test_fingerprints_follow_the_content_and_not_the_order_of_keys() -> None:
    one = attention_of(to_outcome(asking({"a": 1, "b": 2}), SETTINGS))
    same = attention_of(to_outcome(asking({"b": 2, "a": 1}), SETTINGS))
    other = attention_of(to_outcome(asking({"a": 1, "b": 3}), SETTINGS))
    assert one == same
    assert one != other
    assert one[1] == request_fingerprint({"a": 1, "b": 2})
    assert attention_of(to_outcome(TaskSnapshot(status=TaskStatus.WORKING), SETTINGS)) == (None, None)
