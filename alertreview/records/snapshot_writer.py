"""Writing snapshots: a cohort as a folder of parquet and array files, part by part, all of it or nothing."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from alertreview.files import array_of, sync
from alertreview.records.snapshots import FORMAT_VERSION
from alertreview.records.sources.meds import is_text
from core.cohort.cohort import Built
from core.errors import SourceError
from core.events.append import TRAIL_COLUMNS
from core.events.facts import FactsDigest, empty_facts
from core.events.import_report import ImportReport
from core.events.mapping import SiteMapping


class DiskSpill:
    """A spill whose parts are files in Arrow's stream format, not compressed: that takes three times the time.

    The files of several spills in a folder begin with the name of each.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._writers: dict[int, pa.RecordBatchStreamWriter] = {}

    def _path(self, part: int) -> Path:
        return self._folder / f"{self._name}-{part}.arrow"

    def put(self, part: int, rows: pd.DataFrame) -> None:
        """Add rows to a part; raise SourceError when the disk is full or the folder cannot be written."""
        batch = pa.RecordBatch.from_arrays(
            [pa.array(rows[name].to_numpy()) for name in rows.columns], names=list(rows.columns)
        )
        try:
            if part not in self._writers:
                self._writers[part] = pa.ipc.new_stream(str(self._path(part)), batch.schema)
            self._writers[part].write_batch(batch)
        except OSError as error:
            raise _cannot_write(self._folder, error) from None

    def read(self, part: int, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return everything that was put into a part, in that order; nothing can be put into it afterwards."""
        self._close(part)
        path = self._path(part)
        if not path.exists():
            return pd.DataFrame()
        with pa.memory_map(str(path)) as file:
            included = None
            if columns is not None:
                names = pa.ipc.open_stream(file).schema.names
                included = sorted(names.index(name) for name in columns)
                file.seek(0)
            options = pa.ipc.IpcReadOptions(included_fields=included, use_threads=False)
            table = pa.ipc.open_stream(file, options=options).read_all()
            # Columns stay where they are read: one table of them all would be a copy.
            return pd.DataFrame({name: table.column(name).to_numpy() for name in table.schema.names}, copy=False)

    def _close(self, part: int) -> None:
        writer = self._writers.pop(part, None)
        if writer is not None:
            try:
                writer.close()
            except OSError as error:
                raise _cannot_write(self._folder, error) from None

    def drop(self, part: int) -> None:
        """Drop a part."""
        self._close(part)
        self._path(part).unlink(missing_ok=True)


def _cannot_write(folder: Path, error: OSError) -> SourceError:
    reason = error.strerror or os.strerror(error.errno or 0)
    return SourceError(f"{folder}: cannot be written ({reason}); nothing was kept. Make room, or choose another home.")


ROWS_PER_GROUP = 16_384
"""Small row groups: the events of one patient are read without touching the others."""
_TABLES = ("patients", "stays", "instances", "feature_dictionary", "tasks")
_EVENTS_SCHEMA = pa.schema(
    [
        ("patient_id", pa.string()),
        ("time", pa.timestamp("us")),
        ("known_at", pa.timestamp("us")),
        *((name, pa.string()) for name in ("kind", "item", "name")),
        ("value", pa.float64()),
        *((name, pa.string()) for name in ("text", "unit")),
        ("is_decision", pa.bool_()),
    ]
)
_FACTS_SCHEMA = pa.Schema.from_pandas(empty_facts(), preserve_index=False)
_AT_ONCE = 4_000_000


def _target(home: Path, content_hash: str) -> Path:
    return Path(home) / "snapshots" / content_hash[:16]


class SnapshotWriter:
    """Writes a snapshot while its cohort is built (`core.cohort.cohort.CohortSink`); unfinished work is deleted.

    Raise SourceError when the home cannot be written.
    """

    def __init__(self, home: Path) -> None:
        self._home = Path(home)
        parent = self._home / "snapshots"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=".writing-", dir=parent))
            self._scratch = self._folder / "scratch"
            self._scratch.mkdir()
        except OSError as error:
            raise SourceError(f"{parent}: cannot be written ({error.strerror}). Choose another home folder.") from None
        self._rows_per_group = ROWS_PER_GROUP
        self._events: TableFile | None = None
        self._index: list[pd.DataFrame] = []
        self._n_events = self._n_facts = 0
        self._row_lengths: list[npt.NDArray[np.int64]] = []
        self._data: _ArrayFile | None = None
        self._indices: _ArrayFile | None = None

    def __enter__(self) -> Self:
        """Start."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what was not finished; a full disk raises an error in words."""
        for file in (self._data, self._indices):
            if file is not None:
                file.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise SourceError(
                f"{self._home / 'snapshots'}: cannot be written ({error.strerror}); nothing was kept. "
                "Make room, or choose another home."
            ) from None

    def spill(self, name: str) -> DiskSpill:
        """Make a spill for rows that wait while the cohort is built (`core.events.parts.MakeSpill`)."""
        return DiskSpill(self._scratch, name)

    def events(self, part: pd.DataFrame) -> None:
        """Add the next events."""
        if self._events is None:
            self._events = TableFile(self._folder / "events.parquet", _EVENTS_SCHEMA, self._rows_per_group)
        codes = part["patient_id"].cat.codes.to_numpy()
        ids = pd.Series(part["patient_id"].cat.categories.astype("str"))
        first = np.searchsorted(codes, np.arange(len(ids) + 1))
        self._index.append(pd.DataFrame({"patient_id": ids, "first": first[:-1] + self._n_events, "n": np.diff(first)}))
        self._n_events += len(part)
        self._events.add(part)

    def facts(self, parts: Iterable[pd.DataFrame]) -> FactsDigest:
        """Write all facts (`core.events.facts`), in parts of whole patients, and return their digest."""
        digest = FactsDigest()
        file = TableFile(self._folder / "facts.parquet", _FACTS_SCHEMA, self._rows_per_group)
        for part in parts:
            digest += part
            file.add(part)
        file.close()
        self._n_facts = digest.n
        return digest

    def features(self, rows: sparse.csr_matrix) -> None:
        """Add the next rows of the feature matrix."""
        if self._data is None or self._indices is None:
            self._data = _ArrayFile(self._folder / "features_data.npy", np.dtype(np.float32))
            self._indices = _ArrayFile(self._folder / "features_indices.npy", np.dtype(np.int32))
        self._row_lengths.append(np.diff(rows.indptr).astype(np.int64))
        self._data.append(rows.data)
        self._indices.append(rows.indices)

    def keep_columns(self, used: npt.NDArray[np.int64]) -> None:
        """Finish the feature matrix with the used columns only (sorted)."""
        if self._data is None or self._indices is None:
            self.features(sparse.csr_matrix(np.zeros((0, 0), dtype=np.float32)))
            return self.keep_columns(used)
        self._data.close()
        place = np.zeros(int(used.max(initial=-1)) + 1, dtype=np.int32)
        place[used] = np.arange(len(used))
        if not np.array_equal(place, np.arange(len(place))):
            self._indices.replace(lambda columns: place[columns])
        self._indices.close()
        indptr = np.append(0, np.cumsum(np.concatenate(self._row_lengths)))
        small = indptr[-1] <= np.iinfo(np.int32).max
        np.save(self._folder / "features_indptr.npy", indptr.astype(np.int32 if small else np.int64))
        return None

    def feature_chunks(self) -> Iterator[npt.NDArray[Any]]:
        """Read the arrays of the matrix back in pieces: where rows begin, columns (both int64), values."""
        yield array_of(self._folder / "features_indptr.npy").astype(np.int64)
        if self._data is not None and self._indices is not None:
            for columns in self._indices.chunks():
                yield columns.astype(np.int64)
            yield from self._data.chunks()

    def finish(
        self,
        built: Built,
        report: ImportReport,
        *,
        trail: pd.DataFrame | None = None,
        mapping: SiteMapping | None = None,
    ) -> Path:
        """Write the rest, put the folder in its place and return it; when it was there before, it is left as it is.

        The mapping is kept for those who add to the snapshot.
        """
        target = _target(self._home, built.content_hash)
        if (target / "manifest.json").exists():
            return target
        shutil.rmtree(self._scratch)
        if self._events is not None:
            self._events.close()
        self._write_tables(built, trail)
        _write_json(self._folder / "import_report.json", report.to_dict())
        says = mapping.model_dump(mode="json", exclude_defaults=True) if mapping else None
        _write_json(self._folder / "manifest.json", self._manifest(built, report) | {"mapping_says": says})
        for path in [*sorted(self._folder.iterdir()), self._folder]:
            sync(path)
        self._folder.chmod(0o700)
        try:
            self._folder.rename(target)
        except OSError:
            if not (target / "manifest.json").exists():
                raise
        sync(target.parent)
        return target

    def _write_tables(self, built: Built, trail: pd.DataFrame | None) -> None:
        tables = {name: getattr(built, name) for name in _TABLES}
        tables["corrections"] = pd.DataFrame(columns=list(TRAIL_COLUMNS)) if trail is None else trail
        nothing = pd.DataFrame({"patient_id": pd.Series([], dtype="str"), "first": [], "n": []})
        tables["event_index"] = pd.concat(self._index or [nothing], ignore_index=True)
        for name, table in tables.items():
            pq.write_table(pa.Table.from_pandas(table, preserve_index=False), self._folder / f"{name}.parquet")
        sparse.save_npz(self._folder / "decisions.npz", built.decisions, compressed=False)

    def _manifest(self, built: Built, report: ImportReport) -> dict[str, Any]:
        return {
            "format_version": FORMAT_VERSION,
            "rows_per_group": self._rows_per_group,
            "content_hash": built.content_hash,
            "site_timezone": built.site_timezone,
            "calendar_is_shifted": built.calendar_is_shifted,
            "simulated": built.simulated,
            "source": report.source,
            "mapping": report.mapping,
            "words": report.words,
            "n_instances": len(built.instances),
            "n_tasks": len(built.tasks),
            "n_facts": self._n_facts,
            "n_features": len(built.feature_dictionary),
        }


class TableFile:
    """A parquet file of rows that come in parts and are written in groups of one size.

    Only texts have dictionaries, each group its own: the different times and numbers are too many to look up.
    """

    def __init__(self, path: Path, schema: pa.Schema, rows_per_group: int) -> None:
        texts = [field.name for field in schema if is_text(field.type)]
        kinds = [(field.name, _CODES if field.name in texts else field.type) for field in schema]
        self._schema = pa.schema(kinds, metadata=schema.metadata)
        self._size = rows_per_group
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._file = pq.ParquetWriter(
            path,
            self._schema,
            compression="zstd",
            use_dictionary=texts,
            column_encoding={name: "DELTA_BINARY_PACKED" for name, kind in kinds if pa.types.is_timestamp(kind)},
            write_statistics=["patient_id"],
            store_schema=False,
        )

    def add(self, part: pd.DataFrame) -> None:
        """Add rows with the columns of the schema; texts may be categories."""
        columns = [_arrow_column(part[field.name], field.type) for field in self._schema]
        first = 0
        while first < len(part):
            n = min(len(part) - first, self._size - self._n_waiting)
            pieces = [_piece(column, first, n) for column in columns]
            self._waiting.append(pa.Table.from_arrays(pieces, schema=self._schema))
            self._n_waiting += n
            first += n
            if self._n_waiting == self._size:
                self._write_group()

    def _write_group(self) -> None:
        table = pa.concat_tables(self._waiting)
        if len(self._waiting) > 1:
            table = table.unify_dictionaries().combine_chunks()
        self._file.write_table(table, row_group_size=self._size)
        self._waiting, self._n_waiting = [], 0

    def close(self) -> None:
        """Write what is left."""
        if self._n_waiting:
            self._write_group()
        self._file.close()


_CODES = pa.dictionary(pa.int32(), pa.string())


def _arrow_column(column: pd.Series, kind: pa.DataType) -> pa.Array:
    if kind != _CODES:
        return pa.array(column).cast(kind)
    if not isinstance(column.dtype, pd.CategoricalDtype):
        encoded = pa.array(column).cast(pa.string()).dictionary_encode()
        return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    texts = pa.array(column.cat.categories.to_numpy(dtype=object), pa.string())
    codes = column.cat.codes.to_numpy()
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes < 0), texts)


def _piece(column: pa.Array, first: int, n: int) -> pa.Array:
    """Return some rows; a dictionary holds what occurs in them."""
    piece = column.slice(first, n)
    if column.type != _CODES:
        return piece
    if piece.null_count:
        return piece.cast(pa.string()).dictionary_encode()
    codes = piece.indices.to_numpy()
    used = np.zeros(len(piece.dictionary), dtype=bool)
    used[codes] = True
    place = np.cumsum(used, dtype=np.int32) - 1
    return pa.DictionaryArray.from_arrays(place[codes], piece.dictionary.take(pa.array(np.flatnonzero(used))))


class _ArrayFile:
    """A one-dimensional NumPy array file that grows."""

    def __init__(self, path: Path, kind: "np.dtype[Any]") -> None:
        self._path, self._kind = path, kind
        self._file: IO[bytes] = path.open("w+b")
        self._n = 0
        self._write_header()

    def _write_header(self) -> None:
        # NumPy leaves room in the header for a longer first axis: it can be written again when the length is known.
        self._file.seek(0)
        header = {"descr": self._kind.str, "fortran_order": False, "shape": (self._n,)}
        np.lib.format.write_array_header_1_0(self._file, header)
        self._start = self._file.tell()

    def append(self, values: npt.NDArray[Any]) -> None:
        self._file.seek(0, os.SEEK_END)
        self._file.write(np.ascontiguousarray(values, dtype=self._kind).data)
        self._n += len(values)

    def chunks(self) -> Iterator[npt.NDArray[Any]]:
        with self._path.open("rb") as file:
            file.seek(self._start)
            for first in range(0, self._n, _AT_ONCE):
                yield np.fromfile(file, dtype=self._kind, count=min(_AT_ONCE, self._n - first))

    def replace(self, change: Any) -> None:
        """Replace all values, piece by piece."""
        self._file.flush()
        place = self._start
        for values in self.chunks():
            self._file.seek(place)
            self._file.write(np.ascontiguousarray(change(values), dtype=self._kind).data)
            place += values.nbytes

    def close(self) -> None:
        if not self._file.closed:
            self._write_header()
            self._file.close()


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False), encoding="utf-8")
