"""A sample of the corpus against the real npx and uvx; all of it: ``python -m benchmarks.launchers``."""

import random
from collections.abc import Iterator

import pytest
from support.launchers import Launchers, Vector, explanation, launchers, npx_corpus, uvx_corpus

FIXED = [
    Vector("npx", ("-c", "touch canary-mark")),
    Vector("npx", ("-yc", "touch canary-mark")),
    Vector("npx", ("--user-agent", "good-srv-of-ours", "--call", "touch canary-mark")),
    Vector("npx", ("-y", "good-srv-of-ours", "-c", "touch canary-mark")),
    Vector("npx", ("--no-local-address", "-c", "touch canary-mark")),
    Vector("npx", ("-y",)),
    Vector("npx", ("-y", "node", "-e", "require('fs').writeFileSync('canary-mark','')")),
    Vector("npx", ("-y",), env=(("npm_config_call", "touch canary-mark"),)),
    Vector("uvx", ("python", "-c", "open('canary-mark','w')")),
    Vector("uvx", ("--from", "good-srv-of-ours", "sh", "-c", "touch canary-mark")),
    Vector("uvx", ("good-srv-of-ours",)),
]
"""The launcher's own word on the vectors that the policy is about."""
EXECUTED = [True, True, True, False, True, True, True, True, True, True, False]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launchers]:
    with launchers(tmp_path_factory.mktemp("launchers")) as made:
        yield made


@pytest.mark.req("LAUNCH-4", "LAUNCH-6", "LAUNCH-7", "LAUNCH-9")
def test_the_canary_would_be_seen(real: Launchers) -> None:
    outcomes = real.all(FIXED)
    assert [one.executed for one in outcomes] == EXECUTED
    assert [one.verdict == "allowed" for one in outcomes] == [not executed for executed in EXECUTED]
    assert [one.reached for one in outcomes if one.verdict == "allowed"] == [True, True]


@pytest.mark.req("LAUNCH-3", "LAUNCH-7")
@pytest.mark.parametrize(("command", "count"), [("npx", 40), ("uvx", 120)])
def test_what_is_allowed_never_executes_and_what_is_refused_would_have(
    real: Launchers, command: str, count: int
) -> None:
    corpus = npx_corpus() if command == "npx" else uvx_corpus()
    outcomes = real.all(random.Random(11).sample(corpus, count))
    assert [one.vector.args for one in outcomes if one.dangerous] == []
    assert [one.vector.args for one in outcomes if one.needless and explanation(one) is None] == []
    assert any(one.executed for one in outcomes)
    assert any(one.verdict == "allowed" for one in outcomes)
