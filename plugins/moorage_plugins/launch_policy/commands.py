"""Which stdio commands a server registered over HTTP may start (LAUNCH-2 to LAUNCH-6, LAUNCH-9)."""

import re
from collections.abc import Callable, Mapping, Sequence

from moorage.contract import GatewayContext, LauncherGrammar, LauncherGrammars, LaunchRefused, LaunchRequest
from moorage_plugins.launch_policy import npx
from moorage_plugins.launch_policy.data import NPX_EXEC, NPX_PATHS, SHELL_OPTIONS, grammars
from moorage_plugins.launch_policy.environment import refused_variable
from moorage_plugins.launch_policy.npx import Reading, TooLong
from moorage_plugins.launch_policy.regions import readings
from moorage_plugins.launch_policy.settings import BARE_NAME, LaunchSettings
from moorage_plugins.launch_policy.sources import (
    has_placeholder,
    is_interpreter,
    is_local_npm,
    is_local_python,
    is_program_here,
    is_python_version,
    is_remote_index,
)

_WHOLE_SCREEN = SHELL_OPTIONS | {"-p", "-r", "--require", "--import", "--loader", "--experimental-loader"}
_LETTERS = frozenset(option[1] for option in _WHOLE_SCREEN if len(option) == 2)
_OTHERS = frozenset(option for option in _WHOLE_SCREEN if len(option) > 2)
_PYTHON_SPECS = frozenset({"--from", "--with", "-w"})
_PYTHON_INDEXES = frozenset(
    {"--index", "--default-index", "-i", "--index-url", "--extra-index-url", "-f", "--find-links"}
)


class CommandRules:
    """A `LaunchValidator`."""

    def __init__(self, settings: LaunchSettings, context: GatewayContext) -> None:
        self._settings = settings
        self._context = context

    def validate(self, request: LaunchRequest) -> None:
        """Raises `LaunchRefused`."""
        if request.transport != "stdio":
            return
        reason = self._command(request) or refused_variable(request.env) or self._start(request)
        if reason is not None:
            raise LaunchRefused(f"server {request.server!r}: {reason}")

    def _command(self, request: LaunchRequest) -> str | None:
        command = request.command or ""
        if command in self._settings.allowlist:
            return None
        if not command:
            return "command is missing"
        if not BARE_NAME.fullmatch(command):
            return (
                "command must be a bare name, without a path, white space or what a shell would read; "
                "arguments go into args"
            )
        allowed = ", ".join(sorted(self._settings.allowlist))
        return (
            f"command is not one of those that the API may start ({allowed}); an operator can "
            "allow it with MOORAGE_STDIO_COMMAND_ALLOWLIST, or write the server into the file"
        )

    def _start(self, request: LaunchRequest) -> str | None:
        command, args = request.command or "", request.args
        grammar = self._grammars().get(command)
        if grammar is None:
            return _screened_whole(command, args)
        if request.cwd is not None and command in ("npx", "uvx"):
            return f"cwd is refused for {command}, which takes programs and configuration from there"
        try:
            if command == "npx":
                return _judge_npx(args)
            reasons = (_judge(grammar, reading) for reading in readings(grammar, args))
            return next((reason for reason in reasons if reason is not None), None)
        except TooLong:
            return f"args hold more options than the grammar of {command} can judge"

    def _grammars(self) -> Mapping[str, LauncherGrammar]:
        if self._context.has(LauncherGrammars):
            return self._context.service(LauncherGrammars).grammars()
        return {grammar.command: grammar for grammar in grammars()}


def _screened_whole(command: str, args: Sequence[str]) -> str | None:
    for arg in args:
        name = arg.partition("=")[0]
        if name in _OTHERS or (name.startswith("-") and f"-{name}" in _OTHERS):
            flag = name
        elif re.match(r"-[^-]", arg) and (found := next((x for x in arg[1:] if x in _LETTERS), None)):
            flag = f"-{found}"
        elif arg.startswith("-") and has_placeholder(arg):
            flag = "an option that holds a variable"
        elif arg.startswith("$") and has_placeholder(arg):
            flag = "an argument that is a variable"
        else:
            continue
        return (
            f"{flag} may run code. All arguments of {command} are screened, since there is no grammar that "
            "says where its own options end; a plugin can add one (moorage_launcher_grammars)"
        )
    return None


def _judge_npx(args: Sequence[str]) -> str | None:
    reading = npx.read(args)
    # What comes after the package is the server's own.
    region = args[: len(args) - max(0, len(reading.operands) - 1)]
    if any(has_placeholder(arg) for arg in region):
        return "args up to the package must be written out: a variable could hold an option"
    for given in reading.options:
        if f"--{given.name}" in NPX_PATHS:
            return f"{given.spelled} makes npx use what lies on the gateway's disk"
        if given.name == "package" and is_local_npm(given.value):
            return f"{given.spelled} names something on the gateway's disk; name a published package"
    if reading.operands:
        package_is_named = any(given.name == "package" for given in reading.options)
        if (reason := _operand("npx", reading.operands[0], is_local_npm, package_is_named)) is not None:
            return reason
    for given in reading.options:
        # The spelling counts, too: what an older npx ran, npm may read as the beginning of something else.
        if {_dashed(given.name), _dashed(given.spelled.lstrip("-"))} & NPX_EXEC:
            return f"{given.spelled} may run code"
    for spelled in reading.removed:
        if _dashed(spelled.lstrip("-")) in NPX_EXEC:
            return f"{spelled} may run code"
    return None if reading.operands else "args name no package, and without one npx runs a shell"


def _dashed(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"


def _judge(grammar: LauncherGrammar, reading: Reading) -> str | None:
    command = grammar.command
    for given in reading.options:
        if given.name in grammar.path_options:
            return f"{given.name} makes {command} use what lies on the gateway's disk"
        if command == "uvx" and (reason := _uvx_option(given.name, given.value)) is not None:
            return reason
    written = [*(given.name for given in reading.options), *reading.operands[:1]]
    if any(map(has_placeholder, written)):
        return "options and the first operand must be written out: a variable could hold an option"
    if command == "uvx" and reading.operands:
        package_is_named = any(given.name == "--from" for given in reading.options)
        if (reason := _operand("uvx", reading.operands[0], is_local_python, package_is_named)) is not None:
            return reason
    for given in reading.options:
        if given.name in grammar.exec_options:
            return f"{given.name} may run code"
    return None


def _uvx_option(name: str, value: str) -> str | None:
    if name in ("--python", "-p") and not is_python_version(value):
        return f"{name} may name a version only, not an interpreter on the gateway's disk"
    if name in _PYTHON_SPECS and any(is_local_python(one) for one in _listed(value)):
        return f"{name} names something on the gateway's disk; name a published package"
    if name in _PYTHON_INDEXES and not all(is_remote_index(one) for one in _listed(value, " ")):
        return f"{name} names something on the gateway's disk; only http and https are allowed"
    if has_placeholder(value):
        return f"the value of {name} must be written out"
    return None


def _listed(value: str, separator: str = ",") -> list[str]:
    """uv reads several requirements, or indexes, out of one value."""
    return [one for one in value.split(separator) if one.strip()]


def _operand(command: str, operand: str, is_local: Callable[[str], bool], named_package: bool) -> str | None:
    if is_local(operand):
        return "the package is something on the gateway's disk; name a published one"
    if is_interpreter(operand):
        return f"{command} would run an interpreter that is on this machine, with the arguments after it"
    if is_program_here(operand):
        if named_package:
            return f"{command} would run a program of this machine in place of the package's"
        return (
            f"{command} would run a program of this machine of that name; to mean the published package, "
            "give its version, as in NAME@latest"
        )
    return None
