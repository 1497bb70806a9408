"""MCP servers: connections, sessions, calls and the catalogue of tools (TOOL, STDIO).

Nothing is imported here, so that listing plugins costs no MCP client (PLUG-8).
"""
