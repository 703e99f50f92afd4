"""What a database says of itself to whoever looks after it: its settings, its clock, its account."""

from dataclasses import dataclass
from datetime import UTC, datetime

from core.errors import StoreError
from db.connection.engine import sqlite_file
from db.connection.failures import readable_errors
from db.database import Database

OLDEST_POSTGRESQL = 15


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found.

    Parameters
    ----------
    server : str
        "SQLite 3.45.1", "PostgreSQL 16.2".
    unsafe : tuple of str
        Settings under which a vote could be lost or a row point nowhere, each as a sentence.
    clock : datetime or None
        Time of the server, aware; None for a file.
    may_do_too_much : bool
        The account may change the audit trail: it owns the tables of a server, or rules over it.
    """

    server: str
    unsafe: tuple[str, ...]
    clock: datetime | None
    may_do_too_much: bool


def inspect(database: Database) -> Inspection:
    """Return the settings of a database of this program."""
    with readable_errors(), database.engine.connect().execution_options(readonly=True) as connection:

        def ask(query: str) -> str:
            return str(connection.exec_driver_sql(query).scalar_one())

        if database.engine.dialect.name == "sqlite":
            wanted = {"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"}
            unsafe = [
                f"{name} is {found}, not {value}"
                for name, value in wanted.items()
                if (found := ask(f"PRAGMA {name}")) != value
            ]
            return Inspection(f"SQLite {ask('SELECT sqlite_version()')}", tuple(unsafe), None, may_do_too_much=False)
        version = ask("SHOW server_version").split()[0]
        unsafe = [f"{name} is off" for name in ("fsync", "full_page_writes") if ask(f"SHOW {name}") == "off"]
        if ask("SHOW synchronous_commit") == "off":
            unsafe.append("synchronous_commit is off")
        if int(version.split(".")[0]) < OLDEST_POSTGRESQL:
            unsafe.append(f"the server is older than {OLDEST_POSTGRESQL}")
        owns = ask(
            "SELECT rolsuper OR pg_has_role(current_user, relowner, 'MEMBER') FROM pg_roles, pg_class "
            "WHERE rolname = current_user AND pg_class.oid = 'audit_event'::regclass"
        )
        clock = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one().astimezone(UTC)
        return Inspection(f"PostgreSQL {version}", tuple(unsafe), clock, may_do_too_much=owns == "True")


def check_pages(database: Database) -> None:
    """Check the pages and indexes of an SQLite file.

    Raises
    ------
    StoreError
        If it is damaged.
    """
    with readable_errors(), database.engine.connect().execution_options(readonly=True) as connection:
        if database.engine.dialect.name != "sqlite":
            return
        if connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one() != "ok":
            raise StoreError(f"{database.name} is damaged. Stop the program and restore the last verified backup.")


def file_of(database: Database) -> str | None:
    """Return the path of an SQLite file, None for a server."""
    file = sqlite_file(database.engine.url)
    return None if file is None else str(file)
