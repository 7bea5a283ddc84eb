"""Bringing a database's schema up to date: Alembic's migrations, run from within the program.

Place: the store of the accounting daemon. There is no alembic.ini: the migrations are a part of the
package, and the connection is the store's. To add one, change schema.py, and write
`migrations/versions/NNNN_what.py` by the example of the last; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

if TYPE_CHECKING:
    from sqlalchemy import Engine

LOCATION: Final = Path(__file__).with_name("migrations")


class MigrationError(Exception):
    """The database is of a version that this program does not know."""


def configuration() -> Config:
    """Alembic's settings."""
    config = Config()
    config.set_main_option("script_location", str(LOCATION).replace("%", "%%"))
    return config


def upgrade(engine: Engine) -> None:
    """Run the migrations that the database does not have yet.

    Raises:
        MigrationError: it is of a later version.
    """
    config = configuration()
    scripts = ScriptDirectory.from_config(config)
    with engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    known = {each.revision for each in scripts.walk_revisions()}
    if current is not None and current not in known:
        raise MigrationError(
            f"its schema is {current}, later than {scripts.get_current_head()}, the "
            "newest that is known here"
        )
    if current == scripts.get_current_head():
        return
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
