"""The task runtime under fire: processes that are killed, a driver and a sink that fail, hang and lie.

What happens outside the database is written to journals, one a process, so that it can be compared with the
rows afterwards: a line that was written survives SIGKILL.
"""
