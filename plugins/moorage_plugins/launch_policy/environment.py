"""Names of variables that an API-registered server may not set, whatever its command (LAUNCH-6)."""

from collections.abc import Mapping

RUN_AT_START = frozenset(
    {
        "BASH_ENV", "DYLD_INSERT_LIBRARIES", "ENV", "LD_AUDIT", "LD_PRELOAD", "NODE_OPTIONS", "PERL5OPT",
        "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "RUBYOPT",
        # Beyond the list of LAUNCH-6, each of the same power: what it names is run or imported at start.
        "BASHOPTS", "BROWSER", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "PERL5DB", "PS4", "PYTHONUSERBASE",
        "PYTHONWARNINGS", "SHELLOPTS", "ZDOTDIR", "_JAVA_OPTIONS",
    }
)  # fmt: skip
CONFIGURATION = frozenset(
    {
        "COMSPEC", "CONDA_PREFIX", "DESTDIR", "HOME", "PREFIX", "VIRTUAL_ENV", "XDG_CACHE_HOME",
        "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    }
)  # fmt: skip
"""Where launchers look for their configuration, programs and interpreters (LAUNCH-9)."""
FAMILIES = ("NPM_CONFIG_", "UV_", "PIP_", "GIT_", "BASH_FUNC_")
HARMLESS = frozenset(
    {
        "NPM_CONFIG_AUDIT", "NPM_CONFIG_COLOR", "NPM_CONFIG_FETCH_RETRIES", "NPM_CONFIG_FETCH_TIMEOUT",
        "NPM_CONFIG_FUND", "NPM_CONFIG_LOGLEVEL", "NPM_CONFIG_OFFLINE", "NPM_CONFIG_PREFER_OFFLINE",
        "NPM_CONFIG_PROGRESS", "NPM_CONFIG_UPDATE_NOTIFIER", "NPM_CONFIG_YES",
        "PIP_DEFAULT_TIMEOUT", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT", "PIP_RETRIES",
        "UV_COMPILE_BYTECODE", "UV_HTTP_RETRIES", "UV_HTTP_TIMEOUT", "UV_NO_PROGRESS", "UV_OFFLINE",
        "UV_SYSTEM_CERTS",
    }
)  # fmt: skip
"""Members of the families that change neither what is run nor where it comes from."""


def refused_variable(env: Mapping[str, str]) -> str | None:
    """Why the first refused name is refused; None where all may be set. Values are not looked at."""
    for name in env:
        if (why := _reason(name)) is not None:
            return f"the variable {_shown(name)} may not be set: {why}"
    return None


def _reason(name: str) -> str | None:
    folded = "".join(c for c in name if c.isprintable()).strip().upper()
    if not folded or "=" in name or "\0" in name:
        return "this is no name of a variable"
    if folded == "PATH":
        return "it decides which program a command name means"
    if folded in RUN_AT_START:
        return "what it holds is run at start"
    if folded in CONFIGURATION:
        return "it decides where a launcher looks for its configuration and programs"
    if folded.startswith(FAMILIES) and folded.replace("-", "_") not in HARMLESS:
        return "it configures the launcher, which is the same power as its options"
    return None


def _shown(name: str) -> str:
    return repr(name[:80])
