"""Whether a package specification names something on the gateway's own disk (LAUNCH-9)."""

import re
import shutil

_PLACEHOLDER = re.compile(r"\$\{|\$[A-Za-z_]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_REMOTE = re.compile(
    r"(?:https?|git|ssh|git\+(?:https?|ssh))://[^/\s]+|(?:github|gitlab|bitbucket|gist):[A-Za-z0-9_]",
    re.IGNORECASE,
)
_ARCHIVE = re.compile(r"\.(?:tgz|tar|tar\.(?:gz|bz2|xz|zst)|tbz|txz|zip|whl)$", re.IGNORECASE)
_NPM_NAME = re.compile(r"(?:@[A-Za-z0-9._~*!'()-]+/)?[A-Za-z0-9._~*!'()-]+")
_GITHUB = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9._-]+(?:#[A-Za-z0-9._/:^~*@-]*)?")
_INTERPRETER = re.compile(
    r"(?:node|nodejs|npm|npx|corepack|node-gyp|python|pythonw|pypy|graalpy|cpython|pyodide)[0-9.t]*(?:@.*)?",
    re.IGNORECASE,
)
_PYTHON_VERSION = re.compile(
    r"(?:(?:python|cpython|pypy|graalpy|pyodide|cp|pp)[@-]?)?[0-9][0-9A-Za-z.+_-]*|[<>=!~][0-9.<>=!~,* ]+"
    r"|python|cpython|pypy|graalpy",
    re.IGNORECASE,
)


def has_placeholder(text: str) -> bool:
    """Whether the value of a variable will stand somewhere in it."""
    return _PLACEHOLDER.search(text) is not None


def is_local_npm(spec: str) -> bool:
    """Whether npm may read this as a path: everything that is not certainly a registry name, a GitHub
    repository, or a URL elsewhere."""
    spec = spec.strip()
    if _ARCHIVE.search(spec.partition("?")[0]) and not spec.lower().startswith(("http://", "https://")):
        return True
    name, separator, wanted = _split_npm(spec)
    if separator and _NPM_NAME.fullmatch(name):
        return _is_local_version(wanted)
    if _NPM_NAME.fullmatch(spec):
        return spec.startswith(".")
    return _is_local_version(spec)


def _split_npm(spec: str) -> tuple[str, str, str]:
    """``@scope/name@wanted`` in three."""
    at = spec.find("@", 1)
    return (spec, "", "") if at < 0 else (spec[:at], "@", spec[at + 1 :])


def _is_local_version(wanted: str) -> bool:
    if wanted.lower().startswith("npm:"):
        return is_local_npm(wanted[4:])
    if _SCHEME.match(wanted):
        return _REMOTE.match(wanted) is None
    if _GITHUB.fullmatch(wanted) and not wanted.startswith("."):
        return False
    # What is left is a version, a range or a tag; a path has a separator or begins like one.
    return any(sign in wanted for sign in "/\\~") and not re.fullmatch(r"~[0-9][\w.+-]*", wanted)


def is_local_python(spec: str) -> bool:
    """The same for a requirement as uv reads it."""
    spec = spec.strip()
    _, separator, url = spec.partition("@")
    target = url.strip() if separator and not _SCHEME.match(spec) else spec
    if _SCHEME.match(target):
        return _REMOTE.match(target) is None
    if any(sign in spec for sign in "/\\") or spec.startswith((".", "~", "-")):
        return True
    return _ARCHIVE.search(spec) is not None


def is_remote_index(value: str) -> bool:
    """Whether an index or a page of links lies elsewhere: ``[name=]http(s)://…``."""
    return re.match(r"(?:[A-Za-z0-9_-]+=)?https?://", value.strip(), re.IGNORECASE) is not None


def is_python_version(value: str) -> bool:
    """A version, not a path and not the name of a program."""
    return _PYTHON_VERSION.fullmatch(value.strip()) is not None


def is_interpreter(name: str) -> bool:
    """A program that runs whatever its own arguments say, and that the launcher has at hand."""
    return _INTERPRETER.fullmatch(name.strip()) is not None


def is_program_here(name: str) -> bool:
    """Whether a bare name is a program of this machine, which a launcher would start in place of a
    package's."""
    try:
        return shutil.which(name) is not None
    except (ValueError, OSError):
        return True
