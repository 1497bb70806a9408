"""Metrics and spans (API-4)."""
