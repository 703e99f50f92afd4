"""Inserts many rows of one table: by COPY on PostgreSQL, by one prepared statement on SQLite."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection


class Bound(NamedTuple):
    """Rows as the driver of one kind of database takes them."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def bind(dialect: sa.Dialect, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> Bound:
    """Make rows that all have the same columns ready for the driver; best done before the lock is taken."""
    if not rows:
        return Bound((), [])
    columns = [table.c[name] for name in rows[0]]
    processors = [_processor(column.type, dialect) for column in columns]
    # Column by column: value by value takes three times as long.
    values = zip(*(row.values() for row in rows), strict=True)
    made = [
        column if process is None else map(process, column) for process, column in zip(processors, values, strict=True)
    ]
    return Bound(tuple(column.name for column in columns), list(zip(*made, strict=True)))


def insert_many(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all have the same columns; the database refuses all of them or none."""
    insert_bound(connection, table, bind(connection.dialect, table, rows))


def insert_bound(connection: Connection, table: sa.Table, bound: Bound) -> None:
    """Insert rows that `bind` has made ready; the database refuses all of them or none."""
    if not bound.rows:
        return
    preparer = connection.dialect.identifier_preparer
    names = ", ".join(preparer.format_column(table.c[name]) for name in bound.columns)
    if connection.dialect.name != "postgresql":
        marks = ", ".join("?" * len(bound.columns))
        statement = f"INSERT INTO {preparer.format_table(table)} ({names}) VALUES ({marks})"  # noqa: S608 - names of our own tables
        connection.exec_driver_sql(statement, bound.rows)
        return
    driver: Any = connection.connection.driver_connection
    statement = f"COPY {preparer.format_table(table)} ({names}) FROM STDIN"
    errors: Any = connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in bound.rows:
                copy.write_row(row)
    except errors as error:
        # COPY goes past SQLAlchemy, whose errors become ours; the text of the driver holds values of rows.
        raise sa.exc.DBAPIError.instance(
            statement, None, error, errors, hide_parameters=True, dialect=connection.dialect
        ) from None


def _processor(kind: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> Any:
    """Return what makes a value ready for the driver, or None; words of an enumeration, yes and no are made once."""
    process = kind.dialect_impl(dialect).bind_processor(dialect)
    return cache(process) if process is not None and isinstance(kind, (sa.Enum, sa.Boolean)) else process
