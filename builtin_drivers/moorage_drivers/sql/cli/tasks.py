"""``moorage tasks``: every user's tasks, for the operator."""

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from moorage.contract import AmbiguousName, AnswerRecord, NotFound, Store, TaskFilter, TaskRecord, TaskStatus
from moorage.tasks.views import detail, list_row
from moorage_drivers.sql.cli.session import (
    EXIT_CODES,
    EXIT_TASK_FAILED,
    Json,
    command_group,
    out,
    reporting,
    with_store,
)

app = command_group(f"Look at durable tasks, cancel and answer them.\n\n{EXIT_CODES}")

_STYLES = {"completed": "green", "failed": "red", "cancelled": "yellow", "input_required": "magenta"}
_SHOWN_MATCHES = 20
_WIDE = 120
"""Columns of a terminal from which on there is room for more than the essentials."""

Which = Annotated[str, typer.Argument(metavar="TASK", help="The task's id, or its name where it is unique.")]
User = Annotated[str | None, typer.Option("--user", help="Only this user's.")]
Thread = Annotated[str | None, typer.Option("--thread", help="Only this thread's.")]


@app.command("list")
def list_tasks(
    user: User = None,
    thread: Thread = None,
    status: Annotated[
        list[TaskStatus] | None, typer.Option("--status", help="Only in this status; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many at most.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where the page before ended.")] = None,
    as_json: Json = False,
) -> None:
    """List tasks, the newest first."""
    wanted = TaskFilter(
        user_id=user,
        thread_id=thread,
        statuses=frozenset(status) if status else None,
        limit=limit,
        cursor=cursor,
    )
    try:
        page = with_store(lambda store: store.tasks.list(wanted))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--cursor") from None
    if as_json:
        print(json.dumps({"items": [_row(task) for task in page.items], "next_cursor": page.next_cursor}))
        return
    out().print(_listed(page.items, wide=out().width >= _WIDE))
    if page.next_cursor:
        out().print(f"More: --cursor {page.next_cursor}", markup=False, soft_wrap=True)


@app.command()
def show(task: Which, user: User = None, thread: Thread = None, as_json: Json = False) -> None:
    """Show all that is known of one task."""
    found = with_store(lambda store: _find(store, task, user, thread))
    if as_json:
        print(json.dumps(_all(found)))
        return
    table = Table(show_header=False, box=None)
    for name, value in _all(found).items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            table.add_row(*_cells(name, text))
    out().print(table)


@app.command()
def watch(
    task: Which,
    user: User = None,
    thread: Thread = None,
    interval: Annotated[float, typer.Option(min=0.1, max=3_600, help="Seconds between two looks.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Follow one task to its end, a line (or a JSON object) for every change."""

    async def follow(store: Store) -> TaskRecord:
        now = await _find(store, task, user, thread)
        _say(now, as_json)
        # The spinner goes to stderr, and only to people.
        with out(stderr=True).status(f"watching {now.task_id}"):
            while not now.status.terminal:
                await asyncio.sleep(interval)
                before, now = now, await _find(store, now.task_id, None, None)
                if _look(before) != _look(now):
                    _say(now, as_json)
        return now

    if with_store(follow).status is not TaskStatus.COMPLETED:
        raise typer.Exit(EXIT_TASK_FAILED)


@app.command()
def cancel(task: Which, user: User = None, thread: Thread = None, as_json: Json = False) -> None:
    """Ask for a task's cancellation. The request is kept; a running gateway performs it, and repeats it
    until the server reports an end. On a task that has ended it does nothing."""

    async def ask(store: Store) -> TaskRecord:
        found = await _find(store, task, user, thread)
        after = await store.tasks.request_cancel(found.task_id)
        if after is None:
            raise NotFound(f"there is no task {task!r}")
        return after

    after = with_store(ask)
    if as_json:
        print(json.dumps(_row(after)))
    elif after.status.terminal:
        out().print(f"Task {after.task_id} is {after.status} already.", markup=False)
    else:
        out().print(f"Cancellation of task {after.task_id} is requested.", markup=False)


@app.command()
def respond(
    task: Which,
    response: Annotated[str, typer.Argument(help="The answer as JSON, or - to read it from stdin.")],
    answer_id: Annotated[
        str | None, typer.Option(help="Repeating an id sends nothing again; made up if absent.")
    ] = None,
    user: User = None,
    thread: Thread = None,
    as_json: Json = False,
) -> None:
    """Answer a task that requires input. The answer is checked against the request's schema, recorded, and
    sent once, to the task's server itself, with the extensions config and plugins found here."""
    text = sys.stdin.read() if response == "-" else response
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"this is no JSON: {error}", param_hint="RESPONSE") from None
    found = with_store(lambda store: _find(store, task, user, thread))
    done = reporting(lambda: _answer(found.task_id, answer_id or secrets.token_hex(8), value))
    if as_json:
        print(json.dumps({"task_id": done.task_id, "answer_id": done.answer_id, "state": done.state}))
    else:
        out().print(f"Answer {done.answer_id} to task {done.task_id} is {done.state}.", markup=False)


def _answer(task_id: str, answer_id: str, value: Any) -> AnswerRecord:
    from moorage.gateway.partial import answer_task
    from moorage.host import load_plugins
    from moorage.settings_load import load_settings

    settings = load_settings(env=os.environ, cwd=Path.cwd())
    return asyncio.run(answer_task(settings, load_plugins(settings.plugins), task_id, answer_id, value))


def _listed(tasks: Sequence[TaskRecord], *, wide: bool) -> Table:
    """Ids and states are never cut, since one pastes the one and looks for the other."""
    rows = [_columns(task, wide) for task in tasks]
    table = Table(box=None, pad_edge=False, header_style="bold")
    names = ("id", "name", "status", "updated", "server", "user", "thread", "error")
    for number, name in enumerate(names if wide else names[:4]):
        cut = name in ("name", "server", "user", "thread", "error")
        widest = max((len(row[number]) for row in rows), default=0)
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=None if cut else widest)
    for row in rows:
        table.add_row(*row)
    return table


def _columns(task: TaskRecord, wide: bool) -> list[Text]:
    first = [*_cells(task.task_id, task.task_name), _status(task)]
    if not wide:
        return [*first, *_cells(f"{task.updated_at:%m-%d %H:%M}Z")]
    moment, error = f"{task.updated_at:%Y-%m-%d %H:%M:%S}Z", _short(task.error or task.last_poll_error)
    return [*first, *_cells(moment, task.server_name, task.user_id, task.thread_id or "", error)]


async def _find(store: Store, which: str, user: str | None, thread: str | None) -> TaskRecord:
    wanted = TaskFilter(user_id=user, thread_id=thread, name_or_id=which, limit=_SHOWN_MATCHES)
    found = (await store.tasks.list(wanted)).items
    by_id = [task for task in found if task.task_id == which]
    if not found:
        raise NotFound(f"there is no task {which!r}")
    if len(found) > 1 and not by_id:
        raise AmbiguousName(which, [f"{task.task_id} ({task.user_id}, {task.status})" for task in found])
    return by_id[0] if by_id else found[0]


def _row(task: TaskRecord) -> dict[str, Any]:
    return {**list_row(task), "user_id": task.user_id, "thread_id": task.thread_id}


def _all(task: TaskRecord) -> dict[str, Any]:
    return {**detail(task), "user_id": task.user_id, "thread_id": task.thread_id, "run_id": task.run_id}


def _look(task: TaskRecord) -> tuple[object, ...]:
    return (task.status, task.error, task.last_poll_error, task.cancel_requested_at, task.event_version)


def _say(task: TaskRecord, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_row(task)), flush=True)
        return
    extra = task.error or task.last_poll_error or task.result_preview
    line = f"{task.updated_at:%H:%M:%S}Z  {_short(task.task_name)}  {task.status}"
    out().print(line if extra is None else f"{line}  {_short(extra)}", markup=False, soft_wrap=True)


def _cells(*texts: str) -> list[Text]:
    """As they are: what a server sent is no markup."""
    return [Text(_harmless(text)) for text in texts]


def _status(task: TaskRecord) -> Text:
    marks = " (degraded)" if task.tracking_degraded else ""
    if task.cancel_requested_at is not None and not task.status.terminal:
        marks += " (cancelling)"
    return Text(f"{task.status}{marks}", style=_STYLES.get(str(task.status), ""))


def _harmless(text: str) -> str:
    """Without control characters: what a server sent shall not steer the operator's terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _short(text: str | None, limit: int = 80) -> str:
    line = _harmless(" ".join((text or "").split()))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
