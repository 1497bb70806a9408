"""The task runtime under fire: ``uv run python -m benchmarks.chaos`` (TASK-19, issue of durability).

Workers and submitters are killed with SIGKILL at random and started again, the driver and the sink fail, hang
and lie, and PostgreSQL is restarted once. Prints what happened, and every promise that was not kept; the
status is 1 where there is one.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "lib"))

from support.chaos.fight import Plan, fight
from support.chaos.verdict import Verdict
from support.postgres import postgres_server

from moorage_drivers.sql.migrate import upgrade

FULL = Plan(
    tasks=20_000, workers=10, submitters=5, kills=120, seconds_between_kills=1.0, quiet_within_seconds=600
)
SMALL = Plan(tasks=2_000, workers=3, submitters=2, kills=20, quiet_within_seconds=300)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--database", choices=["postgresql", "sqlite"], action="append")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    broken = 0
    for database in options.database or ["postgresql", "sqlite"]:
        plan = FULL if database == "postgresql" else SMALL
        if options.tasks:
            plan = replace(plan, tasks=options.tasks)
        with tempfile.TemporaryDirectory(prefix="moorage-chaos-") as name:
            folder = Path(name)
            if database == "sqlite":
                url = f"sqlite:///{folder / 'chaos.db'}"
                upgrade(url)
                verdict = asyncio.run(fight(url, folder, plan, seed=options.seed))
            else:
                with postgres_server() as server:
                    plan = replace(plan, restart=server.restart)
                    verdict = asyncio.run(fight(server.create(), folder, plan, seed=options.seed))
        _print(database, plan, verdict)
        broken += len(verdict.broken)
    return 1 if broken else 0


def _print(database: str, plan: Plan, verdict: Verdict) -> None:
    print(f"{database}: {plan.tasks} submissions, {plan.workers} workers, {plan.submitters} submitters")
    restarts = "1 restart of the database, " if plan.restart else ""
    print(f"  {verdict.kills} kills, {restarts}{verdict.seconds:.0f} s")
    print(f"  rows {verdict.tasks}, jobs accepted by the remote {verdict.accepted}, polls {verdict.polls}")
    for end, count in verdict.ends.items():
        print(f"    {count:7}  {end}")
    print(f"  deliveries with effect {verdict.effects}, of which repetitions {verdict.repeated_effects}")
    print(f"  dead letters {verdict.dead_letters}")
    print(f"  promises broken {len(verdict.broken)}")
    for line in verdict.broken[:50]:
        print(f"    {line}")


if __name__ == "__main__":
    sys.exit(main())
