"""Reads columns into plain rows by name."""

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import CursorResult, Delete, Executable, Select, Update
from sqlalchemy.engine import Connection
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute

from core.errors import NotFoundError

T = TypeVar("T")
Query: TypeAlias = Select[*tuple[Any, ...]]
SEEN = "seen"
"""Option of a reader's connection: what has been looked up on it already."""


def columns(model: type[DeclarativeBase], row_type: type[Any]) -> list[InstrumentedAttribute[Any]]:
    """Return the columns of a table that a row type asks for, in its order."""
    return [getattr(model, field.name) for field in dataclasses.fields(row_type)]


def run(connection: Connection, statement: Executable, **given: Any) -> CursorResult[*tuple[Any, ...]]:
    """Run a statement on the connection of the unit of work, past the machinery for objects: only rows are read here.

    Parameters
    ----------
    connection : Connection
        Of the unit of work.
    statement : executable
        A query over columns, or a change.
    **given : object
        Values of its parameters.
    """
    return connection.execute(statement, given)


def read_all(connection: Connection, row_type: type[T], statement: Query, **given: Any) -> list[T]:
    """Run a query whose columns are named like the fields of the row type."""
    return [row_type(**row) for row in run(connection, statement, **given).mappings()]


def read_one(connection: Connection, row_type: type[T], statement: Query, **given: Any) -> T | None:
    """Run a query for at most one row."""
    row = run(connection, statement, **given).mappings().one_or_none()
    return None if row is None else row_type(**row)


def read_the(connection: Connection, row_type: type[T], statement: Query, missing: str, **given: Any) -> T:
    """Run a query for the one row there has to be.

    Parameters
    ----------
    connection : Connection
        Of the unit of work.
    row_type : type
        As in `read_one`.
    statement : Query
        Columns named like the fields of the row type.
    missing : str
        What to tell a person when there is no such row.
    **given : object
        Values of the statement's parameters.

    Raises
    ------
    NotFoundError
        If there is no such row.
    """
    found = read_one(connection, row_type, statement, **given)
    if found is None:
        raise NotFoundError(missing)
    return found


def change(connection: Connection, statement: Update | Delete, **given: Any) -> int:
    """Run an update or delete and give the number of rows it met, which is what claims and saves are judged by."""
    return run(connection, statement, **given).rowcount


def values(row: object) -> dict[str, Any]:
    """Return the fields of a row as a dict, without copying arrays as `dataclasses.asdict` would."""
    row_type: Any = type(row)
    names, read = _fields(row_type)
    return dict(zip(names, read(row), strict=True))


@cache
def _fields(row_type: Any) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    """Return the names of a row type's fields and what reads them at once: a scoring run has a million rows."""
    names = tuple(field.name for field in dataclasses.fields(row_type))
    return names, attrgetter(*names)
