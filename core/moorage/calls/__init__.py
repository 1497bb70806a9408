"""Around one call to a server: the interceptor chain, and redaction of what comes back (CRED, PLUG-7)."""
