"""``moorage db`` and ``moorage tasks``: straight on the database, whether or not a gateway runs."""
