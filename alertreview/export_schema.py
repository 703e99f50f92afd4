"""Columns of every exported table, read from the one machine-readable dictionary in data/dictionary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path

import yaml

from alertreview.data_files import data_folder
from core.errors import InvalidInputError


class ColumnType(StrEnum):
    """Type of a column's values."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"


@dataclass(frozen=True)
class Column:
    """One column of an exported table."""

    name: str
    type: ColumnType
    meaning: str
    unit: str = ""
    missing: str = ""
    """When the value is missing; empty means never."""
    values: tuple[tuple[str, str], ...] = ()
    """Allowed values and what they mean; empty means free."""
    repeats: str = ""
    """ "reader": there is one such column for each reader."""


@dataclass(frozen=True)
class TableSchema:
    """One exported table."""

    name: str
    title: str
    one_row: str
    """What one row is."""
    key: tuple[str, ...]
    """Columns that together are unique."""
    columns: tuple[Column, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def for_readers(self, readers: Sequence[str]) -> "TableSchema":
        """Write out the columns that repeat for each reader."""
        columns: list[Column] = []
        for column in self.columns:
            if not column.repeats:
                columns.append(column)
            columns += [
                replace(column, name=column.name.format(reader=reader), repeats="")
                for reader in (readers if column.repeats else ())
            ]
        return replace(self, columns=tuple(columns))


@lru_cache(maxsize=1)
def table_schemas() -> Mapping[str, TableSchema]:
    """Return all exported tables by name, in alphabetical order."""
    found = {path.stem: _read(path.read_text(encoding="utf-8")) for path in sorted(_folder().glob("*.yaml"))}
    if not found:
        raise InvalidInputError(f"No data dictionary is in {_folder()}. Install the program again.")
    return found


def table_schema(name: str) -> TableSchema:
    """Return one exported table.

    Raises
    ------
    InvalidInputError
        If there is no such table; the text lists those there are.
    """
    schemas = table_schemas()
    if name not in schemas:
        raise InvalidInputError(f"There is no exported table '{name}'. Tables are {', '.join(schemas)}.")
    return schemas[name]


def dictionary_rows(schemas: Sequence[TableSchema]) -> Iterator[dict[str, object]]:
    """Yield the data dictionary of some tables, one row for each column."""
    for schema in schemas:
        for position, column in enumerate(schema.columns, start=1):
            yield {
                "table": schema.name,
                "position": position,
                "column": column.name,
                "type": str(column.type),
                "meaning": column.meaning,
                "unit": column.unit or None,
                "missing": column.missing or None,
                "values": "; ".join(f"{value} = {meaning}" for value, meaning in column.values) or None,
            }


def _folder() -> Path:
    return data_folder() / "dictionary"


def _read(text: str) -> TableSchema:
    plain = yaml.safe_load(text)
    columns = tuple(
        Column(
            name=str(c["name"]),
            type=ColumnType(c["type"]),
            meaning=str(c["meaning"]),
            unit=str(c.get("unit", "")),
            missing=str(c.get("missing", "")),
            values=tuple((str(value), str(meaning)) for value, meaning in c.get("values", {}).items()),
            repeats=str(c.get("repeats", "")),
        )
        for c in plain["columns"]
    )
    return TableSchema(str(plain["table"]), str(plain["title"]), str(plain["one_row"]), tuple(plain["key"]), columns)
