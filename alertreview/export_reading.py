"""Read exported tables back with their types: missing stays missing, an id stays text, a number keeps every digit."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from alertreview.export_formats import ExportFormat
from alertreview.export_schema import ColumnType, TableSchema
from alertreview.export_values import Plain, from_excel_text
from core.errors import InvalidInputError


def read_rows(path: Path, schema: TableSchema, file_format: ExportFormat) -> Iterator[dict[str, Plain]]:
    """Yield the rows of an exported file.

    Parameters
    ----------
    path : Path
    schema : TableSchema
        With its repeating columns written out.
    file_format : ExportFormat
        Any but XLSX, which is for people.

    Yields
    ------
    dict
        Column name to text, int, float, bool or None. In CSV an empty text reads as missing.

    Raises
    ------
    InvalidInputError
        If the file's columns are not the table's, or a value does not have its column's type.
    """
    if file_format is ExportFormat.PARQUET:
        yield from _parquet(path, schema)
    elif file_format is ExportFormat.JSONL:
        yield from _jsonl(path, schema)
    elif file_format is ExportFormat.XLSX:
        raise InvalidInputError(f"{path.name} is for people. Read the CSV, Parquet or JSON lines file instead.")
    else:
        yield from _csv(path, schema, from_excel=file_format is ExportFormat.CSV_EXCEL)


def _demand_columns(path: Path, schema: TableSchema, found: list[str]) -> None:
    if found != list(schema.names):
        missing = [name for name in schema.names if name not in found]
        what = f"has no column '{missing[0]}'" if missing else "has columns in another order, or more of them"
        raise InvalidInputError(f"{path.name} {what}; it is not an export of table '{schema.name}'. Export again.")


def _csv(path: Path, schema: TableSchema, *, from_excel: bool) -> Iterator[dict[str, Plain]]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        _demand_columns(path, schema, next(reader, []))
        for number, cells in enumerate(reader, start=1):
            try:
                row: dict[str, Plain] = {}
                for column, cell in zip(schema.columns, cells, strict=True):
                    text = column.type is ColumnType.TEXT
                    cell = from_excel_text(cell) if from_excel and text else cell
                    row[column.name] = _from_text(cell, column.type)
            except ValueError:
                raise InvalidInputError(f"{path.name}, row {number}: a value does not fit its column.") from None
            yield row


def _from_text(cell: str, kind: ColumnType) -> Plain:
    if cell == "":
        return None
    if kind is ColumnType.INTEGER:
        return int(cell)
    if kind is ColumnType.NUMBER:
        return float(cell)
    if kind is ColumnType.BOOLEAN:
        return {"true": True, "false": False}[cell.lower()] if cell.lower() in ("true", "false") else bool(int(cell))
    return cell


def _jsonl(path: Path, schema: TableSchema) -> Iterator[dict[str, Plain]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            try:
                record: Any = json.loads(line)
            except ValueError:
                raise InvalidInputError(f"{path.name}, line {number} is not JSON. Export again.") from None
            _demand_columns(path, schema, list(record))
            yield record


def _parquet(path: Path, schema: TableSchema) -> Iterator[dict[str, Plain]]:
    with pq.ParquetFile(path) as file:
        _demand_columns(path, schema, list(file.schema_arrow.names))
        for batch in file.iter_batches():
            yield from batch.to_pylist()
