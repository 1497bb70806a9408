"""``moorage plugins new``: a plugin project from the template (DX-1)."""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from moorage.cli.exits import OK, UsageError
from moorage.cli.output import print_json

KINDS = {
    "driver": "long-running remote work as durable tasks",
    "interceptor": "credentials on the way to a server",
    "validator": "what a server registered over HTTP may start",
    "sink": "where a task's attention events go",
    "assistant": "what answers the runs of a thread",
}
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="Lower-case letters, digits and dashes; asked for if absent."
    )
    parser.add_argument("--kind", choices=sorted(KINDS), help="What it contributes; asked for if absent.")
    parser.add_argument("--author", help="Who wrote it.")
    parser.add_argument(
        "--output", metavar="DIR", type=Path, default=Path(), help="Where the project goes; here by default."
    )


def create(options: argparse.Namespace) -> int:
    """Write the project; returns the exit status. Nothing that exists is touched."""
    name = _checked(options.name or _ask("Name of the plugin"))
    kind = options.kind or _ask_kind()
    target = options.output / f"moorage-{name}"
    if target.exists():
        raise UsageError(f"{target} exists already: choose another name or --output")
    if not options.output.is_dir():
        raise UsageError(f"{options.output} is no folder")
    fields = {"name": name, "kind": kind, **({"author": options.author} if options.author else {})}
    _bake(fields, options.output)
    if options.json:
        print_json({"project": str(target), "name": name, "kind": kind})
    else:
        print(f"{target} holds a {kind} that works. Try it:\n")
        print(f"  cd {target}\n  uv run pytest\n  uv run moorage plugins show {name}")
    return OK


def template() -> Path:
    """The template: shipped with the distribution, or in the repository. Raises `UsageError`."""
    import moorage

    package = Path(moorage.__file__).parent
    for place in (package / "plugin_template", package.parents[1] / "plugin_template"):
        if (place / "cookiecutter.json").is_file():
            return place
    raise UsageError("the plugin template is missing from this installation of moorage-core")


def _bake(fields: dict[str, str], output: Path) -> None:
    try:
        from cookiecutter.exceptions import CookiecutterException  # type: ignore[import-untyped]
        from cookiecutter.main import cookiecutter  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(
            "cookiecutter is not installed: install moorage, or moorage-core[template]"
        ) from None
    with tempfile.TemporaryDirectory(prefix="moorage-new-") as folder:
        # Else cookiecutter would leave what was answered in the home.
        config = Path(folder) / "config.json"
        config.write_text(json.dumps({"replay_dir": folder, "cookiecutters_dir": folder}))
        try:
            cookiecutter(
                str(template()),
                no_input=True,
                extra_context=fields,
                output_dir=str(output),
                config_file=str(config),
            )
        except CookiecutterException as error:
            raise UsageError(f"the project could not be written: {error}") from None


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a plugin: it has lower-case letters, digits and single dashes, and "
            "begins with a letter"
        )
    return name


def _ask(question: str) -> str:
    if not sys.stdin.isatty():
        raise UsageError(f"{question}: give it as an argument; `moorage plugins new --help` says how")
    return input(f"{question}: ").strip()


def _ask_kind() -> str:
    if not sys.stdin.isatty():
        raise UsageError(f"give --kind, one of {', '.join(sorted(KINDS))}")
    for number, (name, about) in enumerate(KINDS.items(), 1):
        print(f"  {number}  {name}: {about}")
    answer = _ask("What it contributes")
    kind = {str(number): name for number, name in enumerate(KINDS, 1)}.get(answer, answer)
    if kind not in KINDS:
        raise UsageError(f"{answer!r} is none of {', '.join(KINDS)}")
    return kind
