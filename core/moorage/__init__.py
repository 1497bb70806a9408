"""Moorage: a plugin host for MCP gateways."""

__version__ = "0.1.0"
