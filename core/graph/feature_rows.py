"""Weighted features of one task, row by row and without zeros: read from the columns that all tasks share."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.numerics.compiled import compiled
from core.validation import IntArray

_ROWS_AT_ONCE = 2048
"""So many rows are filled before the next: few enough to stay in the processor's cache."""


class RoomForRows:
    """Memory for the entries of one task after another."""

    def __init__(self) -> None:
        self._places, self._values = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)

    def take(self, n: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return room for `n` entries: the same memory as before, larger when need be."""
        if n > len(self._values):
            self._places, self._values = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32)
        return self._places[:n], self._values[:n]


@dataclass(frozen=True)
class FeatureRows:
    """Features of instances without their zeros."""

    starts: NDArray[np.int64]  # shape (n + 1,): where each instance begins
    places: NDArray[np.int32]  # features in 0..n_features - 1, ascending for each instance
    values: NDArray[np.float32]
    n_features: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    def dense(self, rows: IntArray | None = None) -> NDArray[np.float32]:
        """Return some rows, or all, with their zeros; of shape (n_rows, n_features)."""
        chosen = np.arange(len(self)) if rows is None else np.asarray(rows, dtype=np.int64)
        full = np.zeros((len(chosen), self.n_features), dtype=np.float32)
        _fill(self.starts, self.places, self.values, chosen, full)
        return full

    @classmethod
    def of_dense(cls, features: NDArray[np.float32]) -> "FeatureRows":
        """Drop the zeros of a dense array."""
        rows, places = np.nonzero(features)
        starts = np.searchsorted(rows, np.arange(len(features) + 1))
        return cls(starts.astype(np.int64), places.astype(np.int32), features[rows, places], features.shape[1])

    @classmethod
    def of_columns(
        cls, columns: sparse.csc_array, kept: IntArray, factors: NDArray[np.float32], room: RoomForRows | None = None
    ) -> "FeatureRows":
        """Read some columns of a matrix of shape (n, n_all_features), sorted indices, each times its factor.

        They are written into the room, where given; the rows then hold until it is used again.
        """
        n_entries = int((columns.indptr[kept + 1] - columns.indptr[kept]).sum())
        starts = np.zeros(columns.shape[0] + 1, dtype=np.int64)
        places, values = (room or RoomForRows()).take(n_entries)
        _gather(columns.indptr, columns.indices, columns.data, kept, factors, starts, places, values)
        return cls(starts, places, values, len(kept))


Features: TypeAlias = FeatureRows | NDArray[np.float32]


def as_rows(features: Features) -> FeatureRows:
    """Return features of either form as rows."""
    return features if isinstance(features, FeatureRows) else FeatureRows.of_dense(features)


@compiled
def _gather(
    indptr: Any, indices: Any, data: Any, kept: Any, factors: Any, starts: Any, places: Any, values: Any
) -> None:
    n = len(starts) - 1
    cursors = indptr[kept].astype(np.int64)
    ends = indptr[kept + 1].astype(np.int64)
    for first in range(0, n, _ROWS_AT_ONCE):
        end = min(first + _ROWS_AT_ONCE, n)
        for p in range(len(kept)):
            e = cursors[p]
            while e < ends[p] and indices[e] < end:
                starts[indices[e] + 1] += 1
                e += 1
        for i in range(first, end):
            starts[i + 1] += starts[i]
        filled = starts[first:end].copy()
        for p in range(len(kept)):
            e = cursors[p]
            while e < ends[p] and indices[e] < end:
                at = filled[indices[e] - first]
                places[at] = p
                values[at] = data[e] * factors[p]
                filled[indices[e] - first] = at + 1
                e += 1
            cursors[p] = e


@compiled
def _fill(starts: Any, places: Any, values: Any, chosen: Any, full: Any) -> None:
    for i in range(len(chosen)):
        for e in range(starts[chosen[i]], starts[chosen[i] + 1]):
            full[i, places[e]] = values[e]
