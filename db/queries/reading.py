"""What repositories share: the connection, and reading and inserting records.

Statements are for `sqlalchemy.engine.Connection`, past the machinery for objects. Those of busy paths are constants
whose values are given at each run: putting a statement together takes several times as long as running it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import CursorResult, Delete, Executable, Select, Update, bindparam, insert, select
from sqlalchemy.engine import Connection

from core.errors import NotFoundError, StoreError
from db.cache import Caches
from db.models.base import UNSAVED, Record, columns
from db.queries.seals import mark_rows

R = TypeVar("R", bound=Record)
T = TypeVar("T")
Query: TypeAlias = Select[*tuple[Any, ...]]
ROWS_AT_ONCE = 500
"""Values in one IN list: well below what any database takes."""
_INSERT_INTO = cache(insert)
"""The statement for a table; a new one for each row would be looked up again."""
SEEN = "seen"
"""Option of a reader's connection: what has been looked up on it already."""


def given(name: str) -> Any:
    """Return a value that is given when the statement runs, under a name that no column has: with `_`."""
    return bindparam(f"{name}_")


def select_records(model: type[Record], row_type: type[Record] | None = None, *joined: Any) -> Query:
    """Return a query for records of a table, or of a type with some of its columns and others that are joined."""
    return select(*columns(model, row_type), *joined)


def make_records(row_type: type[R], names: Sequence[str], rows: Iterable[Iterable[Any]]) -> Iterator[R]:
    """Yield records of rows whose values have these names, in a seventh of the time that `__init__` takes.

    Raise StoreError if the names are not those of the record's fields.
    """
    if set(names) != set(row_type.__fields__):
        raise StoreError(f"A query for {row_type.__name__} does not have its fields. Please report this.")
    for row in rows:
        record = object.__new__(row_type)
        record.__dict__.update(zip(names, row, strict=True))
        yield record


def stored_values(record: Record) -> dict[str, Any]:
    """Return the values of a record by column, for an insert; without a number that the database is to give."""
    given = dict(vars(record))
    key = record.__table__.autoincrement_column
    if key is not None and given[key.name] == UNSAVED:
        del given[key.name]
    return given


def run(connection: Connection, statement: Executable, **values: Any) -> CursorResult[*tuple[Any, ...]]:
    """Run a statement with the values of its parameters."""
    return connection.execute(statement, values)


class Repository:
    """Records of one subject, on the connection of a unit of work; readers share caches, a writer has none."""

    def __init__(self, connection: Connection, caches: Caches | None = None) -> None:
        self._connection = connection
        self._caches = caches

    def _run(self, statement: Executable, **values: Any) -> CursorResult[*tuple[Any, ...]]:
        return self._connection.execute(statement, values)

    def _all(self, row_type: type[R], statement: Query, **values: Any) -> list[R]:
        """Run a query whose columns are named like the fields of the record type."""
        found = self._connection.execute(statement, values)
        return list(make_records(row_type, tuple(found.keys()), found))

    def _one(self, row_type: type[R], statement: Query, **values: Any) -> R | None:
        """Run a query for at most one record; the first of several."""
        return next(iter(self._all(row_type, statement, **values)), None)

    def _the(self, row_type: type[R], statement: Query, missing: str, **values: Any) -> R:
        """Return the one record there has to be; raise NotFoundError with the text `missing` if there is none."""
        found = self._one(row_type, statement, **values)
        if found is None:
            raise NotFoundError(missing)
        return found

    def _change(self, statement: Update | Delete, **values: Any) -> int:
        """Run an update or delete and return the number of rows it met: what claims and saves are judged by."""
        return self._connection.execute(statement, values).rowcount

    def _insert(self, record: Record) -> Any:
        """Insert a record and return its number; the next audit row seals it."""
        values = stored_values(record)
        key: Any = self._connection.execute(_INSERT_INTO(record.__table__), values).inserted_primary_key
        mark_rows(self._connection, type(record), [values], key[0])
        return key[0]

    def _insert_all(self, records: Iterable[Record]) -> None:
        """Insert records of one table at once; the next audit row seals what they belong to, which they name."""
        listed = list(records)
        if listed:
            model, rows = type(listed[0]), [stored_values(record) for record in listed]
            self._connection.execute(_INSERT_INTO(model.__table__), rows)
            mark_rows(self._connection, model, rows)


def in_parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield values in parts of `ROWS_AT_ONCE`."""
    for start in range(0, len(values), ROWS_AT_ONCE):
        yield values[start : start + ROWS_AT_ONCE]
