"""What the journals and the rows say together: the promises that were kept, and those that were not."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.contract import Store, TaskFilter, TaskRecord


@dataclass
class Verdict:
    """Counts of what happened; ``broken`` names every promise that was not kept."""

    tasks: int = 0
    polls: int = 0
    accepted: int = 0
    effects: int = 0
    repeated_effects: int = 0
    ends: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    kills: int = 0
    seconds: float = 0.0
    broken: list[str] = field(default_factory=list)


async def rows(store: Store) -> dict[str, TaskRecord]:
    """Every task of the table."""
    found: dict[str, TaskRecord] = {}
    cursor = None
    while True:
        page = await store.tasks.list(TaskFilter(limit=1_000, cursor=cursor))
        found |= {task.task_id: task for task in page.items}
        cursor = page.next_cursor
        if cursor is None:
            return found


def judge(lines: Sequence[Mapping[str, Any]], table: Mapping[str, TaskRecord]) -> Verdict:
    """Compare. The table is that of the end, when nothing is under way any more."""
    by_kind: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for line in lines:
        by_kind[line["kind"]].append(line)
    verdict = Verdict(
        tasks=len(table),
        polls=len(by_kind["poll"]),
        accepted=len(by_kind["accepted"]),
        effects=len(by_kind["effect"]),
    )
    verdict.broken += _pending(table)
    verdict.broken += _lost(by_kind, table)
    verdict.broken += _polled_twice(by_kind)
    verdict.broken += _changed(by_kind["end"], table)
    verdict.broken += _undelivered(by_kind["effect"], table, verdict)
    ends: dict[str, int] = defaultdict(int)
    for task in table.values():
        ends[f"{task.status.value}{f' ({task.error_code})' if task.error_code else ''}"] += 1
    verdict.ends = dict(sorted(ends.items()))
    return verdict


def _pending(table: Mapping[str, TaskRecord]) -> list[str]:
    active = (task for task in table.values() if not task.status.terminal)
    return [f"task {task.task_id} is still {task.status}" for task in active]


def _lost(by_kind: Mapping[str, Sequence[Any]], table: Mapping[str, TaskRecord]) -> list[str]:
    """What the remote took has a row; what a submitter was told of is tracked to its true end."""
    broken = [
        f"job {line['remote']} has no row ({line['task']})"
        for line in by_kind["accepted"]
        if line["task"] not in table
    ]
    remote = {line["task"]: line["remote"] for line in by_kind["accepted"]}
    for line in by_kind["returned"]:
        row = table.get(line["task"])
        if row is None or row.remote_id != remote[line["task"]]:
            broken.append(f"task {line['task']} was promised and is not tracked")
        elif row.error_code == "submission_unknown":
            broken.append(f"task {line['task']} was promised and its submission is unknown")
    return broken


def _polled_twice(by_kind: Mapping[str, Sequence[Any]]) -> list[str]:
    """A lease is surely live from its claim to the moment that its holder begins to give it back, or to its
    time; nobody else's poll may begin in that span."""
    back = {(line["task"], line["token"]): line["at"] for line in by_kind["back"]}
    spans: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for line in by_kind["claim"]:
        end = min(line["until"], back.get((line["task"], line["token"]), line["until"]))
        spans[line["task"]].append((line["at"], end, line["token"]))
    return [
        f"task {poll['task']} was polled at {poll['at']:.3f} under two leases"
        for poll in by_kind["poll"]
        for begin, end, token in spans[poll["task"]]
        if token != poll["token"] and begin <= poll["at"] < end
    ]


def _changed(ends: Sequence[Any], table: Mapping[str, TaskRecord]) -> list[str]:
    return [
        f"task {line['task']} had ended as {line['status']} and is {table[line['task']].status.value}"
        for line in ends
        if line["task"] in table and table[line["task"]].status.value != line["status"]
    ]


def _undelivered(effects: Sequence[Any], table: Mapping[str, TaskRecord], verdict: Verdict) -> list[str]:
    """The latest event of every task: delivered, with one effect, however often it was repeated."""
    ids: dict[tuple[str, int], set[str]] = defaultdict(set)
    statuses: dict[tuple[str, int], str] = {}
    for line in effects:
        ids[line["task"], line["version"]].add(line["delivery"])
        statuses[line["task"], line["version"]] = line["status"]
    verdict.repeated_effects = len(effects) - sum(len(found) for found in ids.values())
    broken = []
    for task in table.values():
        if task.notification_status == "dead_letter":
            verdict.dead_letters += 1
            continue
        latest = (task.task_id, task.event_version)
        if task.notification_status != "delivered" or not ids[latest]:
            broken.append(f"the latest event of task {task.task_id} is {task.notification_status}")
        elif len(ids[latest]) > 1:
            broken.append(f"event {latest} had {len(ids[latest])} effects")
        elif statuses[latest] != task.status.value:
            broken.append(f"event {latest} told of {statuses[latest]}, and the task is {task.status.value}")
    return broken
