"""What the conformance kit catches: ``uv run python -m benchmarks.conformance``.

Prints requirement × mutant: every deliberately broken plugin of the test suite, the check that must catch
it, and the requirement that this check names; then how many mutants stand behind each requirement. The
status is 1 where one gets away, or where a correct plugin fails. ``--full`` also runs all other checks on
every mutant (several minutes) and says how many of them fail.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "lib"))

from support.mutants.catalogue import CORRECT, MUTANTS
from support.mutants.model import Mutant, judged

from moorage.testing import Finding, run_suite


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="run all checks on every mutant")
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    options = parser.parse_args()
    began = time.perf_counter()
    findings = [(mutant, judged(mutant)) for mutant in MUTANTS]
    others = {mutant.name: _failing(mutant) for mutant in MUTANTS} if options.full else {}
    broken = [f"{suite.__name__}: {f.check}" for suite in CORRECT for f in _failures(run_suite(suite))]
    seconds = time.perf_counter() - began
    if options.json:
        print(json.dumps(_document(findings, broken, seconds), indent=2))
    else:
        _print(findings, others, broken, seconds)
    return 1 if broken or any(finding.state != "failed" for _, finding in findings) else 0


def _failures(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.state == "failed"]


def _failing(mutant: Mutant) -> int:
    return len(_failures(run_suite(mutant.suite)))


def _document(findings: list[tuple[Mutant, Finding]], broken: list[str], seconds: float) -> object:
    return {
        "mutants": [
            {
                "mutant": mutant.name,
                "caught": finding.state == "failed",
                "check": finding.check,
                "requirements": list(finding.requirements),
            }
            for mutant, finding in findings
        ],
        "correct_plugins_that_fail": broken,
        "seconds": round(seconds, 1),
    }


def _print(
    findings: list[tuple[Mutant, Finding]], others: dict[str, int], broken: list[str], seconds: float
) -> None:
    behind: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    print(f"{'requirements':<18} {'mutant':<56} caught by")
    for mutant, finding in findings:
        names = ", ".join(finding.requirements)
        more = f" (and {others[mutant.name] - 1} more)" if mutant.name in others else ""
        caught = f"{finding.check}{more}" if finding.state == "failed" else "NOBODY"
        print(f"{names:<18} {mutant.name:<56} {caught}")
        for requirement in finding.requirements:
            behind[requirement][mutant.kind] += finding.state == "failed"
    kinds = ("driver", "interceptor", "validator", "sink")
    print(f"\n{'requirement':<18}" + "".join(f"{kind:>13}" for kind in kinds))
    for requirement in sorted(behind):
        print(f"{requirement:<18}" + "".join(f"{behind[requirement][kind] or '-':>13}" for kind in kinds))
    caught_in_all = sum(finding.state == "failed" for _, finding in findings)
    print(f"\n{caught_in_all} of {len(findings)} mutants caught; {len(CORRECT)} correct plugins, ", end="")
    print(f"{len(broken)} failures among them{': ' if broken else ''}{', '.join(broken)}; {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
