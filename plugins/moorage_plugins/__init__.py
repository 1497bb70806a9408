"""Default plugins."""
