"""Write ``docs/reference/contract-<version>.json``: all that plugins may rely on (PLUG-6).

    uv run python tools/contract_record.py

`incompatible` says what of a newer record would break plugins that were written against an older one.
"""

import dataclasses
import enum
import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import moorage.contract as contract

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
Record = Mapping[str, Mapping[str, Any]]


def path() -> Path:
    """Where the record of this version lies: one a minor, before 1.0."""
    return FOLDER / f"contract-{'.'.join(contract.API_VERSION.split('.')[:2])}.json"


def record() -> dict[str, dict[str, Any]]:
    """Every public name with its fields, methods, members or signature."""
    return {name: _entry(getattr(contract, name)) for name in sorted(contract.__all__)}


def _entry(thing: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(thing):
        fields = {field.name: _field(field) for field in dataclasses.fields(thing)}
        return {"kind": "dataclass", "fields": fields}
    if isinstance(thing, type) and getattr(thing, "_is_protocol", False):
        return {"kind": "protocol", "methods": _methods(thing)}
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        return {"kind": "enum", "members": {member.name: member.value for member in thing}}
    if isinstance(thing, type):
        return {
            "kind": "class",
            "bases": [base.__name__ for base in thing.__mro__[1:-1]],
            "methods": _methods(thing),
        }
    if inspect.isfunction(thing):
        return {"kind": "function", "signature": _signature(thing)}
    if isinstance(thing, str | int | float):
        return {"kind": "constant", "value": thing}
    return {"kind": "other"}


def _field(field: Any) -> dict[str, Any]:
    kept = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    return {"type": str(field.type), "default": kept}


def _methods(kind: type[Any]) -> dict[str, str]:
    return {
        name: _signature(method)
        for name, method in sorted(vars(kind).items())
        if inspect.isfunction(method) and (not name.startswith("_") or name == "__call__")
    }


def _signature(function: Any) -> str:
    prefix = "async " if inspect.iscoroutinefunction(function) else ""
    text = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(function)))
    return prefix + re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)


def incompatible(old: Record, new: Record) -> list[str]:
    """What breaks: a name, field, method or member that is gone or another, and what is new and required."""
    broken = []
    for name, before in old.items():
        after = new.get(name)
        if after is None:
            broken.append(f"{name} is gone")
        elif after["kind"] != before["kind"]:
            broken.append(f"{name} was a {before['kind']} and is a {after['kind']}")
        elif before["kind"] == "dataclass":
            broken += _fields_broken(name, before["fields"], after["fields"])
        elif before["kind"] in ("protocol", "class"):
            broken += _methods_broken(name, before, after)
        elif before["kind"] == "enum":
            gone = before["members"].items() - after["members"].items()
            broken += [f"{name}.{member} is gone or has another value" for member, _ in sorted(gone)]
        elif before["kind"] == "function" and before != after:
            broken.append(f"{name} has another signature")
    return broken


def _fields_broken(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    broken = []
    for field, was in before.items():
        if field not in after:
            broken.append(f"{name}.{field} is gone")
        elif after[field]["type"] != was["type"]:
            broken.append(f"{name}.{field} has another type")
        elif was["default"] and not after[field]["default"]:
            broken.append(f"{name}.{field} has no default any more")
    broken += [
        f"{name}.{field} is new and has no default"
        for field, now in after.items()
        if field not in before and not now["default"]
    ]
    kept = [field for field in after if field in before]
    if kept != list(before)[: len(kept)] or list(after)[: len(kept)] != kept:
        broken.append(f"the fields of {name} have another order")
    return broken


def _methods_broken(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    broken = []
    for method, signature in before["methods"].items():
        if method not in after["methods"]:
            broken.append(f"{name}.{method}() is gone")
        elif after["methods"][method] != signature:
            broken.append(f"{name}.{method}() has another signature")
    if before["kind"] == "protocol":
        # A plugin that implements the protocol would lack it: new abilities come as protocols of their own.
        broken += [
            f"{name}.{method}() is new" for method in after["methods"] if method not in before["methods"]
        ]
    return broken


def main() -> None:
    path().write_text(json.dumps(record(), indent=1) + "\n")


if __name__ == "__main__":
    main()
