"""The Moorage plugin secrets-store."""
