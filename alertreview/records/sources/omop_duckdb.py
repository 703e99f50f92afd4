"""OMOP tables in a DuckDB file, read only; the package duckdb is an optional dependency."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.errors import SourceError
from core.events.plausibility import Finding

_ROWS_PER_BATCH = 100_000
_MARK = b"DUCK"
_MARK_AT = 8


def is_duckdb(source: Path) -> bool:
    """Return whether a file is a DuckDB database."""
    if not source.is_file():
        return False
    with source.open("rb") as file:
        return file.read(_MARK_AT + len(_MARK))[_MARK_AT:] == _MARK


class DuckTables:
    """OMOP tables in a DuckDB file, by default of the schema ``main``.

    Raise SourceError when the package is not installed, or the file cannot be read.
    """

    def __init__(self, source: Path, schema: str | None) -> None:
        try:
            self._duckdb: Any = importlib.import_module("duckdb")
        except ImportError:
            raise SourceError(
                f"{source.name}: is a DuckDB database; reading it needs the package duckdb. Install "
                "'alertreview[duckdb]', or write its tables as files with EXPORT DATABASE 'folder' (FORMAT csv)."
            ) from None
        self.name = source.name
        self.remarks: list[str] = []
        self.findings: list[Finding] = []
        self._path = source
        self._schema = schema or "main"
        self._columns: dict[str, dict[str, str]] = {}
        self._spelled: dict[str, str] = {}
        sql = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = ?"
        self._catalog = self._opened(lambda connection: connection.sql("SELECT current_database()").fetchall()[0][0])
        for table, column in self._opened(lambda connection: connection.sql(sql, params=[self._schema]).fetchall()):
            self._spelled[table.lower()] = table
            self._columns.setdefault(table.lower(), {})[column.lower()] = column

    def _opened(self, ask: Any) -> Any:
        try:
            with self._duckdb.connect(str(self._path), read_only=True) as connection:
                return ask(connection)
        except self._duckdb.Error as error:
            raise SourceError(
                f"{self.name}: the database cannot be read ({type(error).__name__}). Check that it is whole and that "
                "no other program has it open."
            ) from None

    def columns(self, table: str) -> set[str]:
        """Return the columns of a table; empty if there is no such table."""
        return set(self._columns.get(table, ()))

    def where(self, table: str) -> str:
        """Return the name of the table with its schema."""
        return table if self._schema == "main" else f"{self._schema}.{table}"

    def batches(self, table: str, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Return the rows with the types of the database."""
        names = ", ".join(_quoted(self._columns[table][name]) for name in columns)
        # The file gives the catalog its name, which may be that of the schema as well.
        place = ".".join(map(_quoted, (self._catalog, self._schema, self._spelled[table])))
        sql = f"SELECT {names} FROM {place}"  # noqa: S608
        row = 1
        try:
            with self._duckdb.connect(str(self._path), read_only=True) as connection:
                for batch in connection.sql(sql).to_arrow_reader(_ROWS_PER_BATCH):
                    yield row, batch.rename_columns(columns)
                    row += batch.num_rows
        except (self._duckdb.Error, pa.ArrowException) as error:
            raise SourceError(
                f"{self.where(table)}: cannot be read after row {row:,} ({type(error).__name__}). Try again."
            ) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
