"""Reference bands: the central 90 % of a lab's values at this site, without a look at the patient's own future."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.cohort.instance_blocks import Block
from core.events.parts import Spill
from core.events.series import distinct
from core.events.stream import among
from core.kinds import VALUE_EVENTS
from core.numerics.compiled import compiled_exactly

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LOW_SHARE, HIGH_SHARE = 0.05, 0.95
MIN_VALUES = 20
"""A band from fewer values is no band."""
N_FOLDS = 5
MIN_STEP_DAYS = 7
MAX_STEPS = 52
_VALUES_AT_ONCE = 8_000_000


@dataclass(frozen=True)
class ReferenceBands:
    """Bands of every item in every cell of the population."""

    # `low` and `high`: shape (n_cells, n_items): NaN where there are too few values.
    low: FloatArray
    high: FloatArray
    cell_of_instance: IntArray  # shape (n_instances,)


def reference_bands(
    value: FloatArray,
    item: IntArray,
    n_items: int,
    cell: IntArray,
    cell_of_instance: IntArray,
    *,
    expanding: bool,
) -> ReferenceBands:
    """Compute bands that an instance may use without knowing its own future, from finite values.

    With a true calendar (`expanding`) cells are consecutive periods, and the band of a period comes from all values of
    earlier periods. With shifted calendars cells are groups of patients, and the band of a group comes from all others.
    """
    n_cells = int(max(cell.max(initial=-1), cell_of_instance.max(initial=-1))) + 1
    low, high = np.full((n_cells, n_items), np.nan), np.full((n_cells, n_items), np.nan)
    # A stable sort of 16 bits is a radix sort.
    order = np.argsort(item.astype(np.uint16) if n_items <= 1 << 16 else item, kind="stable")
    bounds = np.searchsorted(item[order], np.arange(n_items + 1))
    for j in np.flatnonzero(np.diff(bounds) >= MIN_VALUES):
        rows = order[bounds[j] : bounds[j + 1]]
        low[:, j], high[:, j] = _item_bands(value[rows], cell[rows], n_cells, expanding=expanding)
    return ReferenceBands(low, high, cell_of_instance)


def _item_bands(value: FloatArray, cell: IntArray, n_cells: int, *, expanding: bool) -> tuple[FloatArray, FloatArray]:
    out = np.full((2, n_cells), np.nan)
    n_in_cell = np.bincount(cell, minlength=n_cells)
    n_usable = np.cumsum(n_in_cell) - n_in_cell if expanding else len(cell) - n_in_cell
    order = np.argsort(value)
    value, cell = value[order], cell[order]
    for c in range(n_cells):
        if expanding and c and not n_in_cell[c - 1]:
            # Nothing came since the period before: its band still holds.
            out[:, c] = out[:, c - 1]
        elif n_usable[c] >= MIN_VALUES:
            for i, share in enumerate((LOW_SHARE, HIGH_SHARE)):
                out[i, c] = quantile_of_some(value, cell, c, expanding, n_usable[c], share)
    return out[0], out[1]


@compiled_exactly
def quantile_of_some(value: Any, cell: Any, c: Any, is_before: Any, n: Any, share: Any) -> Any:
    """Return a quantile of the values of the cells before `c`, or of all cells but it, as `numpy.quantile` does.

    Takes ``value`` (sorted) and ``cell`` of shape (n_values,), and the number n of the values that count.
    """
    virtual = (n - 1) * share
    rank = int(np.floor(virtual))
    part, is_upper = virtual - rank, 2 * rank > n
    # Walk from the nearer end to the two values around the quantile.
    i, step, left = (len(value) - 1, -1, n - 1 - min(rank + 1, n - 1)) if is_upper else (0, 1, rank)
    near = far = np.nan
    while True:
        if (cell[i] < c) if is_before else (cell[i] != c):
            if left == 0:
                near = value[i]
            if left == -1 or (left == 0 and rank + 1 > n - 1):
                far = value[i]
                break
            left -= 1
        i += step
    low, high = (far, near) if is_upper else (near, far)
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


class Periods:
    """Consecutive periods of at least a week each, over values and snapshots whose times come in parts."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._last_snapshot: int | None = None

    def see(self, known_at: IntArray, snapshot: IntArray) -> None:
        """Note the times (seconds) of some values and snapshots."""
        if len(known_at):
            first = int(known_at.min())
            self._first = first if self._first is None else min(first, self._first)
        if len(snapshot):
            last = int(snapshot.max())
            self._last_snapshot = last if self._last_snapshot is None else max(last, self._last_snapshot)

    def cells(self, times: IntArray) -> IntArray:
        """Return the period of each time, 0 before the first value; final once all were seen."""
        if self._first is None:
            return np.zeros(len(times), dtype=np.int64)
        last = self._first if self._last_snapshot is None else max(self._last_snapshot, self._first)
        step = max(MIN_STEP_DAYS * 86400, -(-max(last - self._first, 1) // MAX_STEPS))
        return np.maximum((times - self._first) // step, 0)


def patient_cells(patient_ids: Iterable[str]) -> IntArray:
    """Deal patients to groups by a checksum of their pseudonyms, so that a new patient moves nobody else."""
    return np.array([zlib.crc32(patient.encode()) % N_FOLDS for patient in patient_ids], dtype=np.int64)


class BandCollector:
    """Collects the values of all parts of an event stream, and then gives every part its bands.

    The more events the whole stream has, the more parts of the spill its values wait in. With a shifted calendar bands
    come from other patients, else from earlier dates.
    """

    def __init__(self, n_items: int, n_events: int, spill: Spill, *, calendar_is_shifted: bool) -> None:
        self._n_items = n_items
        self._n_spilled = max(1, -(-n_events // _VALUES_AT_ONCE))
        self._spill = spill
        self._shifted = calendar_is_shifted
        self._periods = Periods()
        self._low = self._high = np.zeros((0, n_items))

    def add(self, events: pd.DataFrame, block: Block) -> None:
        """Note the values and snapshots of one part; the block has the same events, and their instances."""
        results = block.where(np.flatnonzero(among(block.kind, VALUE_EVENTS) & np.isfinite(block.value)))
        self._periods.see(results.known_at, block.snapshot)
        when = self._patient_cells(events)[results.patient] if self._shifted else results.known_at
        rows = pd.DataFrame({"item": results.item.astype(np.int32), "when": when, "value": results.value}, copy=False)
        to = results.item % self._n_spilled
        for part in distinct(to).tolist():
            self._spill.put(part, rows if self._n_spilled == 1 else rows[to == part])

    @staticmethod
    def _patient_cells(events: pd.DataFrame) -> IntArray:
        return patient_cells(events["patient_id"].cat.categories.tolist())

    def finish(self) -> None:
        """Compute all bands."""
        n_cells = N_FOLDS if self._shifted else MAX_STEPS + 2
        self._low, self._high = np.full((2, n_cells, self._n_items), np.nan)
        for part in range(self._n_spilled):
            rows = self._spill.read(part)
            self._spill.drop(part)
            if not len(rows):
                continue
            mine = np.bincount(rows["item"].to_numpy(), minlength=self._n_items) > 0
            items, item = np.flatnonzero(mine), (np.cumsum(mine) - 1)[rows["item"].to_numpy()]
            when = rows["when"].to_numpy()
            # What came after the last snapshot is in nobody's band, however far away it lies.
            cell = when if self._shifted else np.minimum(self._periods.cells(when), n_cells - 1)
            bands = reference_bands(
                rows["value"].to_numpy(), item, len(items), cell, np.array([n_cells - 1]), expanding=not self._shifted
            )
            self._low[:, items], self._high[:, items] = bands.low[:n_cells], bands.high[:n_cells]

    def bands(self, events: pd.DataFrame, block: Block) -> ReferenceBands:
        """Bands of one part, with the cells of its instances."""
        if self._shifted:
            cells = self._patient_cells(events)[block.instance_patient]
        else:
            cells = np.minimum(self._periods.cells(block.snapshot), len(self._low) - 1)
        return ReferenceBands(self._low, self._high, cells)
