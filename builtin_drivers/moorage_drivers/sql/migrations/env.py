"""Alembic's entry: runs the revisions on the connection that `moorage_drivers.sql.migrate` hands over.

The transaction is the caller's, and all revisions run in it: a migration happens or it does not.
"""

from alembic import context

from moorage_drivers.sql.models import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the caller's transaction is the one
    render_as_batch=True,  # SQLite alters tables by copying them
)
context.run_migrations()
