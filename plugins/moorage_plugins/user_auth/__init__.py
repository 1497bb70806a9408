"""Each user's own credential, from the server's config (CRED-4)."""
