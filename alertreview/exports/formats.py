"""Write a table as CSV, CSV for Excel, XLSX, Parquet or JSON lines: streaming, the same rows in all of them."""

import hashlib
import io
import json
import os
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Protocol
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import xlsxwriter

from alertreview.exports.schema import Cell, Column, ColumnType, TableSchema, excel_text, plain_row
from core.errors import InvalidInputError

ROWS_AT_ONCE = 5_000
"""Rows held in memory before they go to a Parquet file."""
EXCEL_ROWS = 1_048_575
EXCEL_TEXT = 32_767


class ExportFormat(StrEnum):
    """File formats of exported tables."""

    CSV = "csv"  # byte-exact values; text in quotes, a missing value is nothing between commas
    CSV_EXCEL = "csv-excel"
    """With a byte order mark, and an apostrophe before texts that Excel would calculate or convert."""
    XLSX = "xlsx"
    PARQUET = "parquet"
    JSONL = "jsonl"

    @property
    def suffix(self) -> str:
        """End of the file's name."""
        return {"csv-excel": ".excel.csv"}.get(self.value, f".{self.value}")


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written whole."""

    path: Path
    table: str
    format: ExportFormat
    n_rows: int
    n_bytes: int
    sha256: str


class _Writer(Protocol):
    def write(self, values: Sequence[Cell]) -> None: ...

    def close(self) -> None: ...


class _CsvWriter:
    """Quotes every text and nothing else, so that an empty text and a missing value stay different."""

    def __init__(self, path: Path, schema: TableSchema, *, for_excel: bool) -> None:
        self._file: IO[str] = path.open("w", encoding="utf-8-sig" if for_excel else "utf-8", newline="")
        self._protect = for_excel
        self._file.write(",".join(f'"{name}"' for name in schema.names) + "\r\n")

    def write(self, values: Sequence[Cell]) -> None:
        self._file.write(",".join(map(self._cell, values)) + "\r\n")

    def _cell(self, value: Cell) -> str:
        if value is None:
            return ""
        if isinstance(value, datetime):
            return f'"{value.isoformat()}"'
        if isinstance(value, str):
            text = excel_text(value) if self._protect else value
            return '"' + text.replace('"', '""') + '"'
        return str(value).lower() if isinstance(value, bool) else repr(value)

    def close(self) -> None:
        self._file.close()


class _JsonlWriter:
    def __init__(self, path: Path, schema: TableSchema) -> None:
        self._file: IO[str] = path.open("w", encoding="utf-8", newline="")
        self._names = schema.names

    def write(self, values: Sequence[Cell]) -> None:
        record = dict(zip(self._names, values, strict=True))
        self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False, default=datetime.isoformat) + "\n")

    def close(self) -> None:
        self._file.close()


_ARROW_TYPES = {
    ColumnType.TEXT: pa.string(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.TIME: pa.timestamp("us", tz="UTC"),
}


class _ParquetWriter:
    """Times are instants in the zone of the first one, so that 08:00 is shown as 08:00."""

    def __init__(self, path: Path, schema: TableSchema) -> None:
        self._path, self._columns = path, schema.columns
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[Sequence[Cell]] = []

    def write(self, values: Sequence[Cell]) -> None:
        self._rows.append(values)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        values = list(zip(*self._rows, strict=True)) or [()] * len(self._columns)
        if self._writer is None:
            types = [_arrow_type(column, of) for column, of in zip(self._columns, values, strict=True)]
            fields = [
                pa.field(c.name, of, metadata={"meaning": c.meaning})
                for c, of in zip(self._columns, types, strict=True)
            ]
            self._writer = pq.ParquetWriter(self._path, pa.schema(fields), compression="zstd")
        schema = self._writer.schema
        arrays = [pa.array(list(column), type=f.type) for column, f in zip(values, schema, strict=True)]
        self._writer.write_batch(pa.record_batch(arrays, schema=schema))
        self._rows = []

    def close(self) -> None:
        if self._rows or self._writer is None:
            self._flush()
        if self._writer is not None:
            self._writer.close()


def _arrow_type(column: Column, values: Sequence[Cell]) -> pa.DataType:
    first = next((value for value in values if isinstance(value, datetime)), None)
    if first is None or not isinstance(first.tzinfo, ZoneInfo):
        return _ARROW_TYPES[column.type]
    return pa.timestamp("us", tz=first.tzinfo.key)


class _XlsxWriter:
    """Cells are written by type: a text is never read as formula, link or number."""

    def __init__(self, path: Path, schema: TableSchema) -> None:
        # Rows on their way lie beside the file, not in a folder that others can read.
        options = {"constant_memory": True, "strings_to_urls": False, "tmpdir": str(path.parent)}
        self._book: Any = xlsxwriter.Workbook(str(path), options)
        # A fixed date of creation: the same rows give the same bytes.
        self._book.set_properties({"title": schema.title, "created": datetime(2000, 1, 1, tzinfo=UTC)})
        self._sheet: Any = self._book.add_worksheet(schema.name[:31])
        self._schema, self._row = schema, 0
        bold = self._book.add_format({"bold": True})
        for column, name in enumerate(schema.names):
            self._sheet.write_string(0, column, name, bold)
        self._sheet.freeze_panes(1, 0)

    def write(self, values: Sequence[Cell]) -> None:
        self._row += 1
        if self._row > EXCEL_ROWS:
            raise InvalidInputError(
                f"Table '{self._schema.name}' has more than {EXCEL_ROWS} rows, the most an Excel sheet holds. "
                "Choose CSV, Parquet or JSON lines, or filter."
            )
        for column, value in enumerate(values):
            if isinstance(value, datetime):
                self._write_text(column, value.isoformat())
            elif isinstance(value, str):
                self._write_text(column, value)
            elif isinstance(value, bool):
                self._sheet.write_boolean(self._row, column, value)
            elif isinstance(value, int) and abs(value) > 10**15:
                # Excel keeps 15 digits of a number.
                self._write_text(column, str(value))
            elif value is not None:
                self._sheet.write_number(self._row, column, value)

    def _write_text(self, column: int, text: str) -> None:
        if len(text) > EXCEL_TEXT:
            raise InvalidInputError(
                f"Row {self._row}, column '{self._schema.names[column]}' of table '{self._schema.name}' has "
                f"{len(text)} characters; an Excel cell holds {EXCEL_TEXT}. Choose CSV, Parquet or JSON lines."
            )
        self._sheet.write_string(self._row, column, text)

    def close(self) -> None:
        self._book.close()


def write_table(
    folder: Path,
    rows: Iterable[Mapping[str, object]],
    schema: TableSchema,
    formats: Sequence[ExportFormat],
) -> tuple[WrittenFile, ...]:
    """Write a table in one or more formats, in a single pass over its rows, which are never held in memory as a whole.

    Files are called after the table: ``judgments.csv``, ``judgments.excel.csv`` ... Raise InvalidInputError if a row
    does not fit the table or a format; then no file of this call is there, and earlier files of the same name are
    untouched.
    """
    if not formats:
        raise InvalidInputError(f"No format was chosen for table '{schema.name}'. Choose one of {_names()}.")
    folder.mkdir(parents=True, exist_ok=True)
    paths = {chosen: folder / f"{schema.name}{chosen.suffix}" for chosen in dict.fromkeys(formats)}
    # Written beside its place under another name: a reader never finds half a file.
    parts = {chosen: path.with_name(f".{path.name}.{secrets.token_hex(4)}.part") for chosen, path in paths.items()}
    try:
        n_rows = _write_all(parts, rows, schema)
        written = tuple(_finish(parts[c], paths[c], schema.name, c, n_rows) for c in paths)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return written


def _names() -> str:
    return ", ".join(f.value for f in ExportFormat)


def _write_all(parts: Mapping[ExportFormat, Path], rows: Iterable[Mapping[str, object]], schema: TableSchema) -> int:
    writers: list[_Writer] = []
    n_rows = 0
    try:
        writers += [_open(chosen, part, schema) for chosen, part in parts.items()]
        for row in rows:
            values = plain_row(row, schema)
            for writer in writers:
                writer.write(values)
            n_rows += 1
    finally:
        for writer in writers:
            writer.close()
    return n_rows


def _open(chosen: ExportFormat, path: Path, schema: TableSchema) -> _Writer:
    if chosen is ExportFormat.XLSX:
        return _XlsxWriter(path, schema)
    if chosen is ExportFormat.PARQUET:
        return _ParquetWriter(path, schema)
    if chosen is ExportFormat.JSONL:
        return _JsonlWriter(path, schema)
    return _CsvWriter(path, schema, for_excel=chosen is ExportFormat.CSV_EXCEL)


def _finish(part: Path, path: Path, table: str, chosen: ExportFormat, n_rows: int) -> WrittenFile:
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    n_bytes = part.stat().st_size
    part.replace(path)
    return WrittenFile(path, table, chosen, n_rows, n_bytes, digest)


CHECKSUMS = "SHA256SUMS"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Earliest date a zip can hold: the same files give the same bytes."""


@contextmanager
def scratch_in(place: Path) -> Iterator[Path]:
    """Make a folder that only its owner may read, and remove it whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix=".export-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def digest_of(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def checksums(folder: Path) -> str:
    """List the SHA-256 of every file below a folder, in the form that ``sha256sum --check`` reads."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{digest_of(path.read_bytes())}  {path.relative_to(folder).as_posix()}" for path in files]
    return "".join(f"{line}\n" for line in lines)


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of the list of checksums, which changes with any file of a folder or its name."""
    return digest_of(checksums(folder).encode())


def zip_folder(folder: Path, name: str, *, with_checksums: bool = False) -> bytes:
    """Pack a folder, the same bytes for the same files.

    Inside is one folder called `name`, with ``SHA256SUMS`` if wanted.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            _add(archive, f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        if with_checksums:
            _add(archive, f"{name}/{CHECKSUMS}", checksums(folder).encode())
    return packed.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    archive.writestr(entry, content)
