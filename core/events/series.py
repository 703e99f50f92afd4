"""Ranges of time-sorted series: what every feature is computed from, without a loop over instances."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_SPAN = np.int64(1) << 36
"""Seconds between two series on the common axis: 2,177 years, more than any shifted calendar needs."""
_ORIGIN = -(np.int64(1) << 35)


class SeriesSet:
    """Events of many series (one patient and item each), sorted by series and time.

    Parameters
    ----------
    series : array of int, shape (n_events,)
        Number of each event's series, 0 to n_series - 1.
    time : array of int, shape (n_events,)
        Seconds; what is looked up is always "strictly before".
    n_series : int
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


def cross(patient_of_series: IntArray, patient_of_instance: IntArray) -> tuple[IntArray, IntArray]:
    """Pair every series with every instance of its patient.

    Parameters
    ----------
    patient_of_series : array of int, shape (n_series,)
    patient_of_instance : array of int, shape (n_instances,)
        Sorted.

    Returns
    -------
    series, instance : array of int, shape (n_pairs,)
    """
    first = np.searchsorted(patient_of_instance, patient_of_series, side="left")
    n = np.searchsorted(patient_of_instance, patient_of_series, side="right") - first
    series = np.repeat(np.arange(len(patient_of_series)), n)
    return series, ranges(first, n)


def ranges(first: IntArray, n: IntArray) -> IntArray:
    """Write out ranges one after the other: ``first[0], first[0] + 1, ..., first[1], ...``.

    Examples
    --------
    >>> ranges(np.array([5, 9]), np.array([2, 1])).tolist()
    [5, 6, 9]
    """
    ends = np.cumsum(n)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) - np.repeat(ends - n, n) + np.repeat(first, n)


@dataclass(frozen=True)
class RangeStatistics:
    """Figures of the values inside each range; NaN where a range is empty.

    Parameters
    ----------
    n : array of int, shape (n_ranges,)
    first, minimum, maximum, mean : array of shape (n_ranges,)
    slope : array of shape (n_ranges,)
        Least-squares change per day; NaN unless there are two different times.
    """

    n: IntArray
    first: FloatArray
    minimum: FloatArray
    maximum: FloatArray
    mean: FloatArray
    slope: FloatArray


def range_statistics(value: FloatArray, time: IntArray, first: IntArray, end: IntArray) -> RangeStatistics:
    """Compute figures over ranges ``first`` to ``end - 1`` of sorted events; ranges may overlap.

    Parameters
    ----------
    value : array of shape (n_events,)
        Finite.
    time : array of int, shape (n_events,)
        Seconds.
    first, end : array of int, shape (n_ranges,)

    Returns
    -------
    RangeStatistics
    """
    n = np.maximum(end - first, 0)
    full = n > 0
    starts = (np.cumsum(n) - n)[full]
    rows = ranges(first, n)
    values = value[rows]
    owner = np.repeat(np.arange(int(full.sum())), n[full])
    mean = _sums(values, starts) / n[full]
    # Times relative to the first of the range, then centred: no digit is lost to the calendar.
    days = (time[rows] - time[first[full]][owner]) / 86400.0
    days -= (_sums(days, starts) / n[full])[owner]
    spread = _sums(days * days, starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(spread > 0, _sums(days * (values - mean[owner]), starts) / spread, np.nan)

    def spread_out(part: FloatArray) -> FloatArray:
        out = np.full(len(n), np.nan)
        out[full] = part
        return out

    return RangeStatistics(
        n=n,
        first=spread_out(value[first[full]]),
        minimum=spread_out(np.minimum.reduceat(values, starts) if len(starts) else values),
        maximum=spread_out(np.maximum.reduceat(values, starts) if len(starts) else values),
        mean=spread_out(mean),
        slope=spread_out(slope),
    )


def _sums(values: FloatArray, starts: IntArray) -> FloatArray:
    return np.add.reduceat(values, starts) if len(starts) else values
