"""Reference bands: the central 90 % of a lab's values at this site, without a look at the patient's own future."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LOW_SHARE, HIGH_SHARE = 0.05, 0.95
MIN_VALUES = 20
"""A band from fewer values is no band."""
N_FOLDS = 5
MIN_STEP_DAYS = 7
MAX_STEPS = 52


@dataclass(frozen=True)
class ReferenceBands:
    """Bands of every item in every cell of the population.

    Parameters
    ----------
    low, high : array of shape (n_cells, n_items)
        NaN where there are too few values.
    cell_of_instance : array of int, shape (n_instances,)
    """

    low: FloatArray
    high: FloatArray
    cell_of_instance: IntArray


def reference_bands(
    value: FloatArray,
    item: IntArray,
    n_items: int,
    cell: IntArray,
    cell_of_instance: IntArray,
    *,
    expanding: bool,
) -> ReferenceBands:
    """Compute bands that an instance may use without knowing its own future.

    With a true calendar (`expanding`) cells are consecutive periods, and the band of a period comes from all values of
    earlier periods. With shifted calendars cells are groups of patients, and the band of a group comes from all others.

    Parameters
    ----------
    value : array of shape (n_values,)
        Finite.
    item, cell : array of int, shape (n_values,)
    n_items : int
    cell_of_instance : array of int, shape (n_instances,)
    expanding : bool

    Returns
    -------
    ReferenceBands
    """
    n_cells = int(max(cell.max(initial=-1), cell_of_instance.max(initial=-1))) + 1
    low, high = np.full((n_cells, n_items), np.nan), np.full((n_cells, n_items), np.nan)
    order = np.argsort(item, kind="stable")
    bounds = np.searchsorted(item[order], np.arange(n_items + 1))
    for j in range(n_items):
        rows = order[bounds[j] : bounds[j + 1]]
        if len(rows) < MIN_VALUES:
            continue
        values, cells = value[rows], cell[rows]
        for c in range(n_cells):
            usable = values[cells < c] if expanding else values[cells != c]
            if len(usable) >= MIN_VALUES:
                low[c, j], high[c, j] = np.quantile(usable, (LOW_SHARE, HIGH_SHARE))
    return ReferenceBands(low, high, cell_of_instance)


def period_cells(known_at: IntArray, snapshot: IntArray) -> tuple[IntArray, IntArray]:
    """Give events and snapshots (seconds) the numbers of consecutive periods of at least a week each."""
    if not len(known_at):
        return known_at, np.zeros(len(snapshot), dtype=np.int64)
    origin = int(known_at.min())
    span = max(int(snapshot.max(initial=origin)) - origin, 1)
    step = max(MIN_STEP_DAYS * 86400, -(-span // MAX_STEPS))
    return (known_at - origin) // step, np.maximum((snapshot - origin) // step, 0)


def patient_cells(patient_ids: Iterable[str]) -> IntArray:
    """Deal patients to groups by a checksum of their pseudonyms, so that a new patient moves nobody else."""
    return np.array([zlib.crc32(patient.encode()) % N_FOLDS for patient in patient_ids], dtype=np.int64)
