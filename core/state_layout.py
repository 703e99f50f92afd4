"""Where each feature lives in the sparse matrix, what it is called, and how entries are collected."""

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from core.aspects import (
    ADMISSION,
    DRUG_ASPECTS,
    PENDING_ASPECTS,
    RESULT_ASPECTS,
    STAY_ASPECTS,
    UNIT,
    VALUE_ASPECTS,
    Aspect,
)
from core.events import EventKind, of_kind

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_Row = tuple[str, str, str, str, str, bool]
_COLUMNS = ["name", "source", "aspect", "meaning", "unit", "is_flag"]
_GROUPS = {"value": VALUE_ASPECTS, "result": RESULT_ASPECTS, "pending": PENDING_ASPECTS, "drug": DRUG_ASPECTS}


class Layout:
    """Columns in order: every aspect for every item, then the stay's own, then care units and kinds of admission.

    Parameters
    ----------
    events : DataFrame
        An event stream; its items, names and units are described.
    """

    def __init__(self, events: pd.DataFrame) -> None:
        items = events["item"].cat.categories
        self.n_items = len(items)
        self._items = [str(item) for item in items]
        self._names = _first_text(events, "name", self._items)
        with_unit = events[of_kind(events, (EventKind.LAB_RESULT, EventKind.OBSERVATION)) & (events["unit"] != "")]
        self._units = _first_text(with_unit, "unit", [""] * self.n_items)
        self._offsets: dict[tuple[str, str], int] = {}
        offset = 0
        for group, aspects in _GROUPS.items():
            for aspect in aspects:
                self._offsets[group, aspect.key] = offset
                offset += self.n_items
        for _, aspect in STAY_ASPECTS:
            self._offsets["stay", aspect.key] = offset
            offset += 1
        for source in (UNIT, ADMISSION):
            self._offsets[source, ""] = offset
            offset += self.n_items
        self.n_columns = offset

    def column(self, group: str, key: str) -> int:
        """First column of an aspect; the item's number is added to it."""
        return self._offsets[group, key]

    def dictionary(self) -> pd.DataFrame:
        """Describe every possible column, in order."""
        rows: list[_Row] = []
        for aspects in _GROUPS.values():
            for aspect in aspects:
                rows += [_describe(name, unit, aspect) for name, unit in zip(self._names, self._units, strict=True)]
        for source, each in STAY_ASPECTS:
            rows.append((f"{source}: {each.words}", source, each.key, each.meaning, each.unit, each.is_flag))
        for source, key, words in ((UNIT, "on_unit", "1 if on"), (ADMISSION, "admission", "1 if the admission was")):
            rows += [(f"{source}: {item}", source, key, f"{words} {item}", "", True) for item in self._items]
        return pd.DataFrame(rows, columns=_COLUMNS)


def _first_text(events: pd.DataFrame, column: str, otherwise: list[str]) -> list[str]:
    """Text of a column at each item's first event."""
    out = list(otherwise)
    first = events[["item", column]].drop_duplicates("item")
    for item, text in zip(first["item"].cat.codes, first[column], strict=True):
        out[int(item)] = str(text)
    return out


def _describe(name: str, unit: str, aspect: Aspect) -> _Row:
    own = aspect.unit.format(unit=unit) if unit else aspect.unit.replace("{unit}/d", "per d").replace("{unit}", "")
    meaning = f"{name}: {aspect.meaning[0].lower()}{aspect.meaning[1:]}"
    return f"{name}, {aspect.words}", name, aspect.key, meaning, own, aspect.is_flag


class Entries:
    """Collects entries of the sparse matrix, column block by column block."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._rows: list[npt.NDArray[np.int32]] = []
        self._columns: list[npt.NDArray[np.int32]] = []
        self._values: list[npt.NDArray[np.float32]] = []

    def value(self, group: str, key: str, rows: IntArray, item: IntArray | int, values: FloatArray) -> None:
        """Store values; those that are not finite are "not measured" and stay out."""
        self._add(group, key, rows, item, values, np.isfinite(values))

    def flag(self, group: str, key: str, rows: IntArray, item: IntArray | int, values: npt.NDArray[np.generic]) -> None:
        """Store flags or counts; zeros stay out."""
        self._add(group, key, rows, item, values, values != 0)

    def _add(
        self,
        group: str,
        key: str,
        rows: IntArray,
        item: IntArray | int,
        values: npt.NDArray[np.generic],
        keep: npt.NDArray[np.bool_],
    ) -> None:
        columns = self._layout.column(group, key) + np.broadcast_to(np.asarray(item), rows.shape)
        self._rows.append(rows[keep].astype(np.int32))
        self._columns.append(columns[keep].astype(np.int32))
        self._values.append(values[keep].astype(np.float32))

    def matrix(self, n_rows: int) -> sparse.csr_matrix:
        """Build the matrix; explicit zeros stay, because a value of 0 was measured."""
        matrix = sparse.csr_matrix(
            (np.concatenate(self._values), (np.concatenate(self._rows), np.concatenate(self._columns))),
            shape=(n_rows, self._layout.n_columns),
            dtype=np.float32,
        )
        matrix.sort_indices()
        return matrix
