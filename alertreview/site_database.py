"""The database of a site, opened and known to be ours, and the one clock of the application."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from alertreview.settings import Settings
from alertreview.upgrading import upgrade_site
from db.session import Database


def now() -> datetime:
    """Give the time, aware, in UTC: the one clock of the application."""
    return datetime.now(UTC)


@contextmanager
def open_database(settings: Settings, *, upgrade: bool = False) -> Iterator[Database]:
    """Open the site's database and make sure that it is ours.

    Parameters
    ----------
    settings : Settings
        The site.
    upgrade : bool
        Make or renew its tables.

    Raises
    ------
    ForeignDatabaseError
        If it belongs to another program or a newer version.
    """
    database = Database(settings.database_url)
    try:
        if upgrade:
            upgrade_site(settings, database, now())
        database.check()
        yield database
    finally:
        database.dispose()
