"""An example MCP server with long-running jobs: it counts and hashes the files of a folder.

``python -m moorage_drivers.example_server`` starts it over streamable HTTP; ``moorage demo`` and the
README use it. Its three tools speak the contract of the ordinary task driver (ORD).
"""
