"""What looks like a secret, by its name or by its form (ADMIN-1)."""

import re
from collections.abc import Iterator

MASK = "***"

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SECRET_WORDS = frozenset(
    {
        "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "apikey", "credential",
        "cred", "authorization", "bearer", "cookie", "jwt", "pat", "auth", "authtoken", "accesstoken",
        "refreshtoken", "accesskey", "secretkey", "privatekey", "clientsecret", "apitoken", "signature",
        "sig", "otp",
    }
)  # fmt: skip
_KEY_KINDS = frozenset(
    {
        "api", "access", "private", "secret", "client", "encryption", "signing", "master", "account",
        "service", "subscription", "auth", "license", "ssh", "session", "shared", "storage", "admin",
        "function",
    }
)  # fmt: skip
# A name that ends in one of these is about a secret and holds none: token_url, secret_name, password_file.
_ABOUT = frozenset(
    {
        "url", "uri", "endpoint", "field", "type", "name", "path", "file", "header", "headers", "ttl",
        "expiry", "seconds", "minutes", "ms", "limit", "count", "budget", "length", "size", "id", "env",
        "var", "variable", "prefix", "scheme", "method", "mode", "required", "enabled", "algorithm",
        "provider", "server", "host", "audience", "issuer", "scope", "scopes", "location", "format",
        "policy",
    }
)  # fmt: skip
_AMOUNTS = frozenset({"max", "min", "num", "total", "per", "prompt", "completion"})
_SHORT_NAMES = frozenset({"key", "code", "sid", "ticket"})

_TOKEN = re.compile(
    r"""
    (?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
    | xox[abeoprs]-[\w-]{10,} | (?:AKIA|ASIA)[0-9A-Z]{16} | AIza[\w-]{30,} | ya29\.[\w-]{16,}
    | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{20,}
    | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*
    | (?<=[Bb]earer\ )[^\s\ue000-\uf8ff]{8,}
    """,
    re.ASCII | re.VERBOSE | re.DOTALL,
)


_DOTTED = re.compile(r"[\w.-]{24,}", re.ASCII)
_JWT_PART = 11


def is_secret_name(name: str, *, short: bool = False) -> bool:
    """Whether a key, option or header of this name holds a secret: snake, kebab and camel case.

    ``short`` also counts names that mean a secret only where there is little else, in a query or an option.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or (words[-1] in _ABOUT and words[-2:] != ["session", "id"]):
        return False
    if any(word in _AMOUNTS for word in words):
        return False
    singular = [word[:-1] if word.endswith("s") and word not in _SECRET_WORDS else word for word in words]
    if any(word in _SECRET_WORDS for word in singular) or words[-2:] in (
        ["session", "id"],
        ["connection", "string"],
    ):
        return True
    if singular[-1] == "key" and any(word in _KEY_KINDS for word in singular[:-1]):
        return True
    return short and len(words) == 1 and singular[0] in _SHORT_NAMES


def tokens_in(text: str) -> list[tuple[int, int]]:
    """Where the text holds something in the form of a well-known kind of token."""
    return [*(match.span() for match in _TOKEN.finditer(text)), *_jwts(text)]


def _jwts(text: str) -> Iterator[tuple[int, int]]:
    """JSON web tokens. One expression for them would look at every ``eyJ`` to the end of the text."""
    for run in _DOTTED.finditer(text):
        parts = run[0].split(".")
        start = run.start()
        for part, payload, signature in zip(parts, parts[1:], parts[2:], strict=False):
            at = part.find("eyJ")
            if at >= 0 and len(part) - at >= _JWT_PART and len(payload) >= _JWT_PART - 3:
                yield start + at, start + len(part) + len(payload) + len(signature) + 2
            start += len(part) + 1
