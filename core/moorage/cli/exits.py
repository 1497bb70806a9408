"""Exit statuses of the command line, and what an error says on stderr (OPS-1)."""

OK = 0
PROBLEM = 1
"""It was done and found a problem, or it could not be done."""
USAGE = 2
"""Wrong usage, settings or configuration."""
MISSING = 5
"""The command's distribution is not installed, or its plugin is not loaded. 3 and 4 belong to `tasks`."""
INTERRUPTED = 130

DEBUG_VARIABLE = "MOORAGE_DEBUG"


def exit_code(error: Exception) -> tuple[int, str]:
    """The exit status for an error, and its one line."""
    from moorage.contract.errors import ConfigError, MoorageError

    if isinstance(error, MissingCommand):
        return MISSING, one_line(str(error))
    if isinstance(error, UsageError | ConfigError):
        return USAGE, one_line(str(error))
    if isinstance(error, MoorageError):
        return PROBLEM, one_line(str(error))
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return PROBLEM, one_line(f"{named}{error.strerror}")
    kind = type(error).__name__
    return PROBLEM, one_line(f"{kind}: {error} (set {DEBUG_VARIABLE}=1 for the traceback)")


def one_line(text: str) -> str:
    """``text`` without line breaks and terminal codes, which it may quote from anywhere."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


class UsageError(Exception):
    """What was asked for makes no sense; the text is for the user."""


class MissingCommand(Exception):
    """What brings a command is not installed or not loaded; the text says which and why."""
