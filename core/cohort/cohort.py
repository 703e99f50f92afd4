"""The cohort: what import makes and scoring reads; patient-state instances, features and tasks, immutable."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse


@dataclass(frozen=True)
class Built:
    """A cohort without its events and features."""

    # ``patient_id`` (str, unique), ``sex`` ("F", "M" or missing), ``birth_time`` (datetime64, may be missing),
    # ``death_time`` (datetime64, may be missing), ``source_split`` (str or missing: "train", "tuning", "held_out").
    patients: pd.DataFrame
    # ``stay_id`` (int, 0..n-1), ``patient_id`` (str), ``admitted_at``, ``discharged_at`` (datetime64, site time without
    # zone; discharge missing while the stay is open).
    stays: pd.DataFrame
    # ``patient_id`` (str), ``stay_id`` (int), ``snapshot_at`` (datetime64, site time without zone), ``day_of_stay``
    # (int, 1 = first), ``unit`` (str, "" when unknown), ``age_years`` (float, may be missing), ``sex`` (str),
    # ``window_hours`` (float, hours of the decision window inside the stay and the data, at most 24).
    instances: pd.DataFrame
    # ``name`` (str, for people: "Potassium, last value"), ``source`` (str: the item), ``feature_kind`` (str:
    # "last_value", "hours_since_last", ...), ``meaning`` (str), ``unit`` (str), ``is_flag`` (bool: absent means 0),
    # ``share_present`` (float in [0, 1]), ``task_keys`` is not here: features never look at decisions.
    feature_dictionary: pd.DataFrame
    # ``task_key`` (str, unique and stable between imports: "LAB_ORDER/50912"), ``name`` (str, for people), ``kind``
    # (value of `core.kinds.Kind`), ``n_positive`` (int), ``order_group`` (str, "" when alone); where any task has them,
    # ``members`` and ``off``, see `core.cohort.catalogue.with_catalogue`.
    tasks: pd.DataFrame
    # Shape (n_instances, n_tasks): True where the task was ordered, started or given in [snapshot, snapshot + 24 h).
    decisions: sparse.csc_matrix
    site_timezone: str  # IANA name in which the times without zone are to be read
    calendar_is_shifted: bool  # True for de-identified records whose dates mean nothing between patients
    simulated: bool  # True when no real patient stands behind the data
    content_hash: str  # hex digest of the whole cohort and the mapping: the same import gives the same hash


@dataclass(frozen=True)
class Cohort(Built):
    """Patient-state instances with everything known at their snapshot hour, and what was decided in the 24 h after.

    Row ``i`` of `instances`, `features` and `decisions` is the same instance; column ``j`` of `features` is row ``j``
    of `feature_dictionary`; column ``t`` of `decisions` is row ``t`` of `tasks`.
    """

    # Shape (n_instances, n_features): raw values. An entry that is not stored means "not measured" for a value and 0
    # for a flag or count.
    features: sparse.csr_matrix
    # The recognised event stream, sorted by patient and time: ``patient_id`` (str), ``time`` (datetime64, when it
    # happened: specimen or order time), ``known_at`` (datetime64, when it could be known), ``kind`` (category; see
    # `core.kinds.EventKind`), ``item`` (str, group key), ``name`` (str), ``value`` (float), ``text``, ``unit``.
    events: pd.DataFrame


IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class About:
    """What is known of the source besides its events."""

    source: str
    splits: dict[str, str]
    simulated: bool


class CohortSink(Protocol):
    """Takes the large pieces of a cohort, part by part."""

    def events(self, part: pd.DataFrame) -> None:
        """Take the next events, as `core.cohort.cohort.Cohort.events`."""
        ...

    def features(self, rows: sparse.csr_matrix) -> None:
        """Take the next rows of the feature matrix, with a column for every aspect that there could be."""
        ...

    def keep_columns(self, used: IntArray) -> None:
        """End the feature matrix, and keep only the columns that are used (sorted)."""
        ...

    def feature_chunks(self) -> Iterator[npt.NDArray[Any]]:
        """Return the arrays of the matrix in pieces: where rows begin, columns (both int64), values."""
        ...


class MemorySink:
    """Keeps the features in memory; events stay where they are.

    The matrix, of shape (n_instances, n_features), is there once `keep_columns` was told what to keep.
    """

    def __init__(self) -> None:
        self.matrix = sparse.csr_matrix(np.zeros((0, 0), dtype=np.float32))
        self._rows: list[sparse.csr_matrix] = []

    def events(self, part: pd.DataFrame) -> None:
        """Nothing to keep."""

    def features(self, rows: sparse.csr_matrix) -> None:
        """Keep the next rows."""
        self._rows.append(rows)

    def keep_columns(self, used: IntArray) -> None:
        """Put the rows together."""
        self.matrix = sparse.vstack([rows[:, used] for rows in self._rows], format="csr", dtype=np.float32)
        self._rows.clear()

    def feature_chunks(self) -> Iterator[npt.NDArray[Any]]:
        """Return the arrays of the matrix."""
        yield self.matrix.indptr.astype(np.int64)
        yield self.matrix.indices.astype(np.int64)
        yield self.matrix.data
