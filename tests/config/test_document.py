"""The JSON scanner that knows places."""

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.config.document import DocumentError, dotted, parse_document

# The machine may be busy; how long an example takes says nothing here.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=25,
)


@pytest.mark.req("CONF-7")
@UNHURRIED
@given(JSON, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_reads_what_the_standard_library_reads(value: Any, indent: Any, ascii_only: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    assert parse_document(data).value == json.loads(data)


@pytest.mark.req("CONF-7")
@UNHURRIED
@given(JSON, st.integers(min_value=0, max_value=200))
def test_a_truncated_file_is_an_error_or_the_same_as_for_the_standard_library(value: Any, cut: int) -> None:
    data = json.dumps(value).encode()[:cut]
    try:
        expected = json.loads(data)
    except ValueError:
        with pytest.raises(DocumentError):
            parse_document(data)
    else:
        assert parse_document(data).value == expected


@pytest.mark.req("CONF-7")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
def test_a_byte_order_mark_is_no_fault(encoding: str) -> None:
    assert parse_document('{"ä": [1]}'.encode(encoding)).value == {"ä": [1]}


@pytest.mark.req("CONF-7")
@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ('{"a": 1,\n  "b" 2}', 2, 7, "colon"),
        ('{\n "a": [1 2]}', 2, 10, "comma"),
        ('{"a": 1', 1, 8, "ends too early"),
        ('{"a": tru}', 1, 7, "value"),
        ('{"a": 1,}', 1, 9, "key"),
        ("{} {}", 1, 4, "after the end"),
        (" \n ", 1, 1, "empty"),
        ("[" * 5000, 1, 202, "nested"),
        ('{"n": ' + "9" * 5000 + "}", 1, 7, "digits"),
        ('{"a": "x\ny"}', 1, 9, "control character"),
    ],
)
def test_errors_name_the_place(text: str, line: int, column: int, word: str) -> None:
    with pytest.raises(DocumentError, match=word) as caught:
        parse_document(text.encode())
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.req("CONF-7")
def test_bytes_that_are_no_text() -> None:
    with pytest.raises(DocumentError, match="utf-8") as caught:
        parse_document(b'{\n"a": "\xff"}')
    assert caught.value.line == 2


@pytest.mark.req("CONF-7")
def test_positions_and_duplicates() -> None:
    document = parse_document(b'{\n  "a": {"b": [10,\n     20]},\n  "a": {"c": 1}\n}')
    assert document.value == {"a": {"c": 1}}
    assert document.duplicates == (("a",),)
    assert document.position(("a",)) == (4, 3)
    assert document.position(("a", "b", 1)) == (3, 6)
    assert document.position(("a", "c", "unknown")) == (4, 9)
    assert document.where(("a", "c")) == "a.c (line 4, column 9)"


@pytest.mark.req("CONF-8")
def test_non_finite_numbers_are_read() -> None:
    value = parse_document(b"[NaN, Infinity, -Infinity, 1e999]").value
    assert math.isnan(value[0])
    assert value[1:] == [math.inf, -math.inf, math.inf]


def test_dotted_paths_quote_what_would_be_ambiguous() -> None:
    assert dotted(("mcpServers", "a.b", "args", 1)) == 'mcpServers."a.b".args[1]'
    assert dotted(("x", "", "two words", "new\nline")) == 'x.""."two words"."new\\nline"'
