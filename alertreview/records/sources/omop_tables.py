"""Tables of an OMOP CDM, wherever they are: CSV files in a folder or zip archive, or a database."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pyarrow as pa
import sqlalchemy as sa

from alertreview.records.sources.base import lacking, unread
from alertreview.records.sources.epoch import Unit, is_time, times_of, unit_of
from alertreview.records.sources.meds import open_parquet, refuse_doubled, refusing_damage
from alertreview.records.sources.text_tables import (
    Layout,
    TextFile,
    batches,
    guesses,
    is_ignored,
    look_at,
    text_files,
    unread_files,
)
from core.errors import SourceError
from core.events.plausibility import Finding

ROWS_PER_FETCH = 50_000
_SQLITE = b"SQLite format 3\0"
KNOWN_TABLES = frozenset(
    """
    care_site cdm_source cohort cohort_definition concept concept_ancestor concept_class concept_relationship
    concept_synonym condition_era condition_occurrence cost death device_exposure domain dose_era drug_era
    drug_exposure drug_strength episode episode_event fact_relationship location measurement metadata note note_nlp
    observation observation_period payer_plan_period person procedure_occurrence provider relationship
    source_to_concept_map specimen visit_detail visit_occurrence vocabulary
    """.split()  # noqa: SIM905
)


class Tables(Protocol):
    """Tables by name, in lower case, with columns in lower case."""

    name: str
    remarks: list[str]
    findings: list[Finding]

    def columns(self, table: str) -> set[str]:
        """Return the columns of a table; empty if there is no such table."""
        ...

    def where(self, table: str) -> str:
        """Return the name of the file or table, for errors."""
        ...

    def batches(self, table: str, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Return the rows in batches, with the number of the first row of each."""
        ...


class CsvTables:
    """OMOP tables as CSV files in a folder or zip archive, in any letter case.

    A table may carry a short prefix ("2b_concept.csv") or, when nothing else is there, a longer name that starts with
    the table's ("measurement_2025.csv.gz").
    """

    def __init__(self, source: Path) -> None:
        self.name = source.name
        self.remarks: list[str] = []
        self._files = _tables_of(text_files(source), self.remarks)
        read = {file.name for file in self._files.values()}
        others = [file.name for file in text_files(source) if file.name not in read]
        self.findings = unread([*unread_files(source), *others], self.remarks)
        self._layouts: dict[str, Layout] = {}

    def columns(self, table: str) -> set[str]:
        """Return the columns of a table; empty if there is no such table."""
        return {name.lower() for name in self._layout(table).columns} if table in self._files else set()

    def where(self, table: str) -> str:
        """Return the name of the file."""
        return self._files[table].name

    def batches(self, table: str, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Return the rows as text."""
        layout = self._layout(table)
        spelled = {name.lower(): name for name in layout.columns}
        for first_row, batch in batches(self._files[table], layout, [spelled[name] for name in columns]):
            yield first_row, batch.rename_columns(columns)

    def _layout(self, table: str) -> Layout:
        if table not in self._layouts:
            self._layouts[table] = look_at(self._files[table])
            self.remarks += guesses([(self._files[table], self._layouts[table])])
        return self._layouts[table]


def parquet_tables(source: Path) -> dict[str, list[Path]]:
    """Return the Parquet files of OMOP tables in a folder: ``person.parquet``, or parts in a folder of the name."""
    out: dict[str, list[Path]] = {}
    for path in sorted(source.rglob("*.parquet")) if source.is_dir() else ():
        inside = path.relative_to(source)
        names = [each.lower().removesuffix(".parquet") for each in reversed(inside.parts)]
        table = next((name for name in names if name in KNOWN_TABLES), None)
        if table and path.is_file() and not is_ignored(inside):
            out.setdefault(table, []).append(path)
    return out


class ParquetTables:
    """OMOP tables as Parquet files in a folder, a table in one file or in a folder of parts."""

    def __init__(self, source: Path) -> None:
        self.name = source.name
        self.remarks: list[str] = []
        self._files = parquet_tables(source)
        read = {str(path.relative_to(source)) for paths in self._files.values() for path in paths}
        found = unread_files(source, lambda name: False)
        self.findings = unread([name for name in found if name not in read], self.remarks)

    def columns(self, table: str) -> set[str]:
        """Return the columns of a table, also those that only some of its parts have; empty if there is none."""
        return set().union(*(self._spelled(path) for path in self._files.get(table, ())))

    @staticmethod
    def _spelled(path: Path) -> dict[str, str]:
        """Return the columns of a file as it spells them, by their name in lower case."""
        names = open_parquet(path).schema_arrow.names
        refuse_doubled(path, [name.lower() for name in names])
        return {name.lower(): name for name in names}

    def where(self, table: str) -> str:
        """Return the name of the file or folder."""
        first = self._files[table][0]
        return first.name if len(self._files[table]) == 1 else f"{table} ({len(self._files[table])} parquet files)"

    def batches(self, table: str, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Return the rows with the types of the files; a column that a part lacks is empty."""
        row = 1
        spelled = {path: self._spelled(path) for path in self._files[table]}
        self.remarks += lacking({path.name: [*filter(of.__contains__, columns)] for path, of in spelled.items()})
        for path, names in spelled.items():
            mine = [names[name] for name in columns if name in names]
            with refusing_damage(path):
                for batch in open_parquet(path).iter_batches(ROWS_PER_FETCH, columns=mine):
                    absent = pa.nulls(batch.num_rows, pa.string())
                    arrays = [_plain(batch[names[name]]) if name in names else absent for name in columns]
                    yield row, pa.RecordBatch.from_arrays(arrays, names=columns)
                    row += batch.num_rows


def _plain(column: pa.Array) -> pa.Array:
    """Return texts of any type of Arrow as the type that cells are read from."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return column.cast(kind).cast(pa.string()) if is_text else column


def database_url(source: Path) -> str:
    """Return the SQLAlchemy URL that opens a database file read only, "" if the file is none."""
    if not source.is_file():
        return ""
    with source.open("rb") as file:
        head = file.read(16)
    if head == _SQLITE:
        return f"sqlite:///file:{quote(str(source.resolve()))}?mode=ro&uri=true"
    return ""


def table_of(file: TextFile) -> str:
    """Return the name of the table in a file, without its schema or the short prefix of exports ("2b_concept.csv")."""
    return re.sub(r"^\d\w?_", "", file.stem.rpartition(".")[2])


def _tables_of(files: list[TextFile], remarks: list[str]) -> dict[str, TextFile]:
    out: dict[str, TextFile] = {}
    others: list[tuple[str, TextFile]] = []
    for file in files:
        stem = table_of(file)
        if stem not in KNOWN_TABLES:
            others.append((stem, file))
        elif stem in out:
            raise SourceError(f"{file.name} and {out[stem].name} are both the table {stem}. Remove one of them.")
        else:
            out[stem] = file
    for stem, file in others:
        for table in ("measurement", "drug_exposure"):
            if stem.startswith(f"{table}_") and table not in out:
                out[table] = file
                remarks.append(f"The table {table} was read from {file.name}.")
    return out


class SqlTables:
    """OMOP tables in a database, read only and row by row.

    Raise SourceError when the database cannot be reached or has no such schema; the text never holds the password.
    """

    def __init__(self, url: str, schema: str | None) -> None:
        try:
            # Without a pool no connection outlives its reading.
            self._engine = sa.create_engine(url, poolclass=sa.NullPool)
            inspector = sa.inspect(self._engine)
            names = [*inspector.get_table_names(schema=schema), *inspector.get_view_names(schema=schema)]
            self._tables = {name.lower(): name for name in names}
            wanted = {name: spelled for name, spelled in self._tables.items() if name in KNOWN_TABLES}
            self._columns = {
                name: {
                    str(column["name"]).lower(): str(column["name"])
                    for column in inspector.get_columns(spelled, schema)
                }
                for name, spelled in wanted.items()
            }
        except (sa.exc.SQLAlchemyError, ImportError, ValueError) as error:
            reason = type(getattr(error, "orig", None) or error).__name__
            raise SourceError(
                f"The database of the records cannot be read ({reason}). Check URL, schema, driver and permissions."
            ) from None
        self.name = self._engine.url.database or "database"
        self.name = Path(self.name).name
        self.remarks: list[str] = []
        self._schema = schema
        self.findings: list[Finding] = []

    def columns(self, table: str) -> set[str]:
        """Return the columns of a table; empty if there is no such table."""
        return set(self._columns.get(table, ()))

    def where(self, table: str) -> str:
        """Return the name of the table with its schema."""
        return f"{self._schema}.{table}" if self._schema else table

    def batches(self, table: str, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Return the rows with the types of the database."""
        spelled = self._columns[table]
        source = sa.table(self._tables[table], *(sa.column(spelled[name]) for name in columns), schema=self._schema)
        row = 1
        try:
            with self._engine.connect() as connection:
                _read_only(connection)
                units = self._units_of_times(connection, source, table)
                rows = connection.execution_options(yield_per=ROWS_PER_FETCH).execute(sa.select(source))
                for part in rows.partitions():
                    arrays = [_array([each[i] for each in part]) for i in range(len(columns))]
                    for i, name in enumerate(columns):
                        if name in units and not pa.types.is_string(arrays[i].type):
                            arrays[i] = times_of(arrays[i], units[name], self.where(table), name, row)
                    yield row, pa.RecordBatch.from_arrays(arrays, names=columns)
                    row += len(part)
        except sa.exc.SQLAlchemyError as error:
            reason = type(getattr(error, "orig", None) or error).__name__
            raise SourceError(f"{self.where(table)}: cannot be read after row {row:,} ({reason}). Try again.") from None
        except pa.ArrowException:
            raise SourceError(
                f"{self.where(table)}: a column mixes types near row {row:,}. Give it one type."
            ) from None

    def _units_of_times(self, connection: sa.Connection, source: sa.TableClause, table: str) -> dict[str, Unit]:
        """Find the columns of a table that hold times as numbers, and say how each was read."""
        # Only SQLite has no type for times.
        if connection.dialect.name != "sqlite":
            return {}
        spelled = self._columns[table]
        units = {}
        for name in filter(is_time, spelled):
            column = source.c.get(spelled[name])
            if column is not None:
                is_number = sa.func.typeof(column).in_(["integer", "real"])
                low, high = connection.execute(
                    sa.select(sa.func.min(column), sa.func.max(column)).where(is_number)
                ).one()
                if low is not None:
                    units[name] = unit_of(float(low), float(high))
                    self.remarks.append(
                        f"{self.where(table)}, {name}: numbers, read as {units[name].words}"
                        f"{' since 1970' if units[name].microseconds else ''}."
                    )
        return units


def _read_only(connection: sa.Connection) -> None:
    """Make the connection read-only."""
    statements: dict[str, str] = {"sqlite": "PRAGMA query_only = ON", "postgresql": "SET TRANSACTION READ ONLY"}
    statement = statements.get(connection.dialect.name)
    if statement:
        connection.exec_driver_sql(statement)


def _array(values: list[Any]) -> pa.Array:
    if any(isinstance(each, Decimal) for each in values):
        return pa.array([None if each is None else float(each) for each in values], pa.float64())
    kinds = {type(each) for each in values if each is not None}
    if len(kinds) > 1 and kinds <= {int, float}:
        return pa.array(values, pa.float64())
    if len(kinds) > 1:
        return pa.array([None if each is None else str(each) for each in values], pa.string())
    return pa.array(values) if kinds else pa.nulls(len(values), pa.string())


def required(tables: Tables, table: str, columns: list[str], advice: str) -> None:
    """Raise SourceError, with what to do, for a CDM without a table or column that nothing can replace."""
    found = tables.columns(table)
    if not found:
        raise SourceError(f"{tables.name} has no table {table}. {advice}")
    for column in columns:
        if column not in found:
            raise SourceError(f"{tables.where(table)}: lacks the column {column!r}. {advice}")
