"""The option region of a launcher whose grammar is data (LAUNCH-4, LAUNCH-5)."""

from collections.abc import Iterator, Sequence

from moorage.contract import LauncherGrammar
from moorage_plugins.launch_policy.npx import Given, Reading, TooLong

_MOST_UNKNOWN = 6


def readings(grammar: LauncherGrammar, args: Sequence[str]) -> Iterator[Reading]:
    """Every way to read ``args``: an option that the grammar does not know may or may not take the next
    argument as its value, whatever the grammar supposes, so both are looked at.

    Raises `TooLong` where there are more unknown options than anybody needs.
    """
    yield from _read(grammar, args, 0, Reading(), _MOST_UNKNOWN)


def _read(
    grammar: LauncherGrammar, args: Sequence[str], at: int, reading: Reading, left: int
) -> Iterator[Reading]:
    while at < len(args):
        argument = args[at]
        at += 1
        if argument == "--":
            reading.operands.extend(args[at:])
            break
        if not argument.startswith("-") or len(argument) == 1:
            reading.operands.append(argument)
            if grammar.ends_at_first_operand:
                reading.operands.extend(args[at:])
                break
            continue
        for name, value, known in _options(grammar, argument):
            if value is not None or name in grammar.boolean_options:
                reading.options.append(Given(name, value or "", name))
            elif known:
                reading.options.append(Given(name, args[at] if at < len(args) else "", name))
                at += 1
            else:
                if not left:
                    raise TooLong
                left -= 1
                other = Reading(options=[*reading.options], operands=[*reading.operands])
                other.options.append(Given(name, args[at] if at < len(args) else "", name))
                yield from _read(grammar, args, at + 1, other, left)
                reading.options.append(Given(name, "", name))
    yield reading


def _options(grammar: LauncherGrammar, argument: str) -> Iterator[tuple[str, str | None, bool]]:
    """The options in one argument: name, the value that the argument holds, and whether they are known."""
    known = grammar.boolean_options | grammar.value_options
    name, equals, value = argument.partition("=")
    if argument.startswith("--"):
        yield name, value if equals else None, name in known
        return
    if grammar.single_dash_long and len(name) > 2 and f"-{name}" in known:
        yield f"-{name}", value if equals else None, True
        return
    for place, letter in enumerate(argument[1:], 1):
        option, rest = f"-{letter}", argument[place + 1 :]
        if option in grammar.value_options:
            yield option, rest.removeprefix("=") if rest else None, True
            return
        if option not in grammar.boolean_options:
            yield option, rest.removeprefix("=") if rest else None, False
            return
        yield option, "", True
