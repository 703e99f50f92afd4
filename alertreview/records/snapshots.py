"""Snapshots: a cohort as a folder of parquet and array files (see `snapshot_writer`), read piece by piece."""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from alertreview.files import CheckedFiles, FileState, array_of, check_files, parse_json
from alertreview.settings import Settings
from core.cohort.cohort import Cohort
from core.errors import SourceError
from core.events.facts import empty_facts, sorted_facts
from core.kinds import EventKind
from db.unit_of_work import UnitOfWork

T = TypeVar("T")

FORMAT_VERSION = 2
"""The version that is written and read; no release wrote another one."""
_CATEGORIES = ("patient_id", "kind", "item", "name", "text", "unit")
_KINDS = [kind.value for kind in EventKind]


def read_snapshot(folder: Path, checksum: str | None = None) -> "Snapshot":
    """Open a snapshot; its parts are read when they are asked for.

    With the checksum of `alertreview.files.write_checksums`, every file is compared before it is used. Raise
    SourceError when the folder is not a snapshot of this version, or a file is not as it was written.
    """
    files = CheckedFiles(Path(folder), checksum)
    try:
        path = files.folder / "manifest.json" if checksum is None else files.path("manifest.json")
        manifest = parse_json(path.read_text(encoding="utf-8"))
        version = manifest["format_version"]
    except (OSError, ValueError, KeyError, TypeError):
        raise SourceError(
            f"{folder} is not a snapshot: it has no readable manifest.json. Import the data again."
        ) from None
    if version != FORMAT_VERSION:
        raise SourceError(
            f"{folder} is a snapshot of version {version}; this program reads version {FORMAT_VERSION}. "
            "Import the data again, or use the program that wrote it."
        )
    return Snapshot(files, manifest)


def open_import(settings: Settings, uow: UnitOfWork, name: str, *, whole: bool = False) -> "Snapshot":
    """Open a registered import; its files are compared with their checksums in the audit trail.

    They are compared when first used, `whole` all at once. Raise SourceError if a file is missing or not as it was
    written.
    """
    folder, checksum = settings.snapshots / name, uow.audit.checksum(f"import {name}")
    if whole and checksum is not None:
        check_files(folder, checksum)
    return read_snapshot(folder, checksum)


def elapsed_features(snapshot: "Snapshot") -> npt.NDArray[np.bool_]:
    """Mark the features that count hours since something: they are compared as recency, of shape (n_features,)."""
    is_elapsed: npt.NDArray[np.bool_] = (
        snapshot.feature_dictionary["aspect"].astype(str).str.startswith("hours_").to_numpy(dtype=bool)
    )
    return is_elapsed


def _stored(name: str) -> "cached_property[pd.DataFrame]":
    return cached_property(lambda snapshot: snapshot._table(name))  # noqa: SLF001


class Snapshot:
    """A cohort on disk; attributes as in `core.cohort.cohort.Cohort`, each read once, when it is first asked for."""

    def __init__(self, files: CheckedFiles, manifest: dict[str, Any]) -> None:
        self.folder = files.folder
        self._files = files
        self._opened: dict[str, tuple[list[FileState], Any]] = {}
        self.manifest = manifest
        # The one open file of events is shared by all sessions, and Arrow's reader of it is for one thread at a time:
        # two at once ended the process, or would give one patient's rows to another.
        self._reading_events = Lock()

    @property
    def content_hash(self) -> str:
        """Hash of the whole cohort."""
        return str(self.manifest["content_hash"])

    @property
    def words(self) -> dict[str, str]:
        """What it is called that a task was done, as `core.kinds.done_word` reads it; a former version said nothing."""
        return dict(self.manifest.get("words", {}))

    @property
    def site_timezone(self) -> str:
        """IANA name of the zone of all times."""
        return str(self.manifest["site_timezone"])

    @property
    def calendar_is_shifted(self) -> bool:
        """Whether dates mean nothing between patients."""
        return bool(self.manifest["calendar_is_shifted"])

    @property
    def simulated(self) -> bool:
        """Whether no real patient stands behind the data."""
        return bool(self.manifest["simulated"])

    @cached_property
    def report(self) -> dict[str, Any]:
        """The import report as plain numbers, texts and lists."""
        content: dict[str, Any] = parse_json(self._files.path("import_report.json").read_text(encoding="utf-8"))
        return content

    patients = _stored("patients")
    stays = _stored("stays")
    instances = _stored("instances")
    tasks = _stored("tasks")
    feature_dictionary = _stored("feature_dictionary")
    trail = _stored("corrections")
    """Corrected results with their old and new values; see `core.events.append.TRAIL_COLUMNS`."""

    @property
    def snapshot_hour(self) -> str:
        """Time of day of the instances: "06:00"."""
        return f"{self.instances['snapshot_at'].iloc[0]:%H:%M}"

    @property
    def features(self) -> sparse.csr_matrix:
        """As `Cohort.features`; its arrays stay on disk and are read as they are used, changes never reach the disk."""
        return self._open([f"features_{part}.npy" for part in ("data", "indices", "indptr")], self._mapped)

    def _mapped(self, *paths: Path) -> sparse.csr_matrix:
        data, indices, indptr = (np.asarray(array_of(path, mmap_mode="c")) for path in paths)
        shape = (len(indptr) - 1, int(self.manifest["n_features"]))
        return sparse.csr_matrix((data, indices, indptr), shape=shape, copy=False)

    @cached_property
    def decisions(self) -> sparse.csc_matrix:
        """As `Cohort.decisions`."""
        return sparse.csc_matrix(sparse.load_npz(self._files.path("decisions.npz")))

    @cached_property
    def cohort(self) -> Cohort:
        """The whole cohort, events included."""
        return Cohort(
            patients=self.patients,
            stays=self.stays,
            instances=self.instances,
            features=self.features,
            feature_dictionary=self.feature_dictionary,
            tasks=self.tasks,
            decisions=self.decisions,
            events=_as_stream(self._all_events()),
            site_timezone=self.site_timezone,
            calendar_is_shifted=self.calendar_is_shifted,
            simulated=self.simulated,
            content_hash=self.content_hash,
        )

    def _all_events(self) -> pa.Table:
        with self._reading_events:
            return self._events.read()

    @property
    def n_events_of(self) -> dict[str, int]:
        """Number of events of each patient, in the order of the file."""
        return {patient: n for patient, (_, n) in self._event_index.items()}

    def events_of(self, *patient_ids: str) -> pd.DataFrame:
        """Read the events of a patient, or of patients that follow each other, sorted by patient and time.

        No more than the row groups around them are read. The table is empty if there is no such patient.
        """
        places = [self._event_index[each] for each in patient_ids if each in self._event_index]
        first, n = (places[0][0], sum(n for _, n in places)) if places else (0, 0)
        size = int(self.manifest["rows_per_group"])
        low, high = first // size, max(first + n - 1, first) // size
        groups = list(range(low, high + 1)) if n else []
        with self._reading_events:
            table = self._events.read_row_groups(groups)
        return _as_stream(table.slice(first - low * size, n))

    def event_groups(self, columns: list[str]) -> Iterator[pd.DataFrame]:
        """Read some columns of all events, a row group at a time."""
        for group in range(self._events.num_row_groups):
            with self._reading_events:
                table = self._events.read_row_group(group, columns)
            yield _as_stream(table)

    def facts_of(self, patient_id: str) -> pd.DataFrame:
        """Read one patient's context facts (`core.events.facts.FACT_COLUMNS`), sorted by ``start``.

        None where the snapshot was written before facts were kept. Whoever shows facts at a snapshot's time leaves out
        those with a later ``known_at``.
        """
        return self._facts([("patient_id", "=", patient_id)])

    @property
    def facts(self) -> pd.DataFrame:
        """Facts of all patients, sorted."""
        return sorted_facts(self._facts(None))

    @cached_property
    def fact_kinds(self) -> frozenset[str]:
        """Kinds of facts that any patient has; empty when the source has none."""
        if not self.manifest.get("n_facts"):
            return frozenset()
        return frozenset(
            pq.read_table(self._files.path("facts.parquet"), columns=["kind"])["kind"].unique().to_pylist()
        )

    def _facts(self, filters: list[tuple[str, str, str]] | None) -> pd.DataFrame:
        if not self.manifest.get("n_facts"):
            return empty_facts()
        return pq.read_table(self._files.path("facts.parquet"), filters=filters).to_pandas()

    def fact_groups(self) -> Iterator[pd.DataFrame]:
        """Read all facts, some whole patients at a time."""
        if not self.manifest.get("n_facts"):
            return
        rest = empty_facts()
        for batch in pq.ParquetFile(self._files.path("facts.parquet")).iter_batches():
            rows = pd.concat([rest, batch.to_pandas().astype(rest.dtypes.to_dict())], ignore_index=True)
            is_last = rows["patient_id"] == rows["patient_id"].iloc[-1]
            rest = rows[is_last]
            if not is_last.all():
                yield rows[~is_last]
        yield rest

    @cached_property
    def _event_index(self) -> dict[str, tuple[int, int]]:
        table = self._table("event_index")
        return {
            str(patient): (int(first), int(n))
            for patient, first, n in zip(table["patient_id"], table["first"], table["n"], strict=True)
        }

    @property
    def _events(self) -> pq.ParquetFile:
        return self._open(["events.parquet"], pq.ParquetFile)

    def _open(self, names: list[str], read: Callable[..., T]) -> T:
        """Return what is read from files that stay open, again when they have changed on disk."""
        states = [self._files.state(name) for name in names]
        known, opened = self._opened.get(names[0], (None, None))
        if known != states:
            opened = read(*(self.folder / name for name in names))
            self._opened[names[0]] = states, opened
        return cast(T, opened)

    def _table(self, name: str) -> pd.DataFrame:
        return pq.read_table(self._files.path(f"{name}.parquet")).to_pandas()


def _as_stream(table: pa.Table) -> pd.DataFrame:
    """Turn rows of the file into an event stream; categories are those that occur, and all kinds."""
    columns: dict[str, object] = {}
    for name in table.schema.names:
        column = table.column(name)
        if name in _CATEGORIES:
            columns[name] = _categorical(column, _KINDS if name == "kind" else None)
        else:
            columns[name] = column.to_numpy()
    return pd.DataFrame(columns)


def _categorical(column: pa.ChunkedArray, categories: list[str] | None) -> pd.Categorical:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    categories = sorted(texts) if categories is None else categories
    place = {text: i for i, text in enumerate(categories)}
    rank = np.array([place[text] for text in texts], dtype=np.int64)
    dtype = pd.CategoricalDtype(pd.Index(categories, dtype="str"))
    return pd.Categorical.from_codes(rank[encoded.indices.to_numpy()], dtype=dtype, validate=False)
