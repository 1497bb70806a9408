"""Between a run request and its stored row, which has no secrets (RUN-1)."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from moorage.contract.identity import Principal
from moorage.contract.runs import DEFAULT_STREAM_MODES, RunRequest, RunStatus
from moorage.contract.stores import RunRecord
from moorage.runs.redaction import hide_kwargs

TASK_ID_KEY = "moorage_task_id"
TASK_VERSION_KEY = "moorage_task_version"
TASK_ATTEMPT_KEY = "moorage_task_attempt"
"""Run metadata of a notification run (NOTE-6)."""

_NAMESPACE = uuid.UUID("6f1c6f0c-2a37-4c55-9d0c-1f6a3b7e5d52")


def run_id_for(thread_id: str, idempotency_key: str | None) -> str:
    """A new id, or the one id that this key has on this thread, so that a repetition finds the run."""
    if idempotency_key is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(_NAMESPACE, f"{thread_id}\n{idempotency_key}"))


def stored(request: RunRequest, *, owner: str, now: datetime) -> RunRecord:
    """The row of a run that is about to exist."""
    return RunRecord(
        run_id=run_id_for(request.thread_id, request.idempotency_key),
        thread_id=request.thread_id,
        user_id=request.principal.user_id,
        assistant_id=request.assistant_id,
        status=RunStatus.PENDING,
        metadata=dict(request.metadata or {}),
        kwargs=_kwargs(request),
        multitask_strategy=request.multitask_strategy,
        idempotency_key=request.idempotency_key,
        owner=owner,
        internal=request.origin == "internal",
        created_at=now,
        updated_at=now,
    )


def _kwargs(request: RunRequest) -> Mapping[str, Any]:
    kwargs: dict[str, Any] = {
        "input": request.input,
        "config": dict(request.config),
        "context": dict(request.context),
        "stream_mode": sorted(request.stream_modes),
    }
    optional: dict[str, Any] = {
        "command": request.command,
        "checkpoint_id": request.checkpoint_id,
        "interrupt_before": _nodes(request.interrupt_before),
        "interrupt_after": _nodes(request.interrupt_after),
        "stream_subgraphs": request.stream_subgraphs,
        "after_seconds": request.after_seconds,
        "on_completion": request.on_completion if request.on_completion != "keep" else None,
        "webhook": request.webhook,
        "had_secrets": bool(request.secrets),
    }
    kwargs.update({name: value for name, value in optional.items() if value})
    return hide_kwargs(kwargs)  # type: ignore[no-any-return]


def _nodes(nodes: Any) -> Any:
    return nodes if nodes == "*" else list(nodes)


def had_secrets(run: RunRecord) -> bool:
    """Whether the request carried secrets, which died with the process that accepted it."""
    return bool(run.kwargs.get("had_secrets"))


def after_seconds(run: RunRecord) -> float:
    """The delay that the client asked for."""
    value = run.kwargs.get("after_seconds", 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def restored(run: RunRecord, principal: Principal) -> RunRequest:
    """The request of a stored run that another process accepted and never began."""
    kwargs = run.kwargs
    before, after = kwargs.get("interrupt_before", ()), kwargs.get("interrupt_after", ())
    return RunRequest(
        thread_id=run.thread_id,
        assistant_id=run.assistant_id,
        principal=principal,
        input=kwargs.get("input"),
        metadata=run.metadata,
        context=kwargs.get("context", {}),
        config=kwargs.get("config", {}),
        origin="internal" if run.internal else "api",
        idempotency_key=run.idempotency_key,
        checkpoint_id=kwargs.get("checkpoint_id"),
        command=kwargs.get("command"),
        interrupt_before=before if before == "*" else tuple(before),
        interrupt_after=after if after == "*" else tuple(after),
        stream_modes=frozenset(kwargs.get("stream_mode", DEFAULT_STREAM_MODES)),
        stream_subgraphs=bool(kwargs.get("stream_subgraphs")),
        after_seconds=after_seconds(run),
        on_completion=kwargs.get("on_completion", "keep"),
        webhook=kwargs.get("webhook"),
    )
