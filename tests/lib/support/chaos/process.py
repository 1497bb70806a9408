"""``python -m support.chaos.process worker|submitter URL FOLDER NAME [COUNT]``: one process of the fight."""

import asyncio
import json
import os
import random
import sys
from pathlib import Path
from typing import Any, cast

from moorage.clock import SystemClock
from moorage.contract import CallContext, Principal, StoreUnavailable, TaskBinding, TaskRepository
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.notifier import Notifier
from moorage.tasks.scheduler import Scheduler
from moorage.tasks.service import TaskService
from moorage_drivers.sql.store import open_store
from support.chaos.world import SETTINGS, ChaosDriver, ChaosSink, Journal, JournalledTasks

MOST_SECONDS = 4.0
AT_ONCE = 8


async def work(url: str, folder: Path, name: str) -> None:
    """Poll and deliver until killed."""
    journal = Journal(folder / f"{name}.jsonl")
    clock, chance = SystemClock(), random.Random()
    broken = (folder / "broken-fence").exists()
    while True:
        try:
            async with open_store(url, clock, False) as store:
                tasks = JournalledTasks(store.tasks, journal, broken_fence=broken)
                driver = ChaosDriver(journal, tasks.leases, chance)
                shared: Any = {
                    "repository": cast("TaskRepository", tasks),
                    "settings": SETTINGS,
                    "clock": clock,
                    "owner": name,
                }
                effects = folder / "effects"
                effects.mkdir(exist_ok=True)
                sink = ChaosSink(journal, effects, chance)
                notifier = Notifier(sinks={"chaos": sink}, primary="chaos", **shared)
                drivers = {"chaos": NamedDriver("chaos", "chaos", driver)}
                scheduler = Scheduler(drivers=drivers, on_attention=notifier.wake, **shared)

                def wake(signal: Any = None, scheduler: Any = scheduler, notifier: Any = notifier) -> None:
                    scheduler.wake()
                    notifier.wake()

                async with store.watch(wake):
                    await asyncio.gather(scheduler.run(), notifier.run())
        except (StoreUnavailable, OSError):
            await asyncio.sleep(0.2)


async def submit(url: str, folder: Path, name: str, count: int) -> None:
    """Submit until ``count`` were tried, those of former lives included."""
    path = folder / f"{name}.jsonl"
    tried = sum('"kind": "try"' in line for line in path.read_text().splitlines()) if path.exists() else 0
    journal, chance, clock = Journal(path), random.Random(), SystemClock()
    async with open_store(url, clock, False) as store:
        driver = ChaosDriver(journal, {}, chance)
        service = TaskService(
            repository=store.tasks,
            drivers={"chaos": NamedDriver("chaos", "chaos", driver)},
            settings=SETTINGS,
            clock=clock,
            owner=name,
            wake=lambda: None,
        )
        room = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with room:
                journal.write("try", number=number)
                context = CallContext(Principal("alice"), thread_id=f"t{number % 50}", assistant_id="direct")
                try:
                    done = await service.submit(
                        server="far",
                        binding=TaskBinding("chaos", "job"),
                        arguments={"seconds": chance.random() * MOST_SECONDS},
                        context=context,
                    )
                except Exception as error:
                    journal.write("refused", why=type(error).__name__)
                else:
                    journal.write("returned", task=done.task_id)

        await asyncio.gather(*(one(number) for number in range(tried, count)))
        await service.aclose()


def lines(folder: Path) -> list[dict[str, Any]]:
    """All journals; a line that was cut by SIGKILL is left out."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


if __name__ == "__main__":
    os.environ["PYTHONASYNCIODEBUG"] = "0"
    kind, url, folder, name, *rest = sys.argv[1:]
    if kind == "worker":
        asyncio.run(work(url, Path(folder), name))
    else:
        asyncio.run(submit(url, Path(folder), name, int(rest[0])))
