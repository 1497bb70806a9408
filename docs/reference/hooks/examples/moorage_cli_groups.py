"""A command ``moorage hello``. Announce it for ``--help`` in ``pyproject.toml``, too::

[project.entry-points."moorage.cli"]
hello = "my_package.plugin"
"""

import sys
from collections.abc import Iterable
from typing import Any

from moorage.contract import CliGroup, hookimpl


def load() -> Any:
    import typer

    app = typer.Typer(add_completion=False)

    @app.command()
    def hello(name: str = "world") -> None:
        """Greet."""
        print(f"hello {name}")

    return app


@hookimpl
def moorage_cli_groups() -> Iterable[CliGroup]:
    return (CliGroup("hello", "Greet.", load),)


if __name__ == "__main__":
    from moorage.testing import host_with

    (one,) = host_with(sys.modules[__name__]).cli_groups()
    one.spec.load()(["--name", "you"], standalone_mode=False)
