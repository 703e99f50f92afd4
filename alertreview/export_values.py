"""Check the values of a row against its table's columns; the same plain values then go into every file format."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from alertreview.export_schema import Column, ColumnType, TableSchema
from core.errors import InvalidInputError

Plain = str | int | float | bool | None

_CALCULATED = ("=", "+", "-", "@", "\t", "\r", "\n", "'", "＝", "＋", "－", "＠")
"""A text that starts like this would be calculated by a spreadsheet, or loses its first character."""
_CONVERTED = re.compile(
    r"\s*[\d.,(]|\s*(true|false)\s*$|\s*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s\-./]*\d",
    re.IGNORECASE,
)
"""A text that looks like a number, a date or a truth value would be turned into one."""


def plain_row(row: Mapping[str, object], schema: TableSchema) -> list[Plain]:
    """Turn a row into plain values in the order of the table's columns.

    Parameters
    ----------
    row : mapping
        Column name to value; a name that is left out is a missing value. Identifiers may be given as whole numbers and
        become text. Times must carry a zone and become ISO 8601 with offset. NaN is a missing value.
    schema : TableSchema

    Returns
    -------
    list
        Text, int, float, bool or None.

    Raises
    ------
    InvalidInputError
        If a name is no column of the table, or a value does not have its column's type.
    """
    unknown = row.keys() - set(schema.names)
    if unknown:
        raise InvalidInputError(f"Table '{schema.name}' has no column '{min(unknown)}'; its columns are fixed.")
    return [_plain(row.get(column.name), column, schema) for column in schema.columns]


def _plain(value: Any, column: Column, schema: TableSchema) -> Plain:
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


def _time(value: Any) -> str:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise TypeError
    return value.isoformat()


_CONVERT: dict[ColumnType, Callable[[Any], Plain]] = {
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
    return f"'{text}" if text.startswith(_CALCULATED) or _CONVERTED.match(text) else text


def from_excel_text(text: str) -> str:
    """Undo `excel_text`."""
    return text.removeprefix("'")
