"""The kit under test: every broken plugin is caught by the check that names its fault (DX-2)."""

import pytest
from support.mutants.catalogue import CORRECT, MUTANTS
from support.mutants.model import Mutant, judged

from moorage.testing import (
    DriverConformance,
    InterceptorConformance,
    LaunchValidatorConformance,
    SinkConformance,
    run_suite,
)
from moorage.testing.checks import Suite, check_names

SUITES = (DriverConformance, InterceptorConformance, LaunchValidatorConformance, SinkConformance)


@pytest.mark.req("DX-2")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_plugin_is_caught_by_the_check_that_names_its_fault(mutant: Mutant) -> None:
    finding = judged(mutant)
    assert finding.state == "failed"
    assert finding.message.startswith(", ".join(finding.requirements))
    assert "\n  but " in finding.message
    assert "the check ended with" not in finding.message, "the fault is named, not stumbled over"


@pytest.mark.req("DX-2")
@pytest.mark.parametrize("suite", CORRECT, ids=lambda suite: suite.__name__)
def test_a_correct_plugin_passes(suite: type[Suite]) -> None:
    assert [f"{f.check}: {f.message}" for f in run_suite(suite) if f.state == "failed"] == []


def test_every_check_catches_something() -> None:
    caught = {mutant.caught_by for mutant in MUTANTS}
    assert [name for suite in SUITES for name in check_names(suite) if name not in caught] == []


def test_the_set_is_large_enough() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40
