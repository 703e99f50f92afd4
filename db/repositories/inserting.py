"""Inserts many rows of one table: by COPY on PostgreSQL, by one prepared statement on SQLite."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session


def insert_many(session: Session, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all have the same columns; the database refuses all of them or none.

    Parameters
    ----------
    session : Session
        Of the unit of work.
    table : Table
        Where to.
    rows : sequence of mapping
        Values by column, as Python has them.
    """
    if not rows:
        return
    connection = session.connection()
    columns = [table.c[name] for name in rows[0]]
    processors = [_processor(column.type, connection.dialect) for column in columns]
    preparer = connection.dialect.identifier_preparer
    names = ", ".join(preparer.format_column(column) for column in columns)
    bound = (
        [value if process is None else process(value) for process, value in zip(processors, row.values(), strict=True)]
        for row in rows
    )
    if connection.dialect.name != "postgresql":
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {preparer.format_table(table)} ({names}) VALUES ({marks})"  # noqa: S608 - names of our own tables
        connection.exec_driver_sql(statement, [tuple(row) for row in bound])
        return
    driver: Any = connection.connection.driver_connection
    statement = f"COPY {preparer.format_table(table)} ({names}) FROM STDIN"
    errors: Any = connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in bound:
                copy.write_row(row)
    except errors as error:
        # COPY goes past SQLAlchemy, whose errors become ours; the text of the driver holds values of rows.
        raise sa.exc.DBAPIError.instance(
            statement, None, error, errors, hide_parameters=True, dialect=connection.dialect
        ) from None


def _processor(kind: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> Any:
    """Give what makes a value ready for the driver, or None; the few words of an enumeration are looked up once."""
    process = kind.dialect_impl(dialect).bind_processor(dialect)
    return cache(process) if process is not None and isinstance(kind, sa.Enum) else process
