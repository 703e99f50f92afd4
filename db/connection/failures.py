"""Turns what a database driver raises into errors that a person can act on, without values of rows in their text."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy.exc as sa_errors

from core.errors import (
    AlertReviewError,
    ConflictError,
    DatabaseUnavailableError,
    ForeignDatabaseError,
    RefusedError,
    StoreError,
)

_NOTHING_KEPT = "Nothing of this change was kept."
_BUSY = f"The database was busy for too long. {_NOTHING_KEPT} Try again; if it persists, see which program keeps it."
_FULL = f"The disk of the database is full. {_NOTHING_KEPT} Free some space and do it again."
_KEPT = (
    "The database refuses this: judgments, adjudications, rubrics and the audit trail are never changed, and people "
    "are never deleted. Add a new version, or deactivate the person."
)
_READ_ONLY = (
    f"The database cannot be written: the file, its folder or the disk is read-only. {_NOTHING_KEPT} "
    "Give the program's account the right to write there."
)
_UNREACHABLE = (
    "The database file cannot be opened: it or its folder is missing, or may not be read. Check the path given by "
    "--home or --database and its permissions."
)
_LACKS_TABLE = "The database lacks a table of this program. Run 'alertreview init' on it, or name the right one."
_NO_SUCH_DATABASE = "The server has no database of this name, or this account may not use it. Check the database URL."
_UNREACHABLE_SERVER = (
    f"The database server cannot be reached or went away. {_NOTHING_KEPT} Check that it runs and that the database URL "
    "names it."
)

_DAMAGED_SERVER = (
    f"The server cannot read its files of this database, which are damaged or gone. {_NOTHING_KEPT} Check the server's "
    "disk, and restore the last verified backup into a new database."
)
_DAMAGED_STATES = {"XX001", "XX002", "58P01", "58030"}
"""SQLSTATE of PostgreSQL for damaged data, damaged indexes, files that are gone and errors of the disk."""

_BY_DRIVER_WORDS: dict[str, tuple[type[StoreError], str]] = {
    "append-only": (RefusedError, _KEPT),
    "lock timeout": (DatabaseUnavailableError, _BUSY),
    "locked": (DatabaseUnavailableError, _BUSY),
    "readonly": (DatabaseUnavailableError, _READ_ONLY),
    "read-only transaction": (DatabaseUnavailableError, _READ_ONLY),
    "is full": (DatabaseUnavailableError, _FULL),
    "no space left": (DatabaseUnavailableError, _FULL),
    "not a database": (
        ForeignDatabaseError,
        "The file is not an SQLite database. Name the right one with --database, or restore a backup.",
    ),
    "malformed": (
        DatabaseUnavailableError,
        f"The database file is damaged. {_NOTHING_KEPT} Stop the program and restore the last verified backup.",
    ),
    "unable to open": (DatabaseUnavailableError, _UNREACHABLE),
    "disk i/o": (
        DatabaseUnavailableError,
        f"The disk of the database reported an error. {_NOTHING_KEPT} Check the disk, then do it again.",
    ),
    "no such table": (ForeignDatabaseError, _LACKS_TABLE),
    'relation "': (ForeignDatabaseError, _LACKS_TABLE),
    'fatal:  database "': (DatabaseUnavailableError, _NO_SUCH_DATABASE),
    "connection failed": (DatabaseUnavailableError, _UNREACHABLE_SERVER),
    "connection refused": (DatabaseUnavailableError, _UNREACHABLE_SERVER),
    "server closed the connection": (DatabaseUnavailableError, _UNREACHABLE_SERVER),
    "terminating connection": (DatabaseUnavailableError, _UNREACHABLE_SERVER),
}


DRIVER_ERRORS = (sa_errors.SQLAlchemyError, sqlite3.Error)
"""What SQLAlchemy and the drivers raise."""


def as_store_error(error: sa_errors.SQLAlchemyError | sqlite3.Error) -> AlertReviewError:
    """Return the error of `core.errors` that stands for a driver's error.

    Its text may hold values of rows, so none of it is passed on but the kind of the driver's error.
    """
    original = error if isinstance(error, sqlite3.Error) else getattr(error, "orig", None)
    if isinstance(original, AlertReviewError):
        return original
    if getattr(original, "sqlstate", None) in _DAMAGED_STATES:
        return DatabaseUnavailableError(_DAMAGED_SERVER)
    driver = str(original or "").lower()
    for words, (kind, text) in _BY_DRIVER_WORDS.items():
        if words in driver:
            return kind(text)
    if isinstance(error, (sa_errors.IntegrityError, sqlite3.IntegrityError)):
        return ConflictError(
            f"The database refused a row that contradicts one it has. {_NOTHING_KEPT} Reload and look at what is there."
        )
    if original is not None or isinstance(error, sa_errors.TimeoutError):
        return DatabaseUnavailableError(
            f"The database did not do what was asked ({type(original or error).__name__}). {_NOTHING_KEPT} "
            "Check that it is running and try again."
        )
    return StoreError(f"The database layer failed ({type(error).__name__}). {_NOTHING_KEPT} Please report this.")


@contextmanager
def readable_errors() -> Iterator[None]:
    """Raise `core.errors` in place of SQLAlchemy's errors; the original is dropped, because it may name patients."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise as_store_error(error) from None
