"""Validates the blocks of plugins' sections, and contains what their code may do (PLUG-5, PLUG-7)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moorage.config.document import JsonPath
from moorage.config.names import did_you_mean
from moorage.config.shapes import unknown_keys
from moorage.contract import ConfigError, ConfigSection, SectionLevel
from moorage.contract.empty import EMPTY
from moorage.process_exit import is_exit

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

MissingDistribution = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class SectionProblem:
    """``path`` is relative to the block."""

    path: JsonPath
    message: str
    fatal: bool = True


class SectionSet:
    """All sections that the loaded plugins contribute, and what is known of those that they do not.

    ``missing_distribution``: a key's distribution where the core knows one that would own it (PLUG-4).
    ``remembered``: keys that were in force before, with the distribution that owned them, where known.
    """

    def __init__(
        self,
        sections: Sequence[ConfigSection] = (),
        *,
        missing_distribution: MissingDistribution | None = None,
        remembered: Mapping[str, str | None] = EMPTY,
    ) -> None:
        self._sections = {section.name: section for section in sections}
        self._missing = missing_distribution
        self._remembered = dict(remembered)

    def get(self, name: str, level: SectionLevel) -> ConfigSection | None:
        """The section of that name, where it may stand at this level."""
        section = self._sections.get(name)
        return section if section is not None and level in section.levels else None

    def names(self, level: SectionLevel) -> list[str]:
        return sorted(name for name, section in self._sections.items() if level in section.levels)

    def missing(self, name: str) -> str | None:
        """Why a key that no plugin claims must not be skipped, and what to install; None where it may be."""
        if name in self._sections:
            return None
        distribution = self._missing(name) if self._missing else None
        distribution = distribution or self._remembered.get(name)
        if distribution:
            return f"needs a plugin of {distribution!r}: run `moorage install {distribution}`"
        if name in self._remembered:
            return (
                "was owned by a plugin that is not loaded now: see `moorage plugins` and install it again,"
                " or remove the key"
            )
        return None


def model_of(section: ConfigSection) -> "type[BaseModel]":
    """The section's model; whatever goes wrong in the plugin's code is a `ConfigError`."""
    try:
        return section.load_model()
    except BaseException as error:
        if is_exit(error):
            raise
        raise ConfigError(
            f"the model of section {section.name!r} could not be loaded ({type(error).__name__});"
            " see `moorage plugins`"
        ) from error


def validate_section(
    section: ConfigSection, block: Any, *, server: str, entry: Mapping[str, Any], secrets: Collection[str]
) -> tuple[Any, list[SectionProblem]]:
    """The validated block, and what is wrong with it; the block is None where a problem is fatal.

    ``entry`` is the server's as written. ``secrets`` are the texts that no message may quote.
    """
    try:
        model = model_of(section)
    except ConfigError as error:
        return None, [SectionProblem((), error.reason)]
    if section.accepts_list and not isinstance(block, list):
        return None, [SectionProblem((), "must be a list of objects")]
    blocks = block if section.accepts_list else [block]
    problems: list[SectionProblem] = []
    valid: list[Any] = []
    for index, item in enumerate(blocks):
        at: JsonPath = (index,) if section.accepts_list else ()
        if not isinstance(item, dict):
            problems.append(SectionProblem(at, "must be an object"))
            continue
        for path, known in unknown_keys(model, item):
            message = f"unknown key, kept and not used{did_you_mean(str(path[-1]), known)}"
            problems.append(SectionProblem(at + path, message, fatal=False))
        made, faults = _validate(model, item, secrets)
        problems.extend(SectionProblem(at + fault.path, fault.message) for fault in faults)
        valid.append(made)
    if any(problem.fatal for problem in problems):
        return None, problems
    result: Any = tuple(valid) if section.accepts_list else valid[0]
    problems.extend(_check(section, server, result, entry, secrets))
    return (None if any(problem.fatal for problem in problems) else result), problems


def _validate(
    model: "type[BaseModel]", item: Mapping[str, Any], secrets: Collection[str]
) -> tuple[Any, list[SectionProblem]]:
    from pydantic import ValidationError

    try:
        return model.model_validate(item), []
    except ValidationError as error:
        return None, list(_faults_of(error, item, secrets))
    except BaseException as error:  # the model's own validators, which are a plugin's code
        if is_exit(error):
            raise
        return None, [SectionProblem((), f"the model failed to validate this ({type(error).__name__})")]


def _faults_of(
    error: "ValidationError", item: Mapping[str, Any], secrets: Collection[str]
) -> Iterator[SectionProblem]:
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        path = tuple(part for part in detail["loc"] if isinstance(part, str | int))
        yield SectionProblem(_inside(path, item), without_secrets(detail["msg"], secrets))


def _inside(path: JsonPath, item: Any) -> JsonPath:
    """The part of pydantic's location that exists in the file: it also names validators and union tags."""
    kept: list[str | int] = []
    for index, part in enumerate(path):
        try:
            item = item[part]
        except (LookupError, TypeError):
            missing = isinstance(item, dict) and isinstance(part, str) and index == len(path) - 1
            if missing:
                kept.append(part)
            continue
        kept.append(part)
    return tuple(kept)


def _check(
    section: ConfigSection, server: str, block: Any, entry: Mapping[str, Any], secrets: Collection[str]
) -> Iterator[SectionProblem]:
    if section.check is None:
        return
    try:
        for warning in section.check(server, block, entry):
            yield SectionProblem((), without_secrets(warning, secrets), fatal=False)
    except ConfigError as error:
        yield SectionProblem((), without_secrets(error.reason, secrets))
    except Exception as error:
        yield SectionProblem((), f"the check of section {section.name!r} failed ({type(error).__name__})")


def without_secrets(message: str, secrets: Collection[str]) -> str:
    """The message with every one of these texts that it quotes replaced by ``***``.

    Messages of models and checks are the plugins' own and may quote what they were given. Texts under 8
    characters would match too much and are left (CRED-9).
    """
    for text in sorted(secrets, key=len, reverse=True):
        if len(text) >= 8:
            message = message.replace(text, "***")
    return message
