"""The durable tasks (TASK): `SqlTasks` and its parts."""

from moorage_drivers.sql.tasks.repository import SqlTasks

__all__ = ["SqlTasks"]
