"""What a mutant is."""

from dataclasses import dataclass

from moorage.testing.checks import Finding, Suite, run_suite


@dataclass(frozen=True, slots=True)
class Mutant:
    """A suite around a broken object. ``caught_by`` is the check that names its fault."""

    kind: str
    fault: str
    suite: type[Suite]
    caught_by: str

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.fault}"


def judged(mutant: Mutant) -> Finding:
    """What the check that must catch it says."""
    (finding,) = run_suite(mutant.suite, only=[mutant.caught_by])
    return finding
