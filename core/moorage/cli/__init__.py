"""The command line (OPS-1). Importing it costs nothing; a command is loaded when it runs (PLUG-8)."""

from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """The console script. ``argv`` without the program's name; the process's own, unless given."""
    import sys

    from moorage.cli.front import run

    sys.exit(run(sys.argv[1:] if argv is None else list(argv)))
