"""Encryption of what is kept at rest (CRED-9)."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from moorage.contract import ConfigError

KEY_VARIABLE = "MOORAGE_SECRET_KEY"
KEY_FILE = "secret.key"
SHORTEST_KEY = 16


class Vault:
    """Seals JSON with a key from the environment, else from a file in the home that only we can read.

    Replicas that share a database must share the key, and so must set the variable.
    """

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(base64.urlsafe_b64encode(_derived(key, b"moorage oauth seal")))
        self._naming = _derived(key, b"moorage oauth name")

    @classmethod
    def open(cls, home: Path, environ: Mapping[str, str] = os.environ) -> "Vault":
        """Raises `ConfigError` for a key that is too short, or a key file that others can read."""
        given = environ.get(KEY_VARIABLE)
        if given:
            if len(given) < SHORTEST_KEY:
                raise ConfigError(f"must have at least {SHORTEST_KEY} characters", where=KEY_VARIABLE)
            return cls(given.encode())
        return cls(_file_key(home / KEY_FILE))

    def seal(self, value: Any) -> str:
        return self._fernet.encrypt(json.dumps(value).encode()).decode()

    def unseal(self, sealed: object) -> Any:
        """None where it was sealed with another key, or is damaged."""
        if not isinstance(sealed, str):
            return None
        try:
            return json.loads(self._fernet.decrypt(sealed))
        except (InvalidToken, ValueError):
            return None

    def name(self, *parts: str | None) -> str:
        """A name made of secrets that does not give them away, the same in every replica."""
        text = json.dumps(parts).encode()
        return hmac.new(self._naming, text, hashlib.sha256).hexdigest()


def _derived(key: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(key)


def _file_key(path: Path) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        return _read(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written beside, then linked: another process sees the whole key or none, and the first one wins.
    descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_urlsafe(32).encode())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(made, path)
    finally:
        os.unlink(made)
    return _read(path)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
            raise ConfigError("can be read by others: chmod 600 it", where=str(path))
        key = file.read().strip()
    if len(key) < SHORTEST_KEY:
        raise ConfigError("holds no key; restore it or remove it", where=str(path))
    return key
