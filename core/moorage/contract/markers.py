"""The pluggy markers."""

import pluggy

from moorage.contract.version import PROJECT

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's hook implementation: ``@hookimpl def moorage_task_drivers(): ...``"""
