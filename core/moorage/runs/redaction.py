"""The one owner of the rule on ``metadata.auth_token``, and of hiding it from output (RUN-2, 3, 4).

The key was once how clients handed a credential to a run. It is refused on the way in, by presence, and
hidden on the way out, since rows and backups from those days still hold it. Exactly this top-level key:
``token``, ``Auth_Token`` and nested keys are the client's own.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from moorage.contract.errors import AdmissionRejected
from moorage.contract.runs import ThreadState
from moorage.contract.stores import RunEvent, RunRecord, ThreadRecord

LEGACY_KEY = "auth_token"

T = TypeVar("T")


def check_metadata(metadata: Any) -> None:
    """Refuse run metadata that has the key, whatever its value (RUN-2).

    Raises `AdmissionRejected`, which never quotes the value. Metadata that is no mapping is not judged here.
    """
    if isinstance(metadata, Mapping) and LEGACY_KEY in metadata:
        raise AdmissionRejected(
            f"metadata.{LEGACY_KEY} is refused: metadata is stored and returned. Pass credentials in "
            "config.context.secrets, which lives for this run only and is never stored"
        )


def hide(value: T) -> T:
    """The value without the key: a copy where it has it, else the very same object (RUN-4).

    What is no mapping, and nested keys, are left alone.
    """
    if isinstance(value, Mapping) and LEGACY_KEY in value:
        return {key: item for key, item in value.items() if key != LEGACY_KEY}  # type: ignore[return-value]
    return value


def hide_config(config: Any) -> Any:
    """A run's config (or anything that holds one's ``metadata`` and ``configurable``) without the key."""
    return _hide_under(config, "metadata", "configurable")


def hide_kwargs(kwargs: Any) -> Any:
    """A stored request without the key: in its metadata, its context and its config."""
    kwargs = _hide_under(kwargs, "metadata", "context")
    if isinstance(kwargs, Mapping) and "config" in kwargs:
        config = hide_config(kwargs["config"])
        if config is not kwargs["config"]:
            kwargs = {**kwargs, "config": config}
    return kwargs


def hide_run(run: RunRecord) -> RunRecord:
    """The run as it may be returned."""
    return replace(run, metadata=hide(run.metadata), kwargs=hide_kwargs(run.kwargs))


def hide_thread(thread: ThreadRecord) -> ThreadRecord:
    """The thread as it may be returned."""
    return replace(thread, metadata=hide(thread.metadata))


def hide_state(state: ThreadState) -> ThreadState:
    """The state, or history entry, as it may be returned."""
    return replace(state, metadata=hide(state.metadata))


def hide_event(event: RunEvent) -> RunEvent:
    """The event row as it may be returned; its payload may hold a run's metadata, kwargs or config."""
    payload = hide_kwargs(_hide_under(hide_config(event.payload), "kwargs"))
    if isinstance(payload, Mapping) and "kwargs" in payload:
        payload = {**payload, "kwargs": hide_kwargs(payload["kwargs"])}
    return replace(event, metadata=hide(event.metadata), payload=payload)


def hide_stream(event: str, data: Any) -> Any:
    """The data of one stream item. Message tuples and debug events carry the run's metadata."""
    kind = event.split("|", 1)[0]
    if kind == "messages" and isinstance(data, list | tuple) and len(data) == 2:
        return [data[0], hide(data[1])]
    if kind == "messages/metadata" and isinstance(data, Mapping):
        return {key: hide_config(item) for key, item in data.items()}
    if kind in ("events", "debug", "checkpoints", "tasks"):
        data = hide_config(data)
        if isinstance(data, Mapping) and isinstance(data.get("payload"), Mapping):
            data = {**data, "payload": hide_kwargs(hide_config(data["payload"]))}
        return hide_kwargs(data)
    return data


def _hide_under(value: Any, *names: str) -> Any:
    """The mapping with the key hidden in these members; the same object where nothing had to go."""
    if not isinstance(value, Mapping):
        return value
    changed = {name: hidden for name in names if (hidden := hide(value.get(name))) is not value.get(name)}
    return {**value, **changed} if changed else value
