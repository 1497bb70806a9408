"""What of the extensions config may be seen, and which secrets it holds (ADMIN-1, CRED-9)."""

import copy
import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.config.document import JsonPath
from moorage.config.placeholders import split_scheme
from moorage.config.rules import Rule, Secret, server_rule
from moorage.config.secrecy import MASK
from moorage.config.sections import SectionSet
from moorage.config.segments import Segments, is_secret, shown

_log = logging.getLogger(__name__)


def masked(raw: Mapping[str, Any], sections: SectionSet) -> dict[str, Any]:
    """What a GET shows of the file: its servers, with every literal secret masked (ADMIN-1, ADMIN-7).

    Values that no JSON document can hold (a NaN that an older release let pass) are shown as text.
    """
    servers = raw.get("mcpServers")
    if not isinstance(servers, dict):
        return {"mcpServers": {}}
    rule = server_rule(sections)
    return {"mcpServers": {name: show(entry, rule) for name, entry in servers.items()}}


def show(value: Any, rule: Rule) -> Any:
    """The value as a GET shows it."""
    if rule.section is not None and rule.section.mask is not None:
        try:
            value = rule.section.mask(copy.deepcopy(value))
        except Exception as error:
            _log.warning("section %r failed to mask its block (%s)", rule.section.name, type(error).__name__)
            rule = Secret()
    match value:
        case str():
            return _shown_text(rule.text(value), rule)
        case dict():
            return {key: show(item, rule.child(key)) for key, item in value.items()}
        case list():
            texts = rule.texts(value)
            return [
                show(item, rule.item(index)) if segments is None else _shown_text(segments, rule.item(index))
                for index, (item, segments) in enumerate(zip(value, texts, strict=True))
            ]
        case bool() | None:
            return value
        case _ if rule.secret:
            return None if rule.as_null else MASK
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


def _shown_text(segments: Segments, rule: Rule) -> str | None:
    return None if rule.as_null and is_secret(segments) else shown(segments)


def secrets_in(value: Any, rule: Rule, path: JsonPath = ()) -> Iterator[tuple[JsonPath, str]]:
    """Every literal secret of the tree, with the path of the value that holds it."""
    match value:
        case str():
            yield from _secrets(rule.text(value), path)
        case dict():
            for key, item in value.items():
                yield from secrets_in(item, rule.child(key), (*path, key))
        case list():
            for index, (item, segments) in enumerate(zip(value, rule.texts(value), strict=True)):
                if segments is None:
                    yield from secrets_in(item, rule.item(index), (*path, index))
                else:
                    yield from _secrets(segments, (*path, index))
        case bool() | None:
            return
        case _ if rule.secret:
            yield path, str(value)


def _secrets(segments: Segments, path: JsonPath) -> Iterator[tuple[JsonPath, str]]:
    for segment in segments:
        if segment.label is not None:
            yield path, segment.text


def secrets_in_force(resolved: Any, rule: Rule) -> frozenset[str]:
    """The literal secrets of a tree whose placeholders are resolved: what must be redacted (CRED-9).

    Of an authentication header the credential counts by itself, too.
    """
    found: set[str] = set()
    for _, text in secrets_in(_without_dollars(resolved), rule):
        secret = text.replace(_NO_DOLLAR, "$")
        found.add(secret)
        if (parts := split_scheme(secret)) is not None:
            found.add(parts[1])
    return frozenset(found)


_NO_DOLLAR = "\x01"


def _without_dollars(value: Any) -> Any:
    # A resolved value is no placeholder any more, whatever it looks like.
    match value:
        case str():
            return value.replace("$", _NO_DOLLAR)
        case dict():
            return {key: _without_dollars(item) for key, item in value.items()}
        case list():
            return [_without_dollars(item) for item in value]
        case _:
            return value
