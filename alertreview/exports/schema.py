"""Columns of every exported table, read from the one machine-readable dictionary in data/dictionary."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, TypeAdapter

from alertreview.files import data_folder
from core.errors import InvalidInputError
from core.kinds import ACT_WORDS, Kind, in_words
from core.vocabulary import Answer


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
    missing: str = ""  # when the value is missing; empty means never
    values: tuple[tuple[str, str], ...] = ()  # allowed values and what they mean; empty means free
    repeats: str = ""  # "reader": there is one such column for each reader


@dataclass(frozen=True)
class TableSchema:
    """One exported table."""

    name: Annotated[str, Field(alias="table")]
    title: str
    one_row: str  # what one row is
    key: tuple[str, ...]  # columns that together are unique
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


@lru_cache(maxsize=24)
def table_schemas(snapshot_hour: str = "the snapshot hour") -> Mapping[str, TableSchema]:
    """Return all exported tables by name, in alphabetical order.

    The dictionary names the snapshot hour as given: "06:00".
    """
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_folder().glob("*.yaml"))}
    found = {name: _read(text.replace("{snapshot_hour}", snapshot_hour)) for name, text in texts.items()}
    if not found:
        raise InvalidInputError(f"No data dictionary is in {_folder()}. Install the program again.")
    return found


def table_schema(name: str, snapshot_hour: str = "the snapshot hour") -> TableSchema:
    """Return one exported table; raise InvalidInputError, which lists those there are, if there is no such table."""
    schemas = table_schemas(snapshot_hour)
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


_SCHEMAS = TypeAdapter(TableSchema)


def _read(text: str) -> TableSchema:
    plain = yaml.safe_load(text)
    columns = [column | {"values": tuple(_values(column.get("values", {})))} for column in plain["columns"]]
    return _SCHEMAS.validate_python(plain | {"columns": columns})


def _values(plain: str | Mapping[object, object]) -> Iterator[tuple[str, str]]:
    """Yield values with their meaning; a name alone stands for all values of that registration."""
    for value, meaning in ({plain: None} if isinstance(plain, str) else plain).items():
        if meaning is None:
            yield from _REGISTERED[str(value)].items()
        else:
            yield str(value), str(meaning)


def _kind_meaning(kind: Kind) -> str:
    said = in_words(word for event in kind.events for word in ACT_WORDS.get(event, ()))
    return f"{kind.words.item} {said}" if said else kind.words.noun


_REGISTERED = {
    "answers": {a.key: a.words if a.is_vote else f"{a.words} (no vote)" for a in sorted(Answer)},
    "kinds": {kind.value: _kind_meaning(kind) for kind in Kind},
}


Plain = str | int | float | bool | None
Cell = Plain | datetime
_CUT = ("\t", "\r", "\n", "'")
"""A text that starts like this loses its first character in a spreadsheet."""
_CALCULATED = re.compile(r"[\s\x00-\x1f\xad\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠﹦﹢﹣﹫]")
"""A text that starts like this, after spaces and invisible characters, could be calculated by a spreadsheet."""
_CONVERTED = re.compile(
    r"\s*[\d.,(]|\s*(true|false)\s*$|\s*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s\-./]*\d",
    re.IGNORECASE,
)
"""A text that looks like a number, a date or a truth value would be turned into one."""


def plain_row(row: Mapping[str, object], schema: TableSchema) -> list[Cell]:
    """Turn a row, by column name, into plain values in the order of the table's columns.

    A name that is left out, and NaN, is a missing value. Identifiers may be given as whole numbers and become text.
    Times must carry a zone. Raise InvalidInputError if a name is no column of the table, or a value does not have its
    column's type.
    """
    unknown = row.keys() - set(schema.names)
    if unknown:
        raise InvalidInputError(f"Table '{schema.name}' has no column '{min(unknown)}'; its columns are fixed.")
    return [_plain(row.get(column.name), column, schema) for column in schema.columns]


def _plain(value: Any, column: Column, schema: TableSchema) -> Cell:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    try:
        return _CONVERT[column.type](value)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"Column '{column.name}' of table '{schema.name}' holds a {type(value).__name__} where {column.type} is "
            "expected (finite numbers, times with a zone). Nothing was written."
        ) from None


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise TypeError
    text = str(value)
    text.encode("utf-8")
    return text


def _integer(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, (bool, str)) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _boolean(value: Any) -> bool:
    if isinstance(value, str) or value not in (True, False):
        raise TypeError
    return bool(value)


def _time(value: Any) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise TypeError
    return value


_CONVERT: dict[ColumnType, Callable[[Any], Cell]] = {
    ColumnType.TEXT: _text,
    ColumnType.INTEGER: _integer,
    ColumnType.NUMBER: _number,
    ColumnType.BOOLEAN: _boolean,
    ColumnType.TIME: _time,
}


def excel_text(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would calculate or convert; `from_excel_text` takes it off.

    Examples
    --------
    >>> excel_text("=HYPERLINK(1)"), excel_text("001017"), excel_text("Müller µmol/L")
    ("'=HYPERLINK(1)", "'001017", 'Müller µmol/L')
    """
    is_changed = text.startswith(_CUT) or _CALCULATED.match(text) or _CONVERTED.match(text)
    return f"'{text}" if is_changed else text


def from_excel_text(text: str) -> str:
    """Undo `excel_text`."""
    return text.removeprefix("'")
