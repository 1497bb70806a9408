"""From a JSON body to a `RunRequest`: the same for every launch route."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args
from urllib.parse import SplitResult, urlsplit

from moorage.contract.errors import AdmissionRejected
from moorage.contract.identity import Principal
from moorage.contract.runs import DEFAULT_STREAM_MODES, MultitaskStrategy, RunOrigin, RunRequest, StreamMode
from moorage.runs.identity import clean_config, clean_input, split_context
from moorage.runs.secrets import Secrets
from moorage.settings import LimitSettings

MAX_AFTER_SECONDS = 30 * 86_400.0
_NO_URL = re.compile("[\x00-\x20\x7f\ud800-\udfff]")


def run_request(
    body: Mapping[str, Any],
    *,
    thread_id: str | None,
    principal: Principal,
    limits: LimitSettings,
    origin: RunOrigin = "api",
    default_on_completion: Literal["keep", "delete"] = "keep",
) -> RunRequest:
    """Build the request from a body in LangGraph Platform's shape (RUN-5).

    Identity claims are dropped, limits clamped, and secrets taken out of ``config.context`` and
    ``context`` (RUN-1, 9, 10); ``metadata`` stays raw for admission (RUN-2). ``thread_id`` None asks for a
    thread of the run's own. Raises `AdmissionRejected` for a field of a wrong shape; no value is quoted.
    """
    config = body.get("config") or {}
    if not isinstance(config, Mapping):
        raise AdmissionRejected("config must be an object")
    inner, secrets = split_context(config.get("context"), where="config.context")
    outer, more = split_context(body.get("context"), where="context")
    return RunRequest(
        thread_id=thread_id or "",
        assistant_id=_text(body, "assistant_id", required=True),
        principal=principal,
        input=clean_input(body.get("input")),
        metadata=body.get("metadata"),
        context={**inner, **outer},
        secrets=Secrets({**secrets, **more}),
        config=clean_config(config, recursion_limit=limits.recursion_limit),
        origin=origin,
        multitask_strategy=_choice(body, "multitask_strategy", get_args(MultitaskStrategy), "reject"),
        checkpoint_id=_checkpoint(body, config),
        command=_command(body),
        interrupt_before=_nodes(body, "interrupt_before"),
        interrupt_after=_nodes(body, "interrupt_after"),
        stream_modes=stream_modes(body.get("stream_mode")) | DEFAULT_STREAM_MODES,
        stream_subgraphs=bool(body.get("stream_subgraphs")),
        after_seconds=_after(body.get("after_seconds")),
        if_not_exists=_choice(body, "if_not_exists", ("reject", "create"), "reject"),
        on_completion=_choice(body, "on_completion", ("keep", "delete"), default_on_completion),
        webhook=_webhook(body),
    )


def stream_modes(value: Any) -> frozenset[StreamMode]:
    """The stream modes that a body or a query names; empty where it names none.

    Raises `AdmissionRejected` for one that does not exist.
    """
    named = [value] if isinstance(value, str) else value or []
    if not isinstance(named, Sequence | frozenset | set):
        raise AdmissionRejected("stream_mode must be a name or a list of names")
    known = get_args(StreamMode)
    if wrong := [name for name in named if name not in known]:
        raise AdmissionRejected(
            f"{len(wrong)} stream_mode name(s) are unknown; choose from {', '.join(known)}"
        )
    return frozenset(named)


def _text(body: Mapping[str, Any], name: str, *, required: bool = False) -> str:
    value = body.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise AdmissionRejected(f"{name} must be a non-blank string")
    return value


def _choice(body: Mapping[str, Any], name: str, known: Sequence[str], default: str) -> Any:
    value = body.get(name)
    if value is None:
        return default
    if value not in known:
        raise AdmissionRejected(f"{name} must be one of {', '.join(known)}")
    return value


def _checkpoint(body: Mapping[str, Any], config: Mapping[str, Any]) -> str | None:
    """``checkpoint_id``, ``checkpoint.checkpoint_id`` or ``config.configurable.checkpoint_id``."""
    checkpoint, configurable = body.get("checkpoint"), config.get("configurable")
    for value in (
        body.get("checkpoint_id"),
        checkpoint.get("checkpoint_id") if isinstance(checkpoint, Mapping) else None,
        configurable.get("checkpoint_id") if isinstance(configurable, Mapping) else None,
    ):
        if value is not None:
            if not isinstance(value, str) or not value:
                raise AdmissionRejected("checkpoint_id must be a non-blank string")
            return value
    return None


def _command(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    command = body.get("command")
    if command is None:
        return None
    if not isinstance(command, Mapping):
        raise AdmissionRejected("command must be an object")
    if body.get("input") is not None:
        raise AdmissionRejected("command and input cannot be combined")
    cleaned = {key: command[key] for key in ("resume", "update", "goto") if command.get(key) is not None}
    if "update" in cleaned:
        cleaned["update"] = clean_input(cleaned["update"])
    return cleaned


def _nodes(body: Mapping[str, Any], name: str) -> Sequence[str] | Literal["*"]:
    value = body.get(name)
    if value is None:
        return ()
    if value == "*":
        return "*"
    if not isinstance(value, list) or not all(isinstance(node, str) for node in value):
        raise AdmissionRejected(f"{name} must be '*' or a list of node names")
    return tuple(value)


def _after(value: Any) -> float:
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise AdmissionRejected("after_seconds must be a finite number, not negative")
    if value > MAX_AFTER_SECONDS:
        raise AdmissionRejected(f"after_seconds may be at most {MAX_AFTER_SECONDS:.0f}")
    return float(value)


def _webhook(body: Mapping[str, Any]) -> str | None:
    value = body.get("webhook")
    if value is None:
        return None
    parts = _url(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise AdmissionRejected("webhook must be an http or https URL")
    if parts.username or parts.password:
        raise AdmissionRejected("webhook may carry no user info: it is stored with the run")
    return str(value)


def _url(value: Any) -> SplitResult | None:
    """The parts of a URL; None for what is none, in any way that a client may come up with."""
    if not isinstance(value, str) or _NO_URL.search(value):
        return None
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - raises for a port that cannot be
        (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    return parts
