"""API keys: random, recognisable, kept only as a hash (API-2)."""

import hashlib
import re
import secrets

from moorage.contract.errors import ConfigError

PREFIX = "moorage_"
"""Secret scanners and people recognise a key by it."""
ROLES = frozenset({"user", "admin", "metrics"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


def new_key() -> str:
    """A key with 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def key_hash(key: str) -> str:
    """What is stored. A plain digest is right for keys that cannot be guessed; it is not for passwords."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def check_name(value: str, what: str) -> str:
    """A key's name or a user's id; raises `ConfigError`."""
    if not _NAME.fullmatch(value):
        raise ConfigError(f"{what} takes up to 128 letters, digits and . _ @ - (and starts with the former)")
    return value


def check_roles(roles: list[str]) -> frozenset[str]:
    """Raises `ConfigError` for a role that does not exist."""
    if unknown := sorted(set(roles) - ROLES):
        raise ConfigError(f"no such role: {', '.join(unknown)}; there are {', '.join(sorted(ROLES))}")
    return frozenset(roles)
