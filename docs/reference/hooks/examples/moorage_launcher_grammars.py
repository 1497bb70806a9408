"""Where the options of ``bunx`` end, and which of them run code."""

import sys
from collections.abc import Iterable

from moorage.contract import LauncherGrammar, hookimpl


@hookimpl
def moorage_launcher_grammars() -> Iterable[LauncherGrammar]:
    return (
        LauncherGrammar(
            command="bunx",
            boolean_options=frozenset({"--bun", "--verbose", "--silent"}),
            value_options=frozenset({"-p", "--package"}),
            exec_options=frozenset(),
        ),
    )


if __name__ == "__main__":
    from moorage.testing import host_with

    (one,) = host_with(sys.modules[__name__]).grammars()
    print(f"{one.spec.command}: {', '.join(sorted(one.spec.value_options))} take a value")
