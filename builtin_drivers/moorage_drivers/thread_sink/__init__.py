"""Delivers tasks' attention events as runs on the task's thread (NOTE-2)."""
