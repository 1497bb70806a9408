"""The version of the plugin API (PLUG-6)."""

API_VERSION = "0.1"
"""``major.minor`` of the contract. A plugin states what it supports in an attribute ``MOORAGE_API``, a
PEP 440 specifier such as ``">=0.1"``. Before 1.0 a range without an upper bound means the same minor, from
1.0 the same major."""

PLUGIN_GROUP = "moorage.plugins"
"""The entry-point group that plugins are discovered in (PLUG-1)."""

CLI_GROUP = "moorage.cli"
"""Entry points that announce CLI group names, so that ``--help`` lists them without loading a plugin."""

PROJECT = "moorage"
"""The pluggy project name."""
