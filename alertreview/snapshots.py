"""Snapshots: a cohort as a folder of parquet and npz files, written all or nothing and read piece by piece."""

import json
import os
import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from core.cohort import Cohort
from core.errors import SourceError
from core.events import EventKind
from core.import_report import ImportReport
from core.living import TRAIL_COLUMNS

FORMAT_VERSION = 1
ROWS_PER_GROUP = 16_384
"""Small row groups: the events of one patient are read without touching the others."""

_TABLES = ("patients", "stays", "instances", "feature_dictionary", "tasks")
_CATEGORIES = ("patient_id", "kind", "item", "name", "text", "unit")
_KINDS = [kind.value for kind in EventKind]


def write_snapshot(cohort: Cohort, report: ImportReport, home: Path, *, trail: pd.DataFrame | None = None) -> Path:
    """Write a cohort below the home folder; either the whole of it is there afterwards, or nothing.

    Parameters
    ----------
    cohort : Cohort
    report : ImportReport
    home : Path
        The snapshot goes to ``home/snapshots/<first 16 digits of the content hash>``.
    trail : DataFrame, optional
        Corrected results, as `core.living.TRAIL_COLUMNS`.

    Returns
    -------
    Path
        The folder. When it was there before, it is left as it is.

    Raises
    ------
    SourceError
        When the folder cannot be written.
    """
    parent = Path(home) / "snapshots"
    target = parent / cohort.content_hash[:16]
    if (target / "manifest.json").exists():
        return target
    try:
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".writing-", dir=parent))
    except OSError as error:
        raise SourceError(f"{parent}: cannot be written ({error.strerror}). Choose another home folder.") from None
    try:
        _write_files(cohort, report, temporary)
        table = pd.DataFrame(columns=list(TRAIL_COLUMNS)) if trail is None else trail
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), temporary / "corrections.parquet")
        for path in [*sorted(temporary.iterdir()), temporary]:
            _sync(path)
        temporary.chmod(0o700)
        temporary.rename(target)
        _sync(parent)
    except OSError as error:
        if (target / "manifest.json").exists():
            return target
        raise SourceError(f"{target}: cannot be written ({error.strerror}); nothing was kept.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _write_files(cohort: Cohort, report: ImportReport, folder: Path) -> None:
    for name in _TABLES:
        pq.write_table(pa.Table.from_pandas(getattr(cohort, name), preserve_index=False), folder / f"{name}.parquet")
    sparse.save_npz(folder / "features.npz", cohort.features, compressed=True)
    sparse.save_npz(folder / "decisions.npz", cohort.decisions, compressed=True)
    events = pa.Table.from_pandas(cohort.events, preserve_index=False)
    pq.write_table(events, folder / "events.parquet", row_group_size=ROWS_PER_GROUP, compression="zstd")
    codes = cohort.events["patient_id"].cat.codes.to_numpy()
    ids = pd.Series(cohort.events["patient_id"].cat.categories.astype("str"))
    first = np.searchsorted(codes, np.arange(len(ids) + 1))
    index = pd.DataFrame({"patient_id": ids, "first": first[:-1], "n": np.diff(first)})
    pq.write_table(pa.Table.from_pandas(index, preserve_index=False), folder / "event_index.parquet")
    _write_json(folder / "import_report.json", report.to_dict())
    manifest = {
        "format_version": FORMAT_VERSION,
        "content_hash": cohort.content_hash,
        "site_timezone": cohort.site_timezone,
        "calendar_is_shifted": cohort.calendar_is_shifted,
        "simulated": cohort.simulated,
        "source": report.source,
        "mapping": report.mapping,
        "n_instances": len(cohort.instances),
        "n_tasks": len(cohort.tasks),
        "n_features": len(cohort.feature_dictionary),
    }
    _write_json(folder / "manifest.json", manifest)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False), encoding="utf-8")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_snapshot(folder: Path) -> "Snapshot":
    """Open a snapshot; its parts are read when they are asked for.

    Parameters
    ----------
    folder : Path
        As `write_snapshot` returned it.

    Returns
    -------
    Snapshot

    Raises
    ------
    SourceError
        When the folder is no snapshot of this version.
    """
    try:
        manifest = json.loads((Path(folder) / "manifest.json").read_text(encoding="utf-8"))
        version = manifest["format_version"]
    except (OSError, ValueError, KeyError, TypeError):
        raise SourceError(
            f"{folder} is no snapshot: it has no readable manifest.json. Import the data again."
        ) from None
    if version != FORMAT_VERSION:
        raise SourceError(
            f"{folder} is a snapshot of version {version}; this program reads version {FORMAT_VERSION}. "
            "Import the data again, or use the program that wrote it."
        )
    return Snapshot(Path(folder), manifest)


def elapsed_features(snapshot: "Snapshot") -> npt.NDArray[np.bool_]:
    """Mark the features that count hours since something: they are compared as recency, of shape (n_features,)."""
    is_elapsed: npt.NDArray[np.bool_] = (
        snapshot.feature_dictionary["aspect"].astype(str).str.startswith("hours_").to_numpy(dtype=bool)
    )
    return is_elapsed


class Snapshot:
    """A cohort on disk; attributes as in `core.cohort.Cohort`, each read once, when it is first asked for.

    Attributes
    ----------
    folder : Path
    manifest : dict
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest

    @property
    def content_hash(self) -> str:
        """Hash of the whole cohort."""
        return str(self.manifest["content_hash"])

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
        content: dict[str, Any] = json.loads((self.folder / "import_report.json").read_text(encoding="utf-8"))
        return content

    @cached_property
    def patients(self) -> pd.DataFrame:
        """As `Cohort.patients`."""
        return self._table("patients")

    @cached_property
    def stays(self) -> pd.DataFrame:
        """As `Cohort.stays`."""
        return self._table("stays")

    @cached_property
    def instances(self) -> pd.DataFrame:
        """As `Cohort.instances`."""
        return self._table("instances")

    @cached_property
    def feature_dictionary(self) -> pd.DataFrame:
        """As `Cohort.feature_dictionary`."""
        return self._table("feature_dictionary")

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """As `Cohort.tasks`."""
        return self._table("tasks")

    @cached_property
    def trail(self) -> pd.DataFrame:
        """Corrected results with their old and new values; see `core.living.TRAIL_COLUMNS`."""
        return self._table("corrections")

    @cached_property
    def features(self) -> sparse.csr_matrix:
        """As `Cohort.features`."""
        return sparse.csr_matrix(self._matrix("features"))

    @cached_property
    def decisions(self) -> sparse.csc_matrix:
        """As `Cohort.decisions`."""
        return sparse.csc_matrix(self._matrix("decisions"))

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
            events=_as_stream(self._events.read()),
            site_timezone=self.site_timezone,
            calendar_is_shifted=self.calendar_is_shifted,
            simulated=self.simulated,
            content_hash=self.content_hash,
        )

    def events_of(self, patient_id: str) -> pd.DataFrame:
        """Read one patient's events, and no more than the row groups around them.

        Parameters
        ----------
        patient_id : str

        Returns
        -------
        DataFrame
            Rows of `Cohort.events`, sorted by time; empty when there is no such patient.
        """
        first, n = self._event_index.get(patient_id, (0, 0))
        low, high = first // ROWS_PER_GROUP, max(first + n - 1, first) // ROWS_PER_GROUP
        groups = list(range(low, high + 1)) if n else []
        table = self._events.read_row_groups(groups)
        return _as_stream(table.slice(first - low * ROWS_PER_GROUP, n))

    @cached_property
    def _event_index(self) -> dict[str, tuple[int, int]]:
        table = self._table("event_index")
        return {
            str(patient): (int(first), int(n))
            for patient, first, n in zip(table["patient_id"], table["first"], table["n"], strict=True)
        }

    @cached_property
    def _events(self) -> pq.ParquetFile:
        return pq.ParquetFile(self._existing("events.parquet"))

    def _table(self, name: str) -> pd.DataFrame:
        return pq.read_table(self._existing(f"{name}.parquet")).to_pandas()

    def _matrix(self, name: str) -> Any:
        return sparse.load_npz(self._existing(f"{name}.npz"))

    def _existing(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            raise SourceError(f"{path} is missing; the snapshot is damaged. Import the data again.")
        return path


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
