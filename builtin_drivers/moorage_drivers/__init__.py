"""Built-in drivers: MCP, the ordinary task driver, SQL stores, assistants."""
