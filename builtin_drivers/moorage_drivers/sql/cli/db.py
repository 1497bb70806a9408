"""``moorage db``."""

import json

from moorage_drivers.sql.cli.session import Json, command_group, database_url, out, reporting

app = command_group("Bring the database up to date.")


@app.callback()
def db() -> None:
    """Bring the database up to date."""


@app.command()
def upgrade(as_json: Json = False) -> None:
    """Create the tables, or migrate them to this release. Harmless to repeat, and while gateways run.

    Exit status: 0 done; 1 the database cannot be reached, or is newer than this release; 2 wrong usage.
    """
    from moorage_drivers.sql.migrate import upgrade as migrate
    from moorage_drivers.sql.urls import parse_url

    url = reporting(database_url)
    revision = reporting(lambda: migrate(url))
    shown = str(parse_url(url))
    if as_json:
        print(json.dumps({"database": shown, "revision": revision}))
    else:
        out().print(f"{shown} is at revision {revision}.", markup=False, soft_wrap=True)
