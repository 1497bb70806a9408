"""Who calls: API keys, authenticators and roles (API-2)."""
