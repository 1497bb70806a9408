"""Runs and threads: admission, identity, execution, streams (RUN)."""
