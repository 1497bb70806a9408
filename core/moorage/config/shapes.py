"""What a section's pydantic model knows of its own keys (PLUG-5)."""

import typing
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from moorage.config.document import JsonPath

if TYPE_CHECKING:
    from pydantic import BaseModel


def known_keys(model: "type[BaseModel]") -> dict[str, Any]:
    """The keys that the model reads, with the annotation of their values; aliases included."""
    keys: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        aliases = {info.alias, info.validation_alias}
        names = {alias for alias in aliases if isinstance(alias, str)}
        choices = getattr(info.validation_alias, "choices", ())
        names |= {choice for choice in choices if isinstance(choice, str)}
        if (
            not names
            or model.model_config.get("populate_by_name")
            or model.model_config.get("validate_by_name")
        ):
            names.add(name)
        for key in names:
            keys[key] = info.annotation
    return keys


def nested_model(annotation: Any) -> "type[BaseModel] | None":
    """The model inside ``Model | None``, ``list[Model]``, ``dict[str, Model]`` and the like, if any."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((m for arg in typing.get_args(annotation) if (m := nested_model(arg)) is not None), None)


def is_mapping(annotation: Any) -> bool:
    """Whether the annotation is (or may be) a mapping with free keys."""
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, typing.Mapping):
        return True
    return any(is_mapping(arg) for arg in typing.get_args(annotation) if origin is not list)


def unknown_keys(
    model: "type[BaseModel]", block: Any, path: JsonPath = ()
) -> Iterator[tuple[JsonPath, list[str]]]:
    """Paths in ``block`` that the model does not know, each with the keys known there."""
    if isinstance(block, list):
        for index, item in enumerate(block):
            yield from unknown_keys(model, item, (*path, index))
    if not isinstance(block, dict):
        return
    known = known_keys(model)
    for key, value in block.items():
        if key not in known:
            yield (*path, key), sorted(known)
        elif (inner := nested_model(known[key])) is not None:
            if is_mapping(known[key]) and isinstance(value, dict):
                for name, item in value.items():
                    yield from unknown_keys(inner, item, (*path, key, name))
            else:
                yield from unknown_keys(inner, value, (*path, key))
