"""Counting exact duplicates among more rows than memory holds: by 64-bit hashes of whole rows."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.shelves import Shelf

HashArray = npt.NDArray[np.uint64]

_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_COLUMNS = ("subject", "time", "code", "value", "text", "unit", "known_at", "stay")
_N_PARTS = 64
_KEPT = 4_000_000
"""Hashes kept in memory before they go to the shelf."""


class RowHashes:
    """Hashes of all rows of a source; equal rows have equal hashes wherever they stand.

    Parameters
    ----------
    shelf : Shelf
        Where hashes wait when there are many.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._kept: list[HashArray] = []
        self._n_kept = 0
        self._is_shelved = False

    def add(self, chunk: pd.DataFrame, code: pd.Series) -> HashArray:
        """Hash the rows of a chunk, and remember them.

        Parameters
        ----------
        chunk : DataFrame
            As `core.event_stream.StreamBuilder.add` takes it.
        code : Series of category
            Its codes.

        Returns
        -------
        array of uint64, shape (n_rows,)
        """
        hashes = row_hashes(chunk, code)
        self._kept.append(hashes)
        self._n_kept += len(hashes)
        if self._n_kept > _KEPT:
            self._put_away()
        return hashes

    def _put_away(self) -> None:
        hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *self._kept])
        part = (hashes >> np.uint64(58)).astype(np.int64)
        order = np.argsort(part, kind="stable")
        bounds = np.searchsorted(part[order], np.arange(_N_PARTS + 1))
        for i in range(_N_PARTS):
            mine = hashes[order[bounds[i] : bounds[i + 1]]]
            if len(mine):
                self._shelf.put(i, pd.DataFrame({"hash": mine}))
        self._kept.clear()
        self._n_kept = 0
        self._is_shelved = True

    def n_different(self) -> int:
        """Count the rows that differ from each other, and forget them all."""
        if not self._is_shelved:
            n = _n_different(np.concatenate([np.zeros(0, dtype=np.uint64), *self._kept]))
            self._kept.clear()
            return n
        self._put_away()
        n = 0
        for i in range(_N_PARTS):
            part = self._shelf.read(i)
            if len(part):
                n += _n_different(part["hash"].to_numpy(dtype=np.uint64, copy=True))
            self._shelf.drop(i)
        return n


def _n_different(hashes: HashArray) -> int:
    """Sorting in place is faster than NumPy's hash table here."""
    hashes.sort()
    return int((np.diff(hashes) != 0).sum()) + (len(hashes) > 0)


def row_hashes(chunk: pd.DataFrame, code: pd.Series) -> HashArray:
    """64-bit hashes of whole rows."""
    total = np.zeros(len(chunk), dtype=np.uint64)
    for name in _COLUMNS:
        if name not in chunk:
            continue
        column = code if name == "code" else chunk[name]
        values = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array
        with np.errstate(over="ignore"):
            total = total * _HASH_MULTIPLIER + pd.util.hash_array(values, categorize=False)
            total ^= total >> np.uint64(29)
    return total


def first_of_each(hashes: HashArray) -> npt.NDArray[np.bool_]:
    """Mark the first row of each hash."""
    order = np.argsort(hashes, kind="stable")
    mark = np.empty(len(hashes), dtype=bool)
    mark[order] = np.append(True, np.diff(hashes[order]) != 0)[: len(hashes)]
    return mark
