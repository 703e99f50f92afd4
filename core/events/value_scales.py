"""Doubts about the numbers of an item that only all of them together raise: two scales in one unit, stray negatives."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.events.plausibility import Finding

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_PER_DECADE, _LOWEST, _N_DECADES = 20, -6, 15
_NEGATIVE = _PER_DECADE * _N_DECADES
_N_BINS = _NEGATIVE + 1
_ENOUGH = 20
_FEW = 5
_SHARE = 0.01
_GAP = 14
"""Empty bins in a row between two scales: a factor of five."""
_FACTORS = (10, 18, 100, 1000)
"""Eighteen turns mmol/L of glucose into mg/dL; 88 of creatinine is near a hundred."""
_ABOUT = 1.5
_SHARE_NEGATIVE = 0.05


class ValueScales:
    """Counts the numbers of each item by their size, part by part; only sizes that occur take room."""

    def __init__(self) -> None:
        self._place = self._n = np.zeros(0, dtype=np.int64)
        """Item and size of numbers, sorted, and how many there are."""
        self._least = self._largest = np.zeros(0)

    def add(self, value: FloatArray, item: npt.NDArray[np.integer]) -> None:
        """Count the numbers of some results; zeros and missing ones say nothing."""
        rows = np.flatnonzero(np.abs(value) > 0)
        if not len(rows):
            return
        found = value[rows]
        size = np.clip(np.floor((np.log10(np.abs(found)) - _LOWEST) * _PER_DECADE), 0, _NEGATIVE - 1)
        place = np.where(found < 0, _NEGATIVE, size).astype(np.int64) + item[rows] * np.int64(_N_BINS)
        place = np.append(self._place, place)
        order = np.argsort(place)
        place = place[order]
        starts = np.flatnonzero(np.append(True, np.diff(place) != 0))
        self._place = place[starts]
        self._n = np.add.reduceat(np.append(self._n, np.ones(len(rows), dtype=np.int64))[order], starts)
        self._least = np.minimum.reduceat(np.append(self._least, found)[order], starts)
        self._largest = np.maximum.reduceat(np.append(self._largest, found)[order], starts)

    def findings(self, names: Sequence[str]) -> list[Finding]:
        """Return what is doubtful; `names` are those of the items."""
        item, size = np.divmod(self._place, _N_BINS)
        is_negative, n_values = size == _NEGATIVE, int(self._n.sum())
        all_of_item, negative = (
            np.bincount(item, n, len(names)).astype(np.int64) for n in (self._n, self._n * is_negative)
        )
        stray = (negative > 0) & (negative <= _SHARE_NEGATIVE * all_of_item) & (all_of_item >= _ENOUGH)
        second = np.zeros(len(names), dtype=np.int64)
        for mine in np.split(np.flatnonzero(~is_negative), np.flatnonzero(np.diff(item[~is_negative])) + 1):
            if len(mine):
                differs = self._least[mine] != self._largest[mine]
                second[item[mine[0]]] = _n_of_second_scale(size[mine], self._n[mine], differs)
        return [
            Finding(name, int(count.sum()), n_values, tuple(names[i] for i in np.argsort(-count) if count[i]))
            for name, count in (("stray_negatives", np.where(stray, negative, 0)), ("two_scales", second))
        ]


def _n_of_second_scale(size: IntArray, n: IntArray, differs: npt.NDArray[np.bool_]) -> int:
    """Return how many numbers are those of a few that are 10, 18, 100 or 1,000 times larger or smaller than all others.

    The same number again and again is no scale, but a limit of detection. All have shape (n_sizes,).
    """
    gaps = np.flatnonzero(np.diff(size) > _GAP)
    if len(gaps) != 1:
        return 0
    low, high = slice(0, gaps[0] + 1), slice(gaps[0] + 1, None)
    fewer = min((low, high), key=lambda part: int(n[part].sum()))
    count = int(n[fewer].sum())
    middle = [size[part][np.searchsorted(np.cumsum(n[part]), n[part].sum() // 2, side="right")] for part in (low, high)]
    factor = 10 ** ((middle[1] - middle[0]) / _PER_DECADE)
    is_scale = any(1 / _ABOUT < factor / each < _ABOUT for each in _FACTORS)
    is_scale &= len(size[fewer]) > 1 or bool(differs[fewer][0])
    return count if is_scale and count >= max(_FEW, _SHARE * int(n.sum())) else 0
