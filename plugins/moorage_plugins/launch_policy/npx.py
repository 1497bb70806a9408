"""How npx reads its arguments: first npx's own pass, then npm's option parser (LAUNCH-4).

Both are followed exactly, since a reading that differs by one token takes a value for the package.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from moorage_plugins.launch_policy.data import NpmTables, npm_tables

_END = re.compile(r"-{2,}")
_ONE_OR_TWO_DASHES = re.compile(r"-{1,2}[^-]")
_MOST_ARGUMENTS = 4_096
_REWRITTEN = {"p": "--package", "shell": "--script-shell"}


class TooLong(ValueError):
    """More arguments than any server needs."""


@dataclass(frozen=True, slots=True)
class Given:
    """An option that was given: its name (npm's without dashes), its value, and how it was spelled."""

    name: str
    value: str
    spelled: str


@dataclass(slots=True)
class Reading:
    """What a launcher makes of its arguments. The first operand names what is run."""

    options: list[Given] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """Options that npx cuts out without effect, as they were spelled."""
    operands: list[str] = field(default_factory=list)


def read(args: Sequence[str], tables: NpmTables | None = None) -> Reading:
    """What ``npx ARGS`` comes to. Raises `TooLong`."""
    if len(args) > _MOST_ARGUMENTS:
        raise TooLong
    tables = tables or npm_tables()
    reading = Reading()
    _parse(_first_pass([_Word(arg) for arg in args], tables, reading), tables, reading)
    return reading


class _Word(str):
    """An argument, which knows the option that it was expanded from."""

    __slots__ = ("spelled",)

    def __new__(cls, text: str, spelled: str | None = None) -> "_Word":
        word = super().__new__(cls, text)
        word.spelled = text.partition("=")[0] if spelled is None else spelled
        return word

    spelled: str


def _first_pass(args: list[_Word], tables: NpmTables, reading: Reading) -> list[_Word]:
    """npx: rewrites some options, cuts some out, and puts ``--`` before the package."""
    done: list[_Word] = []
    rest = args[::-1]
    while rest:
        arg = rest.pop()
        if arg == "--":
            return [*done, arg, *rest[::-1]]
        if not arg.startswith("-"):
            return [*done, _Word("--"), arg, *rest[::-1]]
        key, equals, value = arg.lstrip("-").partition("=")
        if key in _REWRITTEN:
            arg = _Word(f"{_REWRITTEN[key]}{equals}{value}", arg.spelled)
        elif key == "no-install":
            arg = _Word("--yes=false", arg.spelled)
        elif key in tables.shorthands and key not in tables.removed:
            longer = [*tables.shorthands[key], *([value] if equals else [])]
            rest.extend(_Word(one, arg.spelled) for one in reversed(longer))
            continue
        cut = key in tables.removed
        if cut:
            reading.removed.append(arg.spelled)
        else:
            done.append(arg)
        takes = not equals and key not in tables.switches
        if takes and rest and (key in tables.values or not rest[-1].startswith("-")):
            skipped = rest.pop()
            if not cut:
                done.append(skipped)
    return done


def _parse(args: list[_Word], tables: NpmTables, reading: Reading) -> None:
    """npm's parser (nopt)."""
    rest = args[::-1]
    for _ in range(4 * _MOST_ARGUMENTS):
        if not rest:
            return
        arg = rest.pop()
        if _END.fullmatch(arg):
            reading.operands.extend(map(str, rest[::-1]))
            return
        if not arg.startswith("-") or len(arg) == 1:
            reading.operands.append(str(arg))
            continue
        flag, equals, value = arg.partition("=")
        if equals:
            rest.append(_Word(value))
        longer = _expanded(flag, tables)
        if longer and longer[0] != flag:
            rest.extend(_Word(one, arg.spelled) for one in reversed(longer))
            continue
        if longer:
            rest.extend(_Word(one, arg.spelled) for one in reversed(longer[1:]))
        name, negated = flag.lstrip("-"), None
        while name[:3].lower() == "no-":
            name, negated = name[3:], not negated
        name = _abbreviations(tuple(tables.types)).get(name, name)
        types = tables.types.get(name)
        reading.options.append(Given(name, _value(types, negated, bool(equals), rest), arg.spelled))
    raise TooLong


def _value(types: tuple[str, ...] | None, negated: bool | None, equals: bool, rest: list[_Word]) -> str:
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
            return str(rest.pop())
        if several and following and types is not None and _fits(following, types):
            return str(rest.pop())
        return "false" if negated else "true"
    if types == ("String",):
        if following is None:
            return ""
        if _ONE_OR_TWO_DASHES.match(following):
            return ""
    if following is not None and _END.fullmatch(following):
        return "true"
    return str(rest.pop()) if rest else "true"


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
