"""The SQL store: SQLite and PostgreSQL behind `moorage.contract.stores`, with the same statements."""
