"""The extensions config: reading, watching, masking, merging and writing it (CONF, ADMIN)."""

from moorage.config.check import check_file
from moorage.config.drift import restart_only_changes, restart_required
from moorage.config.editor import ConfigChange, ConfigEditor, ConfigView
from moorage.config.errors import ConfigRejected, ConfigWriteFailed, PreconditionFailed, UnreadableConfig
from moorage.config.merging import merge
from moorage.config.paths import FILE_NAME, PATH_VARIABLE, resolve_path
from moorage.config.plan import ConfigPlan, etag_of, launch_request, plan_enabled, plan_replace
from moorage.config.sections import SectionSet
from moorage.config.showing import masked
from moorage.config.source import ExtensionsFile, sections_in_use
from moorage.config.watched import FileState, WatchedFile

__all__ = [
    "FILE_NAME",
    "PATH_VARIABLE",
    "ConfigChange",
    "ConfigEditor",
    "ConfigPlan",
    "ConfigRejected",
    "ConfigView",
    "ConfigWriteFailed",
    "ExtensionsFile",
    "FileState",
    "PreconditionFailed",
    "SectionSet",
    "UnreadableConfig",
    "WatchedFile",
    "check_file",
    "etag_of",
    "launch_request",
    "masked",
    "merge",
    "plan_enabled",
    "plan_replace",
    "resolve_path",
    "restart_only_changes",
    "restart_required",
    "sections_in_use",
]
