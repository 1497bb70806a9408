"""Puts masked secrets back into a submitted configuration (ADMIN-2)."""

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from moorage.config.destinations import block_moved, moved
from moorage.config.document import DEPTH_LIMIT, JsonPath, dotted
from moorage.config.entries import TIMEOUT_KEYS
from moorage.config.errors import ConfigRejected
from moorage.config.rules import Rule, server_rule
from moorage.config.secrecy import MASK
from moorage.config.sections import SectionSet
from moorage.config.segments import Segments, shown
from moorage.config.showing import secrets_in, show
from moorage.contract import ConfigError, ConfigFault, ConfigSection


class _Missing(Enum):
    """Stands for a value that is not there, which null is not. An enum member survives a deep copy."""

    MISSING = "missing"


MISSING = _Missing.MISSING


def merge(submitted: Mapping[str, Any], stored: Mapping[str, Any], sections: SectionSet) -> dict[str, Any]:
    """The file's new content: the submitted servers with their masked secrets restored.

    Servers that are not submitted are removed. Of a server that is, what the object leaves out stays as
    stored, and null removes it. Everything beside ``mcpServers`` stays as stored (ADMIN-7). Neither
    argument is changed. Raises `ConfigRejected` with every place where the mask stands for nothing, or for
    a secret that would go somewhere else.
    """
    if not isinstance(submitted, Mapping):
        raise ConfigRejected([ConfigFault(where="the body", message="must be an object with `mcpServers`")])
    if _deeper_than(submitted, DEPTH_LIMIT):
        message = f"values are nested deeper than {DEPTH_LIMIT} levels"
        raise ConfigRejected([ConfigFault(where="mcpServers", message=message)])
    faults: list[ConfigFault] = []
    for key in submitted:
        if key != "mcpServers" and not same(submitted[key], stored.get(key, MISSING)):
            message = "cannot be changed over HTTP: only `mcpServers` can; edit the file"
            faults.append(ConfigFault(where=key, message=message))
    servers = submitted.get("mcpServers")
    if not isinstance(servers, Mapping):
        faults.append(ConfigFault(where="mcpServers", message="must be an object by server name"))
        raise ConfigRejected(faults)
    old = stored.get("mcpServers") or {}
    merged: dict[str, Any] = {}
    rule = server_rule(sections)
    for name in [*(n for n in old if n in servers), *(n for n in servers if n not in old)]:
        merger = _ServerMerger(name, rule)
        merged[name] = merger.merge(servers[name], old.get(name, MISSING))
        faults.extend(merger.faults)
    if faults:
        raise ConfigRejected(faults)
    result = copy.deepcopy(dict(stored))
    if merged or "mcpServers" in stored:
        result["mcpServers"] = merged
    return result


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: true is not 1, the order of keys means nothing, NaN equals itself."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
        case bool(), _:
            return one is other
        case _, bool():
            return False
        case float(), float():
            return one == other or (one != one and other != other)
        case _:
            return bool(one == other)


class _ServerMerger:
    def __init__(self, name: str, rule: Rule) -> None:
        self._root: JsonPath = ("mcpServers", name)
        self._rule = rule
        self.faults: list[ConfigFault] = []

    def merge(self, submitted: Any, stored: Any) -> Any:
        if not isinstance(submitted, dict):
            return self._value(submitted, stored, self._rule, ())
        old = stored if isinstance(stored, dict) else {}
        result: dict[str, Any] = {}
        for key in [*old, *(key for key in submitted if key not in old)]:
            if key not in submitted:
                result[key] = copy.deepcopy(old[key])
            elif submitted[key] is not None or key in TIMEOUT_KEYS or old.get(key, MISSING) is None:
                result[key] = self._value(
                    submitted[key], old.get(key, MISSING), self._rule.child(key), (key,)
                )
        if stored is not MISSING:
            self._refuse_moved_secrets(submitted, stored, result)
        self._refuse_stored_mask(result)
        return result

    def _fault(self, path: JsonPath, message: str) -> None:
        fault = ConfigFault(where=dotted((*self._root, *path)), message=message, server=str(self._root[1]))
        if all(known.where != fault.where for known in self.faults):
            self.faults.append(fault)

    # Values

    def _value(self, submitted: Any, stored: Any, rule: Rule, path: JsonPath) -> Any:
        if stored is not MISSING and same(submitted, show(stored, rule)):
            return copy.deepcopy(stored)
        section = rule.section
        match submitted:
            case dict():
                old = stored if isinstance(stored, dict) else {}
                merged = {
                    key: item
                    for key, value in submitted.items()
                    if (item := self._value(value, old.get(key, MISSING), rule.child(key), (*path, key)))
                    is not MISSING
                }
                merged |= self._left_out_nulls(submitted, old, rule)
                result: Any = merged
            case list():
                result = self._list(submitted, stored if isinstance(stored, list) else [], rule, path)
            case str():
                result = self._text(submitted, stored, rule, path)
            case None if rule.as_null:
                # A secret that was shown as null. Without one that is stored there is nothing to keep.
                return copy.deepcopy(stored)
            case _:
                result = submitted
        if section is not None and section.merge is not None:
            return self._section_merge(section, result, stored, path)
        return result

    def _left_out_nulls(
        self, submitted: Mapping[str, Any], old: Mapping[str, Any], rule: Rule
    ) -> dict[str, Any]:
        """Clients leave out what is null: such a secret is kept, like one that is sent as null."""
        return {
            key: copy.deepcopy(value)
            for key, value in old.items()
            if key not in submitted and rule.child(key).as_null and show(value, rule.child(key)) is None
        }

    def _text(self, submitted: str, stored: Any, rule: Rule, path: JsonPath) -> Any:
        if rule.as_null and not submitted:
            return MISSING  # an empty string clears
        if MASK not in submitted or same(submitted, stored):
            return submitted
        if rule.as_null and submitted == MASK and stored is not MISSING:
            return copy.deepcopy(stored)
        restored = None
        if isinstance(stored, str):
            restored = _restore(rule.text(submitted), _labelled([rule.text(stored)]))
        if restored is None:
            self._no_stored_value(path)
            return submitted
        return restored

    def _list(self, submitted: list[Any], stored: list[Any], rule: Rule, path: JsonPath) -> list[Any]:
        texts = rule.texts(submitted)
        old_texts = rule.texts(stored)
        secrets = _unambiguous(_labelled(old_texts), _labelled(texts))
        result: list[Any] = []
        for index, (item, segments) in enumerate(zip(submitted, texts, strict=True)):
            if segments is None:
                old = _counterpart(item, index, submitted, stored, rule)
                merged = self._value(item, old, rule.item(index), (*path, index))
                result.append(None if merged is MISSING else merged)
                continue
            if MASK not in item:
                result.append(item)
                continue
            restored = _restore(segments, secrets)
            if restored is None:
                restored = _same_argument(index, submitted, stored, old_texts)
            if restored is None:
                self._no_stored_value((*path, index))
            result.append(item if restored is None else restored)
        return result

    def _section_merge(self, section: ConfigSection, submitted: Any, stored: Any, path: JsonPath) -> Any:
        assert section.merge is not None
        try:
            old = None if stored is MISSING else copy.deepcopy(stored)
            return section.merge(submitted, old)
        except ConfigError as error:
            self._fault(path, error.reason)
        except Exception as error:
            self._fault(path, f"section {section.name!r} failed to merge it ({type(error).__name__})")
        return submitted

    def _no_stored_value(self, path: JsonPath) -> None:
        self._fault(path, f"{MASK!r} stands for a stored value, and there is none: send the value itself")

    # Checks of the merged entry

    def _refuse_moved_secrets(self, submitted: Any, stored: Any, merged: Any) -> None:
        known = {text for _, text in secrets_in(stored, self._rule)}
        # What is sent in clear is known to the sender, and goes where the sender says.
        clear = {text for _, text in secrets_in(submitted, self._rule)}
        everything_moved = moved(stored, merged)
        for path, text in secrets_in(merged, self._rule):
            if text not in known or text in clear:
                continue
            if everything_moved or any(block_moved(stored, merged, at) for at in self._destinations(path)):
                self._fault(
                    path,
                    "the stored secret would go to another host or program than before:"
                    " send its value again, or remove it",
                )

    def _destinations(self, path: JsonPath) -> Iterator[JsonPath]:
        """Where the section around this path says that its secrets go."""
        rule = self._rule
        for depth, key in enumerate(path):
            if isinstance(key, int):
                rule = rule.item(key)
                continue
            rule = rule.child(key)
            if rule.section is not None:
                for destination in rule.section.destination_paths:
                    yield (*path[: depth + 1], *destination.split("."))

    def _refuse_stored_mask(self, merged: Any) -> None:
        for path, text in secrets_in(merged, self._rule):
            if text == MASK:
                self._fault(path, f"the stored value is the mask {MASK!r} itself: send the real value")


def _labelled(lists: Sequence[Segments | None]) -> dict[str, str]:
    return {s.label: s.text for segments in lists if segments for s in segments if s.label is not None}


def _unambiguous(stored: Mapping[str, str], submitted: Mapping[str, str]) -> dict[str, str]:
    """The stored secrets without those whose number behind the label may have moved."""
    kinds: dict[str, list[str]] = {}
    for label, text in stored.items():
        kinds.setdefault(_kind(label), []).append(text)
    counts = Counter(map(_kind, submitted))
    sure = {kind for kind, texts in kinds.items() if len(texts) == counts[kind] or len(set(texts)) == 1}
    return {label: text for label, text in stored.items() if _kind(label) in sure}


def _kind(label: str) -> str:
    return label.rpartition(" #")[0]


def _restore(segments: Segments, secrets: Mapping[str, str]) -> str | None:
    """The text with every masked segment put back; None where one has no counterpart."""
    result = ""
    for segment in segments:
        if segment.label is not None and segment.text == MASK:
            if (text := secrets.get(segment.label)) is None:
                return None
            result += text
        elif MASK in segment.text:
            return None
        else:
            result += segment.text
    return result


def _same_argument(
    index: int, submitted: Sequence[Any], stored: Sequence[Any], texts: Sequence[Segments | None]
) -> str | None:
    """The stored text that is shown like the submitted one and stands behind the same text."""
    before = submitted[index - 1] if index else None
    found = set()
    for at, segments in enumerate(texts):
        if segments is None or shown(segments) != submitted[index] or stored[at] == submitted[index]:
            continue
        previous = texts[at - 1] if at else None
        if (shown(previous) if previous is not None else None) == before:
            found.add(stored[at])
    return found.pop() if len(found) == 1 else None


def _counterpart(item: Any, index: int, submitted: Sequence[Any], stored: Sequence[Any], rule: Rule) -> Any:
    """The stored item that the submitted one was made from: shown alike, or of the same name, or the only
    one."""
    for at, old in enumerate(stored):
        if same(item, show(old, rule.item(at))):
            return old
    for key in ("name", "id"):
        if isinstance(item, dict) and item.get(key) is not None:
            named = [old for old in stored if isinstance(old, dict) and same(old.get(key), item[key])]
            return named[0] if len(named) == 1 else MISSING
    return stored[0] if len(submitted) == len(stored) == 1 else MISSING
