"""What a body may not say: who calls, what is internal, and more than the limits (RUN-1, 9, 10)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from moorage.contract.errors import AdmissionRejected
from moorage.runs.redaction import LEGACY_KEY

SECRETS = "secrets"
DEFAULT_RECURSION_LIMIT = 25

_CLAIMS = frozenset(
    {
        "user", "user_id", "userid", "user_ids", "username", "principal", "identity", "owner", "owner_id",
        "role", "roles", "permission", "permissions", "scopes", "is_admin", "admin",
        "internal", "is_internal", "background", "moorage",
    }
)  # fmt: skip
_CLAIM_PREFIXES = ("__", "moorage_", "langgraph_auth")
_OURS = frozenset(
    {"thread_id", "run_id", "assistant_id", "graph_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"}
)
"""Keys of ``configurable`` that the gateway sets itself, from the request's path and proper fields."""
_CONFIG_KEYS = frozenset({"tags", "run_name", "recursion_limit", "configurable", "metadata"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def claims_identity(key: object) -> bool:
    """Whether a key claims a principal, a role, or a flag that is the gateway's own (RUN-9)."""
    if not isinstance(key, str):
        return False
    folded = _CAMEL.sub("_", key.strip()).lower().replace("-", "_")
    return folded in _CLAIMS or folded.startswith(_CLAIM_PREFIXES)


def without_claims(value: Any) -> Any:
    """A copy of the mapping without every key that claims an identity; other values as they are."""
    if not isinstance(value, Mapping):
        return value
    return {key: item for key, item in value.items() if not claims_identity(key)}


def split_context(context: Any, *, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The caller's context without claims and secrets, and its secrets (RUN-1).

    Raises `AdmissionRejected` where either is no mapping; it quotes no value.
    """
    if context is None:
        return {}, {}
    if not isinstance(context, Mapping):
        raise AdmissionRejected(f"{where} must be an object")
    secrets: Any = context.get(SECRETS, {})
    if not isinstance(secrets, Mapping):
        raise AdmissionRejected(f"{where}.{SECRETS} must be an object of names to values")
    kept = {k: v for k, v in without_claims(context).items() if k not in (SECRETS, LEGACY_KEY)}
    return kept, dict(secrets)


def clean_config(config: Any, *, recursion_limit: int) -> dict[str, Any]:
    """The config that runs and is stored: known keys only, no claims, limits clamped (RUN-9, RUN-10).

    ``context`` is not part of it: see `split_context`. Raises `AdmissionRejected` for a wrong type.
    """
    if config is None:
        config = {}
    if not isinstance(config, Mapping):
        raise AdmissionRejected("config must be an object")
    cleaned: dict[str, Any] = {key: config[key] for key in config if key in _CONFIG_KEYS}
    for name in ("configurable", "metadata"):
        if cleaned.get(name) is None:
            cleaned.pop(name, None)
        elif not isinstance(cleaned[name], Mapping):
            raise AdmissionRejected(f"config.{name} must be an object")
        else:
            cleaned[name] = {k: v for k, v in without_claims(cleaned[name]).items() if k != LEGACY_KEY}
    if "configurable" in cleaned:
        # ``secrets`` belongs in the context; here it would be stored with every checkpoint.
        cleaned["configurable"] = {
            key: item for key, item in cleaned["configurable"].items() if key not in _OURS and key != SECRETS
        }
    _check_tags(cleaned)
    cleaned["recursion_limit"] = clamp(
        config.get("recursion_limit"), default=DEFAULT_RECURSION_LIMIT, high=recursion_limit
    )
    return cleaned


def _check_tags(config: dict[str, Any]) -> None:
    tags = config.get("tags")
    if tags is None:
        config.pop("tags", None)
    elif not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise AdmissionRejected("config.tags must be a list of strings")
    name = config.get("run_name")
    if name is None:
        config.pop("run_name", None)
    elif not isinstance(name, str):
        raise AdmissionRejected("config.run_name must be a string")


def clamp(value: Any, *, default: int, high: int) -> int:
    """A client's limit, at most ``high`` (RUN-10). Raises `AdmissionRejected` unless a positive integer."""
    if value is None:
        return min(default, high)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise AdmissionRejected("config.recursion_limit must be a positive integer")
    return min(value, high)


def clean_input(value: Any) -> Any:
    """A run's input, or state update, whose messages carry none of the gateway's own marks (RUN-9)."""
    if isinstance(value, Mapping):
        cleaned = {key: item for key, item in value.items() if not str(key).startswith("__")}
        if "messages" in cleaned:
            cleaned["messages"] = _clean_messages(cleaned["messages"])
        return cleaned
    if isinstance(value, list | tuple):
        return _clean_messages(value)
    return value


def _clean_messages(messages: Any) -> Any:
    if isinstance(messages, Sequence) and not isinstance(messages, str | bytes):
        return [_clean_message(message) for message in messages]
    return _clean_message(messages)


_MARKS = ("additional_kwargs", "response_metadata", "metadata", "kwargs", "artifact")


def _clean_message(message: Any) -> Any:
    if not isinstance(message, Mapping):
        return message
    cleaned = {key: item for key, item in message.items() if not _is_mark(key)}
    for name in _MARKS:
        if isinstance(cleaned.get(name), Mapping):
            cleaned[name] = _clean_message(cleaned[name])
    if isinstance(identifier := cleaned.get("id"), str) and identifier.startswith(MESSAGE_ID_PREFIX):
        del cleaned["id"]
    return cleaned


MESSAGE_ID_PREFIX = "moorage-"
"""Ids of messages that the gateway writes itself; no client may replace one."""


def _is_mark(key: object) -> bool:
    # ``role`` and ``name`` are a message's own; of the claims only those that no message format has count.
    return claims_identity(key) and key != "role"
