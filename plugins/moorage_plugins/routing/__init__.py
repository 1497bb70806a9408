"""The operator's routing hints (ROUTE-1, ROUTE-2)."""
