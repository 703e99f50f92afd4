"""Copies a whole database to a file and back: SQLite by its own backup, PostgreSQL by pg_dump and pg_restore."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection

from core.errors import DatabaseUnavailableError, SettingsError, StoreError
from db.audit import GENESIS
from db.connection.engine import open_engine, parse_url, sqlite_file
from db.connection.failures import readable_errors
from db.schema import look

PROGRAMS_VARIABLE = "ALERTREVIEW_POSTGRESQL_PROGRAMS"
"""Folder of pg_dump and pg_restore, where those on the PATH are of another version than the server."""

SQLITE_COPY = "database.sqlite"
POSTGRESQL_COPY = "database.pgdump"
_WAIT_SECONDS = 3600
_SCRATCH = "alertreview_verify"
"""Beginning of the names of databases in which copies are tried; a schema of this name marks one that was given."""


def copy_name(url: str) -> str:
    """Return the name of the file that `write_copy` makes of a database, by its kind."""
    return SQLITE_COPY if sqlite_file(parse_url(url)) is not None else POSTGRESQL_COPY


@dataclass(frozen=True, slots=True)
class Contents:
    """What a database holds."""

    revision: str  # step of the schema
    n_rows: dict[str, int]  # rows of each table
    audit_head: str  # hash of the last audit row
    n_audit_events: int  # number of the last audit row
    snapshot_folders: tuple[str, ...]  # folders of the imports


def write_copy(url: str, target: Path) -> Contents:
    """Copy a database as it is in one moment, while others read and write it, and return what it held then.

    The target is a new file, named as `copy_name` says. Raise SettingsError if a program of PostgreSQL is missing or
    too old, StoreError if such a program fails, DatabaseUnavailableError if the database cannot be read or the copy not
    be written.
    """
    file = sqlite_file(parse_url(url))
    if file is not None and not file.exists():
        raise StoreError(f"There is no database at {file}, so nothing can be copied.")
    with _one_moment(url) as connection:
        held = _contents(connection)
        if file is None:
            moment = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
            plain = ("--format=custom", "--no-owner", "--no-privileges")
            _run("pg_dump", parse_url(url), *plain, f"--snapshot={moment}", f"--file={target}")
        else:
            driver: Any = connection.connection.driver_connection
            with closing(sqlite3.connect(target)) as copy:
                # All pages in one step, of the state that this transaction sees; writers go on meanwhile, because they
                # append to the log. A copied file without its log would lack what was written last.
                driver.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
    target.chmod(0o600)
    return held


def contents(url: str) -> Contents:
    """Return the contents of a database."""
    with _one_moment(url) as connection:
        return _contents(connection)


def read_copy(copy: Path, url: str) -> None:
    """Fill a database that does not exist yet, or has no table, from a copy.

    Raise StoreError if it has tables, or the copy is of another kind of database, DatabaseUnavailableError if it cannot
    be written.
    """
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    if copy.name != copy_name(url):
        raise StoreError(
            f"The backup's database is {copy.name}: it cannot be restored into a database of another kind. Name one "
            "of the same kind with --database."
        )
    if file is not None:
        if file.exists():
            raise StoreError(f"{file} exists already and is never overwritten. Name a file that does not exist.")
        try:
            shutil.copyfile(copy, file)
            file.chmod(0o600)
        except OSError as error:
            file.unlink(missing_ok=True)
            raise DatabaseUnavailableError(f"{file} cannot be written ({error.strerror}). Nothing was kept.") from error
        with readable_errors(), closing(sqlite3.connect(file)) as restored:
            restored.execute("PRAGMA journal_mode = WAL")
        return
    _require_empty(parsed)
    _run("pg_restore", parsed, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(copy))


def examine(url: str) -> None:
    """Check pages, indexes and foreign keys; PostgreSQL does so while it restores.

    Raise DatabaseUnavailableError if the database is damaged.
    """
    file = sqlite_file(parse_url(url))
    if file is None:
        return
    with readable_errors(), closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
    if found != "ok" or dangling is not None:
        raise DatabaseUnavailableError(f"{file} is damaged. Restore the last verified backup.")


@contextmanager
def scratch_database(copy: Path, folder: Path, server_url: str, given: str | None = None) -> Iterator[str]:
    """Yield the URL of a database to try a copy in: a file, or a database on the server that is dropped again.

    Accounts that may not make a database give the URL of an empty one. Raise StoreError if the copy is one of a server,
    and there is no server or its account may not make databases.
    """
    if given is not None:
        yield from _emptied(given)
        return
    if copy.name == SQLITE_COPY:
        yield f"sqlite:///{folder / SQLITE_COPY}"
        return
    parsed = parse_url(server_url)
    if sqlite_file(parsed) is not None:
        raise StoreError(
            f"{copy.name} is a copy of a PostgreSQL database, and none is named in which it could be tried. "
            "Name the site's with --database URL, or an empty one with --scratch-database URL."
        )
    mine = f"{_SCRATCH}_{sha256(str(parsed.database).encode()).hexdigest()[:8]}_"
    name = f"{mine}{uuid4().hex[:12]}"
    engine = sa.create_engine(parsed, isolation_level="AUTOCOMMIT", hide_parameters=True)
    with ExitStack() as stack:
        stack.callback(engine.dispose)
        with readable_errors():
            connection = stack.enter_context(engine.connect())
            if not connection.exec_driver_sql(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            ).scalar_one():
                raise StoreError(
                    "The account of the database may not make databases, so the backup cannot be tried in one. Make an "
                    "empty database and name it with --scratch-database URL."
                )
            # Locked as long as the database is used: what nobody holds was left by a program that was killed.
            _lock(connection, name)
            for other in connection.scalars(_LIKE, {"pattern": f"{mine}%"}).all():
                if _lock(connection, other):
                    connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {other} WITH (FORCE)")
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            yield parsed.set(database=name).render_as_string(hide_password=False)
        finally:
            with readable_errors(), engine.connect() as another:
                another.exec_driver_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


_LIKE = sa.text("SELECT datname FROM pg_database WHERE datname LIKE :pattern")


def _lock(connection: Connection, name: str) -> bool:
    """Take the lock of a scratch database; False if another program holds it."""
    return bool(connection.scalar(sa.text("SELECT pg_try_advisory_lock(hashtext(:name))"), {"name": name}))


def _emptied(url: str) -> Iterator[str]:
    """Yield the URL of an empty database, and empty it again: the next copy is tried in it as well.

    What a program left there that was killed is removed first. It has a mark: a schema that this function makes.
    """
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    if file is not None:
        existed = file.exists()
        try:
            yield url
        finally:
            if not existed:
                for suffix in ("", "-wal", "-shm"):
                    file.with_name(file.name + suffix).unlink(missing_ok=True)
        return
    engine = sa.create_engine(parsed, isolation_level="AUTOCOMMIT", hide_parameters=True)
    with ExitStack() as stack:
        stack.callback(engine.dispose)
        with readable_errors():
            connection = stack.enter_context(engine.connect())
            if not _lock(connection, _SCRATCH):
                raise StoreError(f"Another backup is being tried in the database {parsed.database}. Try again later.")
            if sa.inspect(connection).has_schema(_SCRATCH):
                _empty(connection)
        _require_empty(parsed)
        with readable_errors():
            connection.exec_driver_sql(f"CREATE SCHEMA {_SCRATCH}")
        try:
            yield url
        finally:
            with readable_errors(), engine.connect() as another:
                _empty(another)


def _empty(connection: Connection) -> None:
    """Remove what a copy put into a database, and the mark."""
    tables = sa.MetaData()
    tables.reflect(connection)
    for name in tables.tables:
        connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{name}" CASCADE')
    connection.exec_driver_sql("DROP FUNCTION IF EXISTS refuse_change()")
    connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {_SCRATCH}")


@contextmanager
def _one_moment(url: str) -> Iterator[Connection]:
    """Yield a connection that sees one state of the database as long as it is used."""
    engine = open_engine(parse_url(url))
    options: dict[str, Any] = {"readonly": True}
    if engine.dialect.name == "postgresql":
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    try:
        with readable_errors(), engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection
    finally:
        engine.dispose()


def _contents(connection: Connection) -> Contents:
    tables = sorted(sa.inspect(connection).get_table_names())
    counts = {
        name: int(connection.execute(sa.select(sa.func.count()).select_from(sa.table(name))).scalar_one())
        for name in tables
    }
    last = connection.exec_driver_sql("SELECT sequence, hash FROM audit_event ORDER BY sequence DESC LIMIT 1").first()
    return Contents(
        revision=look(connection).revision or "",
        n_rows=counts,
        audit_head=last.hash if last else GENESIS,
        n_audit_events=last.sequence if last else 0,
        snapshot_folders=tuple(connection.exec_driver_sql("SELECT folder FROM cohort_snapshot ORDER BY id").scalars()),
    )


def _require_empty(url: URL) -> None:
    engine = open_engine(url)
    try:
        with readable_errors(), engine.connect().execution_options(readonly=True) as connection:
            tables = sa.inspect(connection).get_table_names()
    finally:
        engine.dispose()
    if tables:
        raise StoreError(
            f"The database {url.database} has tables already and is never overwritten. "
            "Name an empty one with --database."
        )


def _run(program: str, url: URL, *arguments: str) -> None:
    """Run a program of PostgreSQL; the password goes through the environment, where other accounts do not see it."""
    folder = os.environ.get(PROGRAMS_VARIABLE)
    found = shutil.which(program, path=folder) if folder else shutil.which(program)
    by_hand = f"Install PostgreSQL's client of the server's version, or name its folder in {PROGRAMS_VARIABLE}"
    if found is None:
        raise SettingsError(f"The program {program} was not found. {by_hand}.")
    plain = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    environment = {**os.environ, **({"PGPASSWORD": url.password} if url.password else {})}
    ended = subprocess.run(  # noqa: S603 - a program that was looked up, with arguments of our own
        [found, f"--dbname={plain}", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_WAIT_SECONDS,
    )
    if ended.returncode != 0:
        if "version mismatch" in ended.stderr:
            raise SettingsError(f"{program} is older than the database server. {by_hand}.")
        said = [line for line in ended.stderr.splitlines() if line.startswith(f"{program}: error: ")]
        raise StoreError(
            f"{program} ended with code {ended.returncode}; nothing was kept."
            + (f' It says: "{said[0].partition(": error: ")[2][:300]}".' if said else "")
            + f" To see more, run it by hand: {program} --dbname=URL {' '.join(arguments[:-1])}"
        )
