"""Reads columns into plain rows by name."""

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import CursorResult, Delete, Select, Update
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute, Session

T = TypeVar("T")
Query: TypeAlias = Select[*tuple[Any, ...]]


def columns(model: type[DeclarativeBase], row_type: type[Any]) -> list[InstrumentedAttribute[Any]]:
    """Give the columns of a table that a row type asks for, in its order."""
    return [getattr(model, field.name) for field in dataclasses.fields(row_type)]


def read_all(session: Session, row_type: type[T], statement: Query) -> list[T]:
    """Run a query whose columns are named like the fields of the row type."""
    return [row_type(**row) for row in session.execute(statement).mappings()]


def read_one(session: Session, row_type: type[T], statement: Query) -> T | None:
    """Run a query for at most one row."""
    row = session.execute(statement).mappings().one_or_none()
    return None if row is None else row_type(**row)


def change(session: Session, statement: Update | Delete) -> int:
    """Run an update or delete and give the number of rows it met, which is what claims and saves are judged by."""
    result = session.execute(statement.execution_options(synchronize_session=False))
    if not isinstance(result, CursorResult):
        raise TypeError("The statement gave no row count.")
    return result.rowcount


def values(row: object) -> dict[str, Any]:
    """Give the fields of a row as a dict, without copying arrays as `dataclasses.asdict` would."""
    row_type: Any = type(row)
    names, read = _fields(row_type)
    return dict(zip(names, read(row), strict=True))


@cache
def _fields(row_type: Any) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    """Give the names of a row type's fields and what reads them at once: a scoring run has a million rows."""
    names = tuple(field.name for field in dataclasses.fields(row_type))
    return names, attrgetter(*names)
