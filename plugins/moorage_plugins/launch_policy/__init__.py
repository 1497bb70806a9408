"""What a server registered over HTTP may start (LAUNCH)."""
