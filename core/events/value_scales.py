"""Doubts about the numbers of an item that only all of them together raise: two scales in one unit, stray negatives."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.events.plausibility import Finding

FloatArray = npt.NDArray[np.float64]

_PER_DECADE, _LOWEST, _N_DECADES = 20, -6, 15
_NEGATIVE = _PER_DECADE * _N_DECADES
_N_BINS = _NEGATIVE + 1
_ENOUGH = 20
_FEW = 5
_SHARE = 0.01
_GAP = 14
"""Empty bins in a row between two scales: a factor of five."""
_FACTORS = (10, 100, 1000)
_ABOUT = 1.5
_SHARE_NEGATIVE = 0.05


class ValueScales:
    """Counts the numbers of each item by their size, part by part."""

    def __init__(self, n_items: int) -> None:
        self._n = np.zeros((n_items, _N_BINS), dtype=np.int64)
        self._first = np.full(self._n.size, np.nan)
        self._differ = np.zeros(self._n.size, dtype=bool)
        """A number of each size, and whether others differ from it."""

    def add(self, value: FloatArray, item: npt.NDArray[np.integer]) -> None:
        """Count the numbers of some results; zeros and missing ones say nothing."""
        rows = np.flatnonzero(np.abs(value) > 0)
        found = value[rows]
        size = np.floor((np.log10(np.abs(found)) - _LOWEST) * _PER_DECADE)
        place = np.where(found < 0, _NEGATIVE, np.clip(size, 0, _NEGATIVE - 1)).astype(np.int64)
        place += item[rows] * np.int64(_N_BINS)
        self._n += np.bincount(place, minlength=self._n.size).reshape(self._n.shape)
        new = np.isnan(self._first[place])
        self._first[place[new]] = found[new]
        self._differ[place[found != self._first[place]]] = True

    def findings(self, names: Sequence[str]) -> list[Finding]:
        """Return what is doubtful; `names` are those of the items."""
        n_values = int(self._n.sum())
        negative, all_of_item = self._n[:, _NEGATIVE], self._n.sum(axis=1)
        stray = (negative > 0) & (negative <= _SHARE_NEGATIVE * all_of_item) & (all_of_item >= _ENOUGH)
        differ = self._differ.reshape(self._n.shape)
        second = np.array(
            [_n_of_second_scale(n[:_NEGATIVE], d) for n, d in zip(self._n, differ, strict=True)], dtype=int
        )
        return [
            Finding(name, int(count.sum()), n_values, tuple(names[i] for i in np.argsort(-count) if count[i]))
            for name, count in (("stray_negatives", np.where(stray, negative, 0)), ("two_scales", second))
        ]


def _n_of_second_scale(n: npt.NDArray[np.int64], differ: npt.NDArray[np.bool_]) -> int:
    """Return how many numbers are those of a few that are 10, 100 or 1,000 times larger or smaller than all others.

    The same number again and again is no scale, but a limit of detection.
    """
    filled = np.flatnonzero(n)
    gaps = np.flatnonzero(np.diff(filled) > _GAP)
    if len(gaps) != 1:
        return 0
    low, high = filled[: gaps[0] + 1], filled[gaps[0] + 1 :]
    fewer = min((low, high), key=lambda bins: int(n[bins].sum()))
    count = int(n[fewer].sum())
    middle = [np.repeat(bins, n[bins])[int(n[bins].sum()) // 2] for bins in (low, high)]
    factor = 10 ** ((middle[1] - middle[0]) / _PER_DECADE)
    is_scale = any(1 / _ABOUT < factor / each < _ABOUT for each in _FACTORS)
    is_scale &= len(fewer) > 1 or bool(differ[fewer[0]])
    return count if is_scale and count >= max(_FEW, _SHARE * int(n.sum())) else 0
