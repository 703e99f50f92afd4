"""What a database says of itself to whoever looks after it: its settings, its clock, its account."""

from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from core.errors import StoreError
from db.connection.engine import sqlite_file
from db.connection.failures import readable_errors
from db.database import Database
from db.models import Record

OLDEST_POSTGRESQL = 15


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found."""

    server: str  # "SQLite 3.45.1", "PostgreSQL 16.2"
    unsafe: tuple[str, ...]  # settings under which a vote could be lost or a row point nowhere, each as a sentence
    clock: datetime | None  # time of the server, aware; None for a file
    may_do_too_much: bool  # the account may change the audit trail: it owns the tables of a server, or rules over it
    # A server recognises a page that its disk has changed; True for a file, whose pages doctor reads.
    has_checksums: bool = True


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
        unsafe += [
            f"{name} is on"
            for name in ("zero_damaged_pages", "ignore_checksum_failure")
            if ask(f"SELECT current_setting('{name}', true)") == "on"
        ]
        if int(version.split(".")[0]) < OLDEST_POSTGRESQL:
            unsafe.append(f"the server is older than {OLDEST_POSTGRESQL}")
        owns = ask(
            "SELECT rolsuper OR pg_has_role(current_user, relowner, 'MEMBER') FROM pg_roles, pg_class "
            "WHERE rolname = current_user AND pg_class.oid = 'audit_event'::regclass"
        )
        clock = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one().astimezone(UTC)
        return Inspection(
            f"PostgreSQL {version}",
            tuple(unsafe),
            clock,
            may_do_too_much=owns == "True",
            has_checksums=ask("SHOW data_checksums") == "on",
        )


def check_pages(database: Database) -> None:
    """Check the pages of an SQLite file, and on every database that no row points to one that is gone.

    Raise StoreError if it is damaged.
    """
    with readable_errors(), database.engine.connect().execution_options(readonly=True) as connection:
        is_file = database.engine.dialect.name == "sqlite"
        if is_file and connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one() != "ok":
            raise StoreError(f"{database.name} is damaged. Stop the program and restore the last verified backup.")
        for table in Record.metadata.sorted_tables:
            for key in table.foreign_key_constraints:
                if connection.execute(_orphans(key)).first() is not None:
                    raise StoreError(
                        f"Rows of the table {table.name} point to rows of {key.referred_table.name} that are gone: the "
                        "database was changed past the program, or is damaged. Restore the last verified backup."
                    )


def _orphans(key: sa.ForeignKeyConstraint) -> sa.Select[int]:
    other = key.referred_table.alias()
    pairs = [(part.parent, other.c[part.column.name]) for part in key.elements]
    found = sa.select(sa.literal(1)).select_from(other).where(*(own == theirs for own, theirs in pairs))
    named = [own.is_not(None) for own, _ in pairs]
    return sa.select(sa.literal(1)).select_from(key.table).where(*named, ~found.correlate(key.table).exists()).limit(1)


def file_of(database: Database) -> str | None:
    """Return the path of an SQLite file, None for a server."""
    file = sqlite_file(database.engine.url)
    return None if file is None else str(file)
