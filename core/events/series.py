"""Series of events sorted by time, and sorting and distinct numbers that are faster than NumPy's own."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

_SPAN = np.int64(1) << 36
"""Seconds between two series on the common axis: 2,177 years, more than any shifted calendar needs."""
_ORIGIN = -(np.int64(1) << 35)


class SeriesSet:
    """Events of many series (one patient and item each), sorted by series, 0 to n_series - 1, and time in seconds.

    What is looked up is always "strictly before".
    """

    def __init__(self, series: IntArray, time: IntArray, n_series: int) -> None:
        key = series * _SPAN + np.clip(time - _ORIGIN, 0, _SPAN - 1)
        self.order = stable_argsort(key)
        self._key = key[self.order]
        self.time = time[self.order]
        self.n_series = n_series
        self._start = np.searchsorted(self._key, np.arange(n_series + 1) * _SPAN)

    def before(self, series: IntArray, time: IntArray) -> IntArray:
        """Return the position after the last event of each series strictly before a time."""
        key = series * _SPAN + np.clip(time - _ORIGIN, 0, _SPAN - 1)
        return np.asarray(np.searchsorted(self._key, key, side="left"), dtype=np.int64)

    def start(self, series: IntArray) -> IntArray:
        """Return the position of the first event of each series."""
        return np.asarray(self._start[series], dtype=np.int64)


def stable_argsort(key: npt.NDArray[np.integer]) -> IntArray:
    """Return the places in the order of the key, equal keys as they came.

    NumPy's default sort is several times as fast as its stable one; equal keys are put right afterwards.
    """
    if (key[1:] >= key[:-1]).all():
        return np.arange(len(key))
    order = np.argsort(key)
    found = key[order]
    tied = np.append(False, found[1:] == found[:-1])
    if tied.any():
        run = np.cumsum(~tied)
        rows = np.flatnonzero(tied | np.append(tied[1:], False))
        order[rows] = order[rows][np.lexsort([order[rows], run[rows]])]
    return order


def distinct(values: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Return the different values, sorted; the hash table of `numpy.unique` takes many times as long here."""
    ordered = np.sort(values)
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]])


def first_of_each(values: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Mark the first place of each value."""
    order = np.argsort(values)
    new = np.append(True, values[order[1:]] != values[order[:-1]])[: len(values)]
    mark = np.zeros(len(values), dtype=bool)
    mark[np.minimum.reduceat(order, np.flatnonzero(new)) if len(order) else order] = True
    return mark


def numbered(*columns: npt.NDArray[np.integer]) -> IntArray:
    """Return a number for each row, equal where all columns of shape (n,) are, from 0 in the order of the columns."""
    order = lexical_order(*columns)
    new = np.logical_or.reduce([column[order[1:]] != column[order[:-1]] for column in columns])
    out = np.zeros(len(order), dtype=np.int64)
    out[order[1:]] = np.cumsum(new)
    return out


def lexical_order(*columns: npt.NDArray[np.generic]) -> IntArray:
    """Return the places in the order of several columns, rows that are equal in all of them as they came.

    The first column counts most; NaN comes last. Whole numbers of neighbouring columns are packed into one while they
    fit, and what the first decides is not sorted again.
    """
    n = len(columns[0])
    first, *others = _packed([_whole(column) for column in columns])
    order = np.argsort(first)
    new = np.append(True, np.diff(first[order]) != 0)[:n]
    for word in (*others, np.arange(n)):
        rows = np.flatnonzero(~new | ~np.append(new[1:], True))
        if not len(rows):
            break
        mine, run = order[rows], np.cumsum(new)[rows]
        keys = _packed([run, word[mine]])
        mine = mine[np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])]
        order[rows] = mine
        new[rows[1:]] |= word[mine[1:]] != word[mine[:-1]]
    return order


def _whole(column: npt.NDArray[np.generic]) -> IntArray:
    """Return whole numbers in the order of a column."""
    if column.dtype.kind != "f":
        return column.astype(np.int64)
    # The bits of a positive number are in its order, those of a negative one against it; -0.0 becomes 0.0.
    bits = (column.astype(np.float64) + 0.0).view(np.int64)
    return np.where(np.isnan(column), _LARGEST, bits ^ ((bits >> np.int64(63)) & _LARGEST))


_LARGEST = np.iinfo(np.int64).max


def _packed(columns: list[IntArray]) -> list[IntArray]:
    """Return fewer columns in the same order of rows: neighbours become one number while it has 62 bits at most."""
    out: list[IntArray] = []
    n_bits = 0
    for column in columns:
        narrow, mine = _narrowed(column)
        if out and n_bits + mine <= _MOST_BITS:
            out[-1] = (out[-1] << np.int64(mine)) | narrow
            n_bits += mine
        else:
            out.append(narrow)
            n_bits = mine
    return out


_MOST_BITS = 62
_SECOND = 1_000_000


def _narrowed(column: IntArray) -> tuple[IntArray, int]:
    """Return numbers from 0 in the order of a column, and their bits; the column itself where they are too many.

    A missing time goes right before the others, and times in whole seconds become seconds.
    """
    if not len(column):
        return column, 1
    missing = column == -_LARGEST - 1
    if missing.any() and not missing.all():
        column = np.where(missing, max(int(column[~missing].min()) - _SECOND, -_LARGEST - 1), column)
    lowest = int(column.min())
    span = int(column.max()) - lowest
    if span.bit_length() > _MOST_BITS:
        return column, _MOST_BITS + 1
    column = column - lowest
    if span >= 1 << 32 and not (column % _SECOND).any():
        column, span = column // _SECOND, span // _SECOND
    return column, max(span, 1).bit_length()
