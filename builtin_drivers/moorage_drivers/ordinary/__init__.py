"""The ordinary task driver: long-running work behind plain tools of an MCP server (ORD)."""
