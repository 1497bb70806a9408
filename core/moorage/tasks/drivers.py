"""Drivers by name, and what a stored task is to them."""

from dataclasses import dataclass, field

from moorage.accounts import Account
from moorage.contract.errors import (
    MoorageError,
    PluginError,
    PluginTimeout,
    ProtocolViolation,
)
from moorage.contract.identity import CallContext, Principal
from moorage.contract.stores import TaskRecord
from moorage.contract.tasks import TaskBinding, TaskDriver, TaskRef, TaskSnapshot
from moorage.tasks.bounds import ID_LIMIT_CHARACTERS
from moorage.tasks.text import bounded_error, cut, describe, is_storable


@dataclass(frozen=True, slots=True)
class NamedDriver:
    """A driver object, its name, and the plugin that contributed it (named in errors, PLUG-7)."""

    name: str
    plugin: str
    driver: TaskDriver
    account: Account = field(default_factory=Account, compare=False)


def ref_of(task: TaskRecord, remote_id: str | None = None) -> TaskRef:
    """How the driver finds the remote work again: outside any run, without secrets (CRED-7)."""
    return TaskRef(
        task_id=task.task_id,
        server=task.server_name,
        binding=TaskBinding(
            driver=task.driver,
            task_name=task.task_name,
            data=task.binding,
            sticky=task.holder is not None,
        ),
        remote_id=remote_id if remote_id is not None else task.remote_id or "",
        context=background_context(
            CallContext(
                principal=Principal(user_id=task.user_id),
                thread_id=task.thread_id,
                run_id=task.run_id,
                assistant_id=task.assistant_id,
            )
        ),
    )


def background_context(context: CallContext) -> CallContext:
    """The same caller outside the run: no secrets (CRED-7)."""
    return CallContext(
        principal=context.principal,
        thread_id=context.thread_id,
        run_id=context.run_id,
        assistant_id=context.assistant_id,
        background=True,
    )


def checked_snapshot(reply: object, named: NamedDriver, remote_id: str) -> TaskSnapshot:
    """The reply as a snapshot of this very task.

    Raises `PluginError` for another type (a fault of the plugin), `ProtocolViolation` for another task's
    id (ORD-5).
    """
    if not isinstance(reply, TaskSnapshot):
        raise PluginError(f"answered with {type(reply).__name__}, not a TaskSnapshot", plugin=named.plugin)
    if reply.remote_id is not None and reply.remote_id != remote_id:
        raise ProtocolViolation(f"the server answered for another task id: {foreign_id(reply, remote_id)}")
    return reply


def foreign_id(snapshot: TaskSnapshot, remote_id: str) -> str:
    """The id that came, quoted and bounded, but never the task's own inside it (API-3)."""
    came = str(snapshot.remote_id)
    if remote_id in came:
        return f"a text of {len(came)} characters"
    return repr(cut(came, 100))


def check_remote_id(remote_id: str) -> None:
    """Raises `ProtocolViolation` where the id cannot be stored (BOUND-3, BOUND-4)."""
    if len(remote_id) > ID_LIMIT_CHARACTERS:
        raise ProtocolViolation(
            f"the remote task id has {len(remote_id)} characters; at most {ID_LIMIT_CHARACTERS} are allowed",
            remote_id=remote_id,
        )
    if not is_storable(remote_id):
        raise ProtocolViolation(
            "the remote task id holds a NUL or a lone surrogate, which cannot be stored", remote_id=remote_id
        )


def violation_text(exc: ProtocolViolation, server: str) -> str:
    """The message of a malformed reply, which names the server (TASK-23)."""
    message = bounded_error(exc)
    return message if server in message else bounded_error(f"server {server!r}: {message}")


def contained(exc: BaseException, named: NamedDriver) -> MoorageError:
    """The error as one of ours; what is none already carries the plugin's name, and is a fault of it
    (PLUG-7)."""
    if isinstance(exc, MoorageError):
        error = exc
    elif isinstance(exc, TimeoutError):
        error = PluginTimeout(describe(exc), plugin=named.plugin)
    else:
        error = PluginError(describe(exc), plugin=named.plugin)
    if isinstance(error, PluginError):
        named.account.told(f"task driver {named.name!r}: {error}")
    return error
