"""The launch policy against the real npx and uvx: ``uv run python -m benchmarks.launchers`` (LAUNCH-7).

Judges every vector of the corpus and then runs it, offline, against a package of ours; the canary in each
leaves a mark if it is ever executed. Prints the counts of both kinds of disagreement, and every vector whose
needless refusal nobody can explain. The status is 1 where an allowed vector executed its canary.
"""

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "lib"))

from support.launchers import Outcome, explanation, launchers, npx_corpus, uvx_corpus

from moorage_plugins.launch_policy.data import grammars


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, help="run so many vectors of each launcher only")
    parser.add_argument("--extra", type=int, default=1_000, help="random vectors for npx")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    for grammar in grammars():
        print(f"{grammar.command}: grammar of {grammar.source_version}")
    dangerous = 0
    for command, corpus in (("npx", npx_corpus(options.seed, options.extra)), ("uvx", uvx_corpus())):
        if options.sample:
            corpus = random.Random(options.seed).sample(corpus, min(options.sample, len(corpus)))
        began = time.perf_counter()
        with TemporaryDirectory() as folder, launchers(Path(folder)) as real:
            outcomes = real.all(corpus)
        dangerous += _print(command, outcomes, time.perf_counter() - began)
    return 1 if dangerous else 0


def _print(command: str, outcomes: list[Outcome], seconds: float) -> int:
    verdicts = Counter((one.verdict, one.executed) for one in outcomes)
    print(f"\n{command}: {len(outcomes)} vectors in {seconds:.0f} s")
    for verdict, about in (
        ("allowed", "allowed"),
        ("exec", "refused for an exec flag"),
        ("disk", "refused for what lies on the disk"),
    ):
        ran, did_not = verdicts[verdict, True], verdicts[verdict, False]  # type: ignore[index]
        print(f"  {about:36} {ran + did_not:6}   canary executed {ran:6}   not {did_not:6}")
    reached = sum(one.reached and one.verdict == "allowed" for one in outcomes)
    print(f"  server reached by an allowed vector  {reached:6}")
    bad = [one for one in outcomes if one.dangerous]
    print(f"  DANGEROUS disagreements              {len(bad):6}")
    for one in bad:
        print(f"    {one.vector.args}")
    needless = [one for one in outcomes if one.needless]
    print(f"  needless refusals (harmless)         {len(needless):6}")
    for why, count in Counter(explanation(one) or "UNEXPLAINED" for one in needless).most_common():
        print(f"    {count:6}  {why}")
    for one in needless:
        if explanation(one) is None:
            print(f"      {one.vector.args}: {one.reason}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
