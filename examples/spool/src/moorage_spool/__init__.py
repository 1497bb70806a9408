"""The Moorage plugin spool."""
