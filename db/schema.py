"""Makes, upgrades and recognises the schema; a file or schema of another program is never touched."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import URL, Connection, Engine

from core.errors import ForeignDatabaseError, RefusedError, StoreError
from db.connection.engine import APPLICATION_ID, poll, sqlite_file
from db.migrations.append_only import guard_all
from db.models import Record

_MARK_TABLE = "cohort_snapshot"
_REVISION_TABLE = "alembic_version"


@dataclass(frozen=True)
class SchemaState:
    """What a look into a database found."""

    is_empty: bool  # no table at all, but perhaps the one that names the last step
    is_ours: bool  # marked as this program's
    revision: str | None  # the last step that was run


def alembic_config(connection: Connection | None = None) -> Config:
    """Configure Alembic's commands; the steps lie inside the package, so that an installed wheel has them."""
    config = Config(attributes={"connection": connection} if connection is not None else {})
    folder = Path(__file__).resolve().parent / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@cache
def head() -> str:
    """Return the revision that this version of the program needs."""
    revision = ScriptDirectory.from_config(alembic_config()).get_current_head()
    if revision is None:
        raise StoreError("The program was installed without the steps of its schema. Install it again.")
    return revision


@cache
def revisions() -> tuple[str, ...]:
    """Return all revisions that this version knows, oldest first."""
    return tuple(sorted(step.revision for step in ScriptDirectory.from_config(alembic_config()).walk_revisions()))


def look(connection: Connection) -> SchemaState:
    """Find out whose database this is, without changing it."""
    tables = set(sa.inspect(connection).get_table_names())
    if connection.dialect.name == "sqlite":
        is_ours = connection.exec_driver_sql("PRAGMA application_id").scalar() == APPLICATION_ID
    else:
        is_ours = {_MARK_TABLE, _REVISION_TABLE} <= tables
    revision = MigrationContext.configure(connection).get_current_revision() if _REVISION_TABLE in tables else None
    return SchemaState(is_empty=not tables - {_REVISION_TABLE}, is_ours=is_ours, revision=revision)


def refuse_foreign(state: SchemaState, name: str) -> None:
    """Raise ForeignDatabaseError for a database of another program or of a newer version of this one."""
    if not state.is_empty and not state.is_ours:
        raise ForeignDatabaseError(
            f"The database {name} belongs to another program: it has tables, and not this program's mark. "
            "Name another file or database with --database; this one was left as it is."
        )
    if state.revision is not None and state.revision < revisions()[0]:
        raise ForeignDatabaseError(
            f"The database {name} has schema {state.revision}, which is older than release 0.1.0. "
            "Run 'alertreview init' of that release first; this version goes on from there."
        )
    if state.revision is not None and state.revision not in revisions():
        raise ForeignDatabaseError(
            f"The database {name} has schema {state.revision}, which this version of alertreview does not know. "
            "It was written by a newer version: install that one."
        )


def check(connection: Connection, name: str) -> None:
    """Refuse to work on a database whose schema is not exactly this version's.

    Raise ForeignDatabaseError if it is another program's or a newer version's, StoreError, which names the command that
    mends it, if it is empty or older.
    """
    state = look(connection)
    refuse_foreign(state, name)
    if state.revision is None:
        raise StoreError(f"The database {name} is empty. Run 'alertreview init' with the same --home or --database.")
    if state.revision != head():
        raise StoreError(
            f"The database {name} has schema {state.revision}, this version of alertreview needs {head()}. "
            "Run 'alertreview init' with the same --home or --database to upgrade it; a backup is made first."
        )


def upgrade(engine: Engine, url: URL, name: str, revision: str = "head") -> None:
    """Make the tables of the models in an empty database, or run the steps to a revision, in one transaction."""
    with engine.connect() as connection:
        with foreign_keys_at_rest(connection), connection.begin():
            _run_steps(connection, name, head() if revision == "head" else revision)
        if sqlite_file(url) is not None:
            poll(lambda: _driver_execute(connection, "PRAGMA journal_mode = WAL"))


@contextmanager
def foreign_keys_at_rest(connection: Connection) -> Iterator[None]:
    """Switch foreign keys off on SQLite while tables are rebuilt; see `refuse_dangling`."""
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite:
        _driver_execute(connection, "PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        if is_sqlite:
            _driver_execute(connection, "PRAGMA foreign_keys = ON")


def refuse_dangling(connection: Connection, name: str) -> None:
    """Raise StoreError if rows of an SQLite database would point nowhere after a change of the schema."""
    if (
        connection.dialect.name == "sqlite"
        and connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None
    ):
        raise StoreError(
            f"The change of {name} was undone: rows would point to rows that do not exist. "
            "Restore the last verified backup, and please report this."
        )


def _run_steps(connection: Connection, name: str, revision: str) -> None:
    state = look(connection)
    refuse_foreign(state, name)
    if state.revision is not None and state.revision >= revision:
        return
    if state.revision is None:
        Record.metadata.create_all(connection, checkfirst=False)
        guard_all(connection)
        command.stamp(alembic_config(connection), head())
    else:
        command.upgrade(alembic_config(connection), revision)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    refuse_dangling(connection, name)


def _driver_execute(connection: Connection, pragma: str) -> None:
    """Run a pragma outside of any transaction, where it takes effect."""
    driver = connection.connection.dbapi_connection
    if driver is not None:
        driver.cursor().execute(pragma)


Layout = dict[str, frozenset[str]]
"""Columns of each table."""


def downgrade(engine: Engine, name: str, revision: str, *, discard: bool = False) -> list[str]:
    """Downgrade the schema to a revision, in one transaction; return what was lost: "table triage_note (3 rows)".

    Raise RefusedError, which names every table and column, if something would be lost and `discard` is false,
    ForeignDatabaseError if the database is not this program's, or there is no such step below its own.
    """
    with engine.connect() as connection, foreign_keys_at_rest(connection), connection.begin():
        _require_below(connection, name, revision)
        before = _layout(connection)
        lost = _losses(connection, before, revision)
        if lost and not discard:
            raise RefusedError(
                f"Going back to schema {revision} would lose {', '.join(lost)}. Make a backup, then repeat it with "
                "--discard, or restore a backup of that schema."
            )
        command.downgrade(alembic_config(connection), revision)
        refuse_dangling(connection, name)
    return lost


def _require_below(connection: Connection, name: str, revision: str) -> None:
    state = look(connection)
    refuse_foreign(state, name)
    below = [step for step in revisions() if state.revision is not None and step <= state.revision]
    if revision not in below:
        known = ", ".join(below) or "none, because it is empty"
        raise ForeignDatabaseError(
            f"The database {name} has schema {state.revision or 'none'} and cannot go back to {revision!r}. "
            f"It can go back to: {known}."
        )


def _layout(connection: Connection) -> Layout:
    inspector = sa.inspect(connection)
    return {
        table: frozenset(column["name"] for column in inspector.get_columns(table))
        for table in inspector.get_table_names()
    }


def _losses(connection: Connection, before: Layout, revision: str) -> list[str]:
    """Return what a downgrade would lose, by going down and up again in a transaction that is rolled back."""
    counts = {table: _count(connection, table) for table in before}
    trial = connection.begin_nested()
    command.downgrade(alembic_config(connection), revision)
    after = _layout(connection)
    fewer = {table: counts[table] - (_count(connection, table) if table in after else 0) for table in before}
    command.upgrade(alembic_config(connection), head())
    gone = {table: sorted(before[table] - after[table]) for table in sorted(before) if table in after}
    again = {table: _digests(connection, table, columns) for table, columns in gone.items()}
    trial.rollback()
    lost = [
        f"{n} {'row' if n == 1 else 'rows'} of table {table}"
        for table, n in sorted(fewer.items())
        if n and table != _REVISION_TABLE  # empty at the very bottom
    ]
    for table, columns in gone.items():
        kept = _digests(connection, table, columns)
        if not fewer[table]:
            lost += [f"the values of column {table}.{name}" for name in columns if kept[name] != again[table][name]]
    return lost


def _digests(connection: Connection, table: str, columns: Sequence[str]) -> dict[str, str]:
    """Hash columns of a table, in the order of its primary key."""
    if not columns:
        return {}
    keys = sa.inspect(connection).get_pk_constraint(table)["constrained_columns"]
    statement: Any = sa.select(*(sa.column(name) for name in columns)).select_from(sa.table(table))
    digests = {name: hashlib.sha256() for name in columns}
    for row in connection.execute(statement.order_by(*(sa.column(key) for key in keys))):
        for name, value in zip(columns, row, strict=True):
            digests[name].update(f"{value!r};".encode())
    return {name: digest.hexdigest() for name, digest in digests.items()}


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(sa.table(table))).scalar_one())
