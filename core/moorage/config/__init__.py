"""The extensions config: reading, watching, masking, merging and writing it (CONF, ADMIN)."""

from moorage.config.check import check_file
from moorage.config.paths import FILE_NAME, PATH_VARIABLE, resolve_path
from moorage.config.sections import SectionSet
from moorage.config.showing import masked
from moorage.config.source import ExtensionsFile, sections_in_use
from moorage.config.watched import FileState, WatchedFile

__all__ = [
    "FILE_NAME",
    "PATH_VARIABLE",
    "ExtensionsFile",
    "FileState",
    "SectionSet",
    "WatchedFile",
    "check_file",
    "masked",
    "resolve_path",
    "sections_in_use",
]
