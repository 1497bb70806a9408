"""Placeholders (CONF-3, C23)."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.extensions import Extensions

from moorage.config.placeholders import Resolution, is_placeholder, pieces, resolve

# The machine may be busy; how long an example takes says nothing here.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ENV = {"T": "to$K", "K": "kay", "EMPTY": "", "A_1": "one"}


def expand(text: str) -> str:
    result = resolve(text, ENV, (), Resolution())
    assert isinstance(result, str)
    return result


@pytest.mark.req("CONF-3")
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$T", "to$K"),
        ("${T}", "to$K"),
        ("a ${T} b ${K}", "a to$K b kay"),
        ("$$T", "$T"),
        ("$${T}", "${T}"),
        ("$$$T", "$$T"),
        ("Bearer $T", "Bearer $T"),
        ("cost $5", "cost $5"),
        ("$T ", "$T "),
        ("$1X", "$1X"),
        ("${UNSET:-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${UNSET:-}", ""),
        ("${UNSET:-a$$b}", "a$b"),
        ("${T:-d}", "to$K"),
        ("$UNSET", ""),
        ("x${UNSET}y", "xy"),
        ("${A_1}", "one"),
        ("${T", "${T"),
        ("${}", "${}"),
        ("$", "$"),
        ("", ""),
    ],
)
def test_each_form(text: str, result: str) -> None:
    assert expand(text) == result


@pytest.mark.req("CONF-3")
def test_every_depth_once_and_values_only() -> None:
    tree = {"$T": [{"a": "$T"}, 1, None, True], "b": {"c": {"d": "${K}"}}}
    assert resolve(tree, ENV, (), Resolution()) == {
        "$T": [{"a": "to$K"}, 1, None, True],
        "b": {"c": {"d": "kay"}},
    }


@pytest.mark.req("CONF-3")
@UNHURRIED
@given(st.text(alphabet="$T{}:-K a5\n_", max_size=20))
def test_pieces_put_together_are_the_text(text: str) -> None:
    assert "".join(piece.text for piece in pieces(text)) == text


@pytest.mark.req("CONF-3")
@UNHURRIED
@given(st.text(max_size=30))
def test_doubled_dollars_protect_any_text(text: str) -> None:
    assert expand(text.replace("$", "$$")) == text


@pytest.mark.req("ADMIN-1")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$T", True),
        ("${T}", True),
        ("Bearer ${T}", True),
        ("Bearer $T", False),
        ("sk ${T} x", False),
        ("${T}${K}", False),
        ("plain", False),
    ],
)
def test_what_counts_as_a_placeholder(text: str, expected: bool) -> None:
    assert is_placeholder(text) is expected


@pytest.mark.req("CONF-3")
def test_headers_of_case_c23(tmp_path: Path) -> None:
    config = Extensions(tmp_path, {"T": "to$K", "K": "no"})
    config.write(
        {
            "s": {
                "url": "http://h/mcp",
                "headers": {
                    "A": "Bearer $T",
                    "B": "$T",
                    "C": "${T}",
                    "D": "$$T",
                    "E": "cost $5",
                    "F": "$UNSET",
                    "G": "${UNSET:-d}",
                    "H": "Bearer ${UNSET}",
                },
            }
        }
    )
    headers = config.file.current().servers["s"].headers
    assert headers == {"A": "Bearer $T", "B": "to$K", "C": "to$K", "D": "$T", "E": "cost $5", "G": "d"}
    faults = {(f.where.split(" ")[0].rpartition(".")[2], f.fatal): f.message for f in config.warnings}
    assert "${T}" in faults["A", False]
    assert "not sent" in faults["F", False]
    assert any("UNSET" in f.message and ".headers.F " in f.where for f in config.warnings)
    assert ("E", False) not in faults


@pytest.mark.req("CONF-3", "CRED-9")
def test_a_password_with_a_dollar_sign_is_not_quoted(tmp_path: Path) -> None:
    config = Extensions(tmp_path)
    config.write({"s": {"command": "x", "env": {"P": "pass$wordpart"}, "cwd": "${env:HOME}"}})
    assert config.file.current().servers["s"].env == {"P": "pass$wordpart"}
    assert "wordpart" not in config.messages()
    assert "mcpServers.s.cwd" in config.messages()
