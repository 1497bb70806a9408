"""Which stdio commands the API may start (LAUNCH-2 to LAUNCH-6, LAUNCH-9; C01, C02, C04, C05)."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.contract import LauncherGrammar, LauncherGrammars, LaunchRefused, LaunchRequest
from moorage.testing.context import gateway_context
from moorage_plugins.launch_policy.commands import CommandRules
from moorage_plugins.launch_policy.data import grammars
from moorage_plugins.launch_policy.settings import LaunchSettings, read

SETTINGS = LaunchSettings(commands=frozenset({"docker", "node", "python3"}))


def refusal(
    command: str | None,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    *,
    cwd: str | None = None,
    rules: CommandRules | None = None,
) -> str | None:
    """The message, or None where it may start."""
    request = LaunchRequest("files", "stdio", command=command, args=tuple(args), env=env or {}, cwd=cwd)
    try:
        (rules or CommandRules(SETTINGS, gateway_context(Path("unused")))).validate(request)
    except LaunchRefused as refused:
        return str(refused)
    return None


C01 = {
    "npx": [
        (["-c", "touch M"], "-c"),
        (["-c=touch M"], "-c"),
        (["--call=touch M"], "--call"),
        (["--call", "touch M"], "--call"),
        (["-yc", "touch M"], "-yc"),
        (["-call", "touch M"], "-call"),
        (["-call=touch M"], "-call"),
        (["-qc", "touch M"], "-qc"),
        (["--shell=/bin/touch", "pkg"], "--shell"),
        (["--script-shell", "touch", "pkg"], "--script-shell"),
        (["--node-options=--require=/tmp/x.js", "pkg"], "--node-options"),
        (["--node-arg=-e", "pkg"], "--node-arg"),
        (["-e=1", "pkg"], "-e"),
        (["--eval=1", "pkg"], "--eval"),
        (["--print", "1"], "--print"),
    ],
    "uvx": [
        (["--python=/tmp/x/python", "srv"], "--python"),
        (["-p", "/tmp/x/python", "srv"], "-p"),
        (["-p/tmp/x/python", "srv"], "-p"),
        (["--call=1", "srv"], "--call"),
        (["--eval", "1"], "--eval"),
    ],
    "python3": [
        (["-cimport os"], "-c"),
        (["-Ic", "pass"], "-c"),
        (["-c", "pass"], "-c"),
    ],
    "node": [
        (["-p", "1"], "-p"),
        (["-pe", "1"], "-p"),
        (["--eval=1"], "--eval"),
        (["-r", "/tmp/x.js", "srv.js"], "-r"),
        (["--print", "1"], "--print"),
    ],
}


@pytest.mark.req("LAUNCH-3", "LAUNCH-4", "LAUNCH-5")
@pytest.mark.parametrize(
    ("command", "args", "flag"),
    [(command, args, flag) for command, cases in C01.items() for args, flag in cases],
)
def test_exec_flags_are_refused_in_every_spelling(command: str, args: list[str], flag: str) -> None:
    """C01. The message names the flag and never the value."""
    said = refusal(command, args)
    assert said is not None
    assert flag in said
    for value in ("touch M", "/tmp/x", "import os"):
        assert value not in said


@pytest.mark.req("LAUNCH-4")
@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("npx", ["-y", "@scope/srv", "-c", "conf.json"]),
        ("npx", ["--", "@scope/srv"]),
        ("npx", ["--", "@scope/srv", "--call", "x"]),
        ("npx", ["-C"]),
        ("npx", ["--yes", "--package=@scope/srv", "srv-cli-of-scope", "--eval", "1"]),
        ("npx", ["-p", "@scope/srv@1.2.3", "srv-cli-of-scope"]),
        ("npx", ["--loglevel", "silent", "-y", "server-files@latest", "/data"]),
        ("npx", ["-y", "github:owner/repo"]),
        ("npx", ["-y", "https://example.com/server.tgz"]),
        ("npx", ["-y", "owner/repo#main"]),
        ("npx", ["-y", "alias@npm:@scope/srv@^1.0.0", "${TOKEN}"]),
        ("npx", ["-y", "server-files@~1.2", "$DIRECTORY"]),
        ("uvx", ["server-time"]),
        ("uvx", ["server-time@1.0", "-c", "x", "-p", "/path"]),
        ("uvx", ["-c", "constraints.txt", "server-time"]),
        ("uvx", ["--python", "3.12", "--from", "server-time>=1,<2", "srv-of-time"]),
        ("uvx", ["--from=git+https://example.com/x/y@v1", "srv-of-time", "--python=/x"]),
        ("uvx", ["--with", "httpx,rich", "-U", "server-time[cli]"]),
        ("uvx", ["--index-url", "https://example.com/simple", "server-time"]),
        ("uvx", ["--an-option-of-tomorrow", "server-time"]),
        ("docker", ["run", "-i", "--rm", "img"]),
        ("python3", ["-m", "my_server"]),
    ],
)
def test_what_is_no_exec_flag_passes(command: str, args: list[str]) -> None:
    """C04 (2), (3): what stands after the package is the server's own."""
    if args == ["-C"]:
        # Another letter than -c: npm's --prefix, refused for what it is.
        said = refusal(command, args)
        assert said is not None
        assert "-C" in said
        return
    assert refusal(command, args) is None


@pytest.mark.req("LAUNCH-4")
@pytest.mark.parametrize(
    "args",
    [
        ["--user-agent", "good-pkg", "--call", "touch M"],
        ["--unknown-option", "good-pkg", "-c", "touch M"],
        ["-p", "good-pkg", "-c", "touch M"],
        ["--package", "good-pkg", "--call=touch M"],
        ["--user-agent", "-c", "touch M"],
        ["--yes=true", "-c", "touch M"],
        ["--no-yes", "-c", "touch M"],
    ],
)
def test_the_value_of_an_option_is_not_the_package(args: list[str]) -> None:
    """C04 (4)."""
    said = refusal("npx", args)
    assert said is not None
    assert "run code" in said


@pytest.mark.req("LAUNCH-4")
def test_npx_without_a_package_would_run_a_shell() -> None:
    for args in ([], ["-y"], ["--package=@scope/srv"], ["-y", "--"], ["--loglevel", "silent"]):
        said = refusal("npx", args)
        assert said is not None
        assert "shell" in said


@pytest.mark.req("LAUNCH-5")
def test_docker_needs_a_grammar_which_a_plugin_can_bring() -> None:
    """C04 (1)."""
    args = ["run", "-i", "--rm", "-e", "API_TOKEN", "img"]
    said = refusal("docker", args)
    assert said is not None
    assert "screened" in said
    assert "moorage_launcher_grammars" in said
    docker = LauncherGrammar(
        command="docker",
        boolean_options=frozenset({"-i", "--rm"}),
        value_options=frozenset({"-e", "--env", "--entrypoint", "-v"}),
        exec_options=frozenset({"--entrypoint"}),
        path_options=frozenset({"-v"}),
        ends_at_first_operand=False,
    )

    class Contributed:
        def grammars(self) -> Mapping[str, LauncherGrammar]:
            return {one.command: one for one in (*grammars(), docker)}

    context = gateway_context(Path("unused"))
    context.provide(LauncherGrammars, Contributed())
    rules = CommandRules(SETTINGS, context)
    assert refusal("docker", args, rules=rules) is None
    said = refusal("docker", ["run", "--entrypoint=sh", "img"], rules=rules)
    assert said is not None
    assert "--entrypoint" in said
    assert refusal("docker", ["run", "-iv", "/:/host", "img"], rules=rules) is not None


@pytest.mark.req("LAUNCH-2")
@pytest.mark.parametrize(
    "command",
    [
        "/tmp/npx",
        "./npx",
        "npx ",
        " npx",
        "npx\n",
        "NPX",
        "npx.cmd",
        "npx -c id",
        "",
        "env",
        "\u200bnpx",
        "sh",
        "n\0px",
        "npx;id",
        "$(id)",
        "${X:-sh}",
        "..",
        "bash",
        None,
    ],
)
def test_only_bare_names_of_the_allowlist_may_start(command: str | None) -> None:
    """C05."""
    said = refusal(command, ["-y", "server-files"])
    assert said is not None
    assert "command" in said


@pytest.mark.req("LAUNCH-2")
def test_the_operator_extends_the_allowlist() -> None:
    settings = read({"commands": ["deno"]}, {"MOORAGE_STDIO_COMMAND_ALLOWLIST": "docker, bun"})
    assert settings.allowlist == {"npx", "uvx", "deno", "docker", "bun"}
    for options, env in (
        ({"commands": ["/bin/sh"]}, {}),
        ({}, {"MOORAGE_STDIO_COMMAND_ALLOWLIST": "a;b"}),
        ({"comands": []}, {}),
    ):
        with pytest.raises(Exception, match=r"launch_policy|ALLOWLIST"):
            read(options, env)


REFUSED_NAMES = [
    "npm_config_call",
    "NPM_CONFIG_CALL",
    "Npm_Config_Call",
    "npm_config_userconfig",
    "npm_config_cache",
    "npm_config_node_options",
    "npm_config_script_shell",
    "npm_config_registry",
    "npm_config_script-shell",
    "UV_INDEX_URL",
    "UV_PYTHON",
    "PIP_INDEX_URL",
    "PYTHONUSERBASE",
    "pythonpath",
    "BASH_ENV",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "LD_AUDIT",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "PATH",
    "Path",
    "GIT_SSH_COMMAND",
    "HOME",
    "PREFIX",
    "BASH_FUNC_node%%",
    "A=B",
]
ODD_NAMES = [" PYTHONPATH", "PYTHONPATH\t", "\u200bLD_PRELOAD", " path ", "", " ", "N\0"]
PASSING_NAMES = [
    "API_KEY",
    "NODE_ENV",
    "NODE_PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "HTTPS_PROXY",
    "TZ",
    "npm_config_loglevel",
    "UV_OFFLINE",
    "PIP_NO_INPUT",
    "MY_PATH",
    "PATHS",
    "ENVIRONMENT",
]


@pytest.mark.req("LAUNCH-6")
@pytest.mark.parametrize("name", REFUSED_NAMES + ODD_NAMES)
def test_names_that_configure_a_launcher_are_refused_for_every_command(name: str) -> None:
    """C02. The message names the variable and never its value."""
    for command, package in (("npx", "server-files"), ("uvx", "server-time"), ("docker", "img")):
        said = refusal(command, [package], {"API_KEY": "k", name: "the-value-of-it"})
        assert said is not None
        assert repr(name[:80]) in said
        assert "the-value-of-it" not in said


@pytest.mark.req("LAUNCH-6")
def test_ordinary_names_and_search_paths_pass() -> None:
    """C02."""
    assert refusal("npx", ["-y", "server-files"], dict.fromkeys(PASSING_NAMES, "x")) is None


@pytest.mark.req("LAUNCH-9")
@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("npx", ["./server"]),
        ("npx", ["-y", "/opt/server"]),
        ("npx", ["-y", "file:../server"]),
        ("npx", ["-y", "."]),
        ("npx", ["-y", "~/server"]),
        ("npx", ["-y", "server.tgz"]),
        ("npx", ["-y", "x@file:/tmp/x"]),
        ("npx", ["-y", "x@/tmp/x"]),
        ("npx", ["-y", "x@npm:y@./z"]),
        ("npx", ["-y", "git+file:///tmp/x"]),
        ("npx", ["-p", "./x", "srv-of-x"]),
        ("npx", ["--package= /tmp/x", "srv-of-x"]),
        ("npx", ["--prefix", "/tmp/x", "srv"]),
        ("npx", ["-C", "/tmp/x", "srv"]),
        ("npx", ["--userconfig=/tmp/rc", "srv"]),
        ("npx", ["--globalconfig=/tmp/rc", "srv"]),
        ("npx", ["--cache", "/tmp/x", "srv"]),
        ("npx", ["--git=/tmp/x", "git+https://example.com/x"]),
        ("npx", ["-w", "x", "srv"]),
        ("npx", ["--ws", "srv"]),
        ("npx", ["-y", "node", "-e", "1"]),
        ("npx", ["-y", "npm@latest", "exec", "-c", "x"]),
        ("npx", ["-y", "sh", "-c", "x"]),
        ("npx", ["-p", "@scope/x", "sh", "-c", "x"]),
        ("npx", ["${X:--c}", "touch M"]),
        ("npx", ["-y", "${PACKAGE}"]),
        ("uvx", ["./server"]),
        ("uvx", ["/opt/server"]),
        ("uvx", ["server.whl"]),
        ("uvx", ["--from", "./x", "srv"]),
        ("uvx", ["--from", "x @ file:///tmp/x", "srv"]),
        ("uvx", ["--from=git+file:///tmp/x", "srv"]),
        ("uvx", ["--with", "rich,./x", "srv"]),
        ("uvx", ["-w./x", "srv"]),
        ("uvx", ["--with-editable", "./x", "srv"]),
        ("uvx", ["--with-requirements=r.txt", "srv"]),
        ("uvx", ["--env-file", ".env", "srv"]),
        ("uvx", ["--directory=/tmp", "srv"]),
        ("uvx", ["--project", "/tmp", "srv"]),
        ("uvx", ["--config-file", "uv.toml", "srv"]),
        ("uvx", ["--cache-dir", "/tmp", "srv"]),
        ("uvx", ["--find-links", "/tmp/wheels", "srv"]),
        ("uvx", ["--index", "file:///tmp/simple", "srv"]),
        ("uvx", ["--index", "https://example.com /tmp/simple", "srv"]),
        ("uvx", ["python", "-c", "1"]),
        ("uvx", ["python3.12@latest", "-c", "1"]),
        ("uvx", ["python@3.12", "-c", "1"]),
        ("uvx", ["sh", "-c", "x"]),
        ("uvx", ["--from", "x", "sh", "-c", "x"]),
        ("uvx", ["--an-option-of-tomorrow", "x", "./server"]),
        ("uvx", ["--python", "bash", "srv"]),
        ("uvx", ["${X:---from}", "./x", "srv"]),
    ],
)
def test_nothing_that_lies_on_the_disk_is_run(command: str, args: list[str]) -> None:
    said = refusal(command, args)
    assert said is not None
    assert "/tmp" not in said


@pytest.mark.req("LAUNCH-9")
def test_a_folder_of_the_gateway_is_no_place_to_start_a_package_launcher_in() -> None:
    assert refusal("npx", ["-y", "server-files"], cwd="/tmp/x") is not None
    assert refusal("uvx", ["server-time"], cwd="/tmp/x") is not None
    assert refusal("docker", ["run", "img"], cwd="/tmp/x") is None


@pytest.mark.req("LAUNCH-9")
def test_a_version_makes_a_package_of_what_is_also_a_program_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "server-files"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert refusal("npx", ["-y", "server-files"]) is None
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    said = refusal("npx", ["-y", "server-files"])
    assert said is not None
    assert "NAME@latest" in said
    assert refusal("npx", ["-y", "server-files@latest"]) is None


TOKENS = st.lists(
    st.one_of(
        st.sampled_from(
            ["-c", "--call", "-y", "-p", "--package", "--", "-", "npx", "$X", "${X:--c}", "pkg@1", "="]
        ),
        st.text(max_size=12),
    ),
    max_size=8,
)


@pytest.mark.req("LAUNCH-1", "LAUNCH-4")
@given(command=st.sampled_from(["npx", "uvx", "docker", "node"]), args=TOKENS)
def test_a_verdict_is_a_refusal_or_nothing_and_stays_the_same(command: str, args: list[str]) -> None:
    assert refusal(command, args) == refusal(command, args)
