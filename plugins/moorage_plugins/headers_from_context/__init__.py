"""Credentials that a run brings along (CRED-5)."""
