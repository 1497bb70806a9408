"""A server's own OAuth credential (CRED-3)."""
