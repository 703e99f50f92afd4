"""The descriptor of an export for tools that read tables with types: a Frictionless data package of its CSV files."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from alertreview.exports.formats import ExportFormat, WrittenFile
from alertreview.exports.schema import Column, ColumnType, TableSchema

DATA_PACKAGE = "datapackage.json"
_TYPES = {
    ColumnType.TEXT: "string",
    ColumnType.INTEGER: "integer",
    ColumnType.NUMBER: "number",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.TIME: "datetime",
}


def write_data_package(
    folder: Path, files: Iterable[WrittenFile], schemas: Sequence[TableSchema], *, name: str, title: str
) -> None:
    """Write ``datapackage.json``: columns, types, keys and allowed values of every plain CSV file of an export.

    Parquet files hold their types themselves; the CSV for Excel and XLSX change texts that a spreadsheet would
    calculate. An export without plain CSV gets no descriptor. `name` and `title` are those of the study.
    """
    tables = {schema.name: schema for schema in schemas}
    resources = [_resource(f, folder, tables[f.table]) for f in files if f.format is ExportFormat.CSV]
    if resources:
        package = {"name": name, "title": title, "profile": "tabular-data-package", "resources": resources}
        text = json.dumps(package, ensure_ascii=False, indent=2) + "\n"
        (folder / DATA_PACKAGE).write_text(text, encoding="utf-8")


def _resource(file: WrittenFile, folder: Path, schema: TableSchema) -> dict[str, Any]:
    return {
        "name": schema.name.replace("_", "-"),
        "path": file.path.relative_to(folder).as_posix(),
        "title": schema.title,
        "description": f"One row is {schema.one_row}.",
        "profile": "tabular-data-resource",
        "encoding": "utf-8",
        "bytes": file.n_bytes,
        "hash": f"sha256:{file.sha256}",
        "schema": {
            "fields": [_field(column) for column in schema.columns],
            "primaryKey": list(schema.key),
            "missingValues": [""],
        },
    }


def _field(column: Column) -> dict[str, Any]:
    constraints: dict[str, Any] = {} if column.missing else {"required": True}
    if column.values:
        constraints["enum"] = [int(v) if column.type is ColumnType.INTEGER else v for v, _ in column.values]
    field: dict[str, Any] = {"name": column.name, "type": _TYPES[column.type], "description": column.meaning}
    if column.unit:
        field["unit"] = column.unit
    return field | ({"constraints": constraints} if constraints else {})
