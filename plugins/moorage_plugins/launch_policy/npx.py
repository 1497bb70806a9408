"""How npx reads its arguments: first npx's own pass, then npm's option parser (LAUNCH-4).

Both are followed exactly, since a reading that differs by one token takes a value for the package.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from moorage_plugins.launch_policy.data import NpmTables, npm_tables

_END = re.compile(r"-{2,}")
_ONE_OR_TWO_DASHES = re.compile(r"-{1,2}[^-]")
_MOST_TOKENS = 4_096


class TooLong(ValueError):
    """More arguments than any server needs."""


@dataclass(slots=True)
class Reading:
    """What a launcher makes of its arguments.

    ``options``: option names (without dashes for npm) and their values in order. ``flags``: every option as
    it was spelled. ``operands``: what is no option; the first names what is run.
    """

    options: list[tuple[str, str]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)


def read(args: Sequence[str], tables: NpmTables | None = None) -> Reading:
    """What ``npx ARGS`` comes to. Raises `TooLong`."""
    if len(args) > _MOST_TOKENS:
        raise TooLong
    tables = tables or npm_tables()
    reading = Reading()
    _parse(_first_pass(list(args), tables, reading), tables, reading)
    return reading


def _first_pass(args: list[str], tables: NpmTables, reading: Reading) -> list[str]:
    """npx: rewrites some options, cuts some out, and puts ``--`` before the package."""
    done: list[str] = []
    rest = args[::-1]
    while rest:
        arg = rest.pop()
        if arg == "--":
            return [*done, arg, *rest[::-1]]
        if not arg.startswith("-"):
            return [*done, "--", arg, *rest[::-1]]
        key, equals, value = arg.lstrip("-").partition("=")
        reading.flags.append(arg.partition("=")[0])
        if key == "p":
            arg = f"--package{equals}{value}"
        elif key == "shell":
            arg = f"--script-shell{equals}{value}"
        elif key == "no-install":
            arg = "--yes=false"
        elif key in tables.shorthands and key not in tables.removed:
            rest.extend([*tables.shorthands[key], *([value] if equals else [])][::-1])
            continue
        if key not in tables.removed:
            done.append(arg)
        takes = not equals and key not in tables.switches
        # After a removed option npx looks one place further than it means to; so do we.
        following = rest[-1] if rest else None
        if takes and rest and (key in tables.values or not (following or "").startswith("-")):
            skipped = rest.pop()
            if key not in tables.removed:
                done.append(skipped)
    return done


def _parse(args: list[str], tables: NpmTables, reading: Reading) -> None:
    """npm's parser (nopt)."""
    rest = args[::-1]
    seen: set[str] = set()
    steps = 0
    while rest:
        steps += 1
        if steps > 2 * _MOST_TOKENS:
            raise TooLong
        arg = rest.pop()
        if _END.fullmatch(arg):
            reading.operands.extend(rest[::-1])
            return
        if not arg.startswith("-") or len(arg) == 1:
            reading.operands.append(arg)
            continue
        reading.flags.append(arg.partition("=")[0])
        arg, equals, value = arg.partition("=")
        if equals:
            rest.append(value)
        longer = _expanded(arg, tables)
        if longer:
            rest.extend(longer[::-1])
            if longer[0] != arg:
                continue
            rest.pop()
        name, negated = arg.lstrip("-"), None
        while name[:3].lower() == "no-":
            name, negated = name[3:], not negated
        name = _abbreviations(tuple(tables.types)).get(name, name)
        types = tables.types.get(name)
        value = _value(types, negated, bool(equals), rest, repeated=types is None and name in seen)
        seen.add(name)
        reading.options.append((name, value))


def _value(
    types: tuple[str, ...] | None, negated: bool | None, equals: bool, rest: list[str], *, repeated: bool
) -> str:
    """The value of an option, taken from ``rest`` where the parser takes it from there."""
    following = rest[-1] if rest else None
    several = types is not None and len(types) > 1
    if (
        negated is not None
        or (types is not None and "Boolean" in types)
        or (types is None and not equals)
        or (following == "false" and types is not None and "null" in types)
    ):
        if following in ("true", "false"):
            return rest.pop()
        if several and following and types is not None and _fits(following, types):
            return rest.pop()
        return "false" if negated else "true"
    if types == ("String",):
        if following is None:
            return ""
        if _ONE_OR_TWO_DASHES.match(following):
            return ""
    if following is not None and _END.fullmatch(following):
        return "true"
    return rest.pop() if rest else "true"


def _fits(following: str, types: tuple[str, ...]) -> bool:
    """Whether an option that can do without a value takes this one."""
    if f'"{following}"' in types or (following == "null" and "null" in types):
        return True
    if "Number" in types and not re.match(r"-{2,}[^-]", following) and _is_number(following):
        return True
    return "String" in types and not re.match(r"-[^-]", following)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text.strip()
    return True


def _expanded(arg: str, tables: NpmTables) -> list[str] | None:
    """The options that a short one, or a cluster of them, stands for."""
    name = arg.lstrip("-")
    if name in tables.types:
        return None
    if name in tables.shorthands:
        return list(tables.shorthands[name])
    if name and all(letter in tables.shorthands for letter in name):
        return [option for letter in name for option in tables.shorthands[letter]]
    if name in _abbreviations(tuple(tables.types)):
        return None
    found = _abbreviations(tuple(tables.shorthands)).get(name)
    return list(tables.shorthands[found]) if found else None


@cache
def _abbreviations(names: tuple[str, ...]) -> dict[str, str]:
    """Every unambiguous beginning of a name, and the whole names."""
    beginnings: dict[str, set[str]] = {}
    for name in names:
        for length in range(1, len(name)):
            beginnings.setdefault(name[:length], set()).add(name)
    unique = {short: next(iter(those)) for short, those in beginnings.items() if len(those) == 1}
    return {**unique, **{name: name for name in names}}


def values_of(reading: Reading, names: Iterable[str]) -> list[str]:
    """The values that these options were given."""
    wanted = frozenset(names)
    return [value for name, value in reading.options if name in wanted]
