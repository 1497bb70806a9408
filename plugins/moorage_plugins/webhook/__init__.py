"""Attention events as signed webhooks (NOTE-4)."""
