"""Where each feature lives in the sparse matrix, what it is called, and how entries are collected."""

from collections.abc import Sequence

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
_CATEGORY_GROUPS = {"panel": RESULT_ASPECTS, "class": DRUG_ASPECTS}


class Layout:
    """Columns in order: every aspect for every item, the stay's own, care units, kinds of admission, categories.

    Parameters
    ----------
    items, names, units : sequence of str
        Group key, name for people and unit ("" where there is none) of every item.
    categories : sequence of str, optional
        Names of lab panels and drug classes.
    """

    def __init__(
        self, items: Sequence[str], names: Sequence[str], units: Sequence[str], categories: Sequence[str] = ()
    ) -> None:
        self.n_items = len(items)
        self._categories = categories
        self._items, self._names, self._units = items, names, units
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
        for group, aspects in _CATEGORY_GROUPS.items() if categories else ():
            for aspect in aspects:
                self._offsets[group, aspect.key] = offset
                offset += len(categories)
        self.n_columns = offset

    def column(self, group: str, key: str) -> int:
        """First column of an aspect; the item's number is added to it."""
        return self._offsets[group, key]

    def dictionary(self, columns: IntArray) -> pd.DataFrame:
        """Describe some columns, in the order given (sorted)."""
        starts = list(self._offsets.values())
        blocks = list(self._offsets)
        block = np.searchsorted(starts, columns, side="right") - 1
        rows = [
            self._describe(blocks[i], int(column) - starts[i])
            for i, column in zip(block.tolist(), columns.tolist(), strict=True)
        ]
        return pd.DataFrame(rows, columns=_COLUMNS)

    def _describe(self, block: tuple[str, str], item: int) -> _Row:
        group, key = block
        if group in (UNIT, ADMISSION):
            key, words = ("on_unit", "1 if on") if group == UNIT else ("admission", "1 if the admission was")
            return f"{group}: {self._items[item]}", group, key, f"{words} {self._items[item]}", "", True
        if group == "stay":
            source, each = next((source, each) for source, each in STAY_ASPECTS if each.key == key)
            return f"{source}: {each.words}", source, each.key, each.meaning, each.unit, each.is_flag
        if group in _CATEGORY_GROUPS:
            aspect = next(each for each in _CATEGORY_GROUPS[group] if each.key == key)
            return _item_row(f"Any of {self._categories[item]}", "", aspect)
        aspect = next(each for each in _GROUPS[group] if each.key == key)
        return _item_row(self._names[item], self._units[item], aspect)


def note_first_texts(events: pd.DataFrame, column: str, into: list[str]) -> None:
    """Write the text of a column at each item's first event into a list by item, where the list has none yet.

    Parameters
    ----------
    events : DataFrame
        Some rows of an event stream.
    column : {"name", "unit"}
    into : list of str, length n_items
        Changed in place.
    """
    items, texts = events["item"].cat.codes.to_numpy(), events[column]
    found, first = np.unique(items, return_index=True)
    for item, text in zip(found.tolist(), texts.iloc[first], strict=True):
        into[item] = into[item] or str(text)


def with_unit(events: pd.DataFrame) -> pd.DataFrame:
    """Give the rows that tell the unit of an item's values."""
    return events[of_kind(events, (EventKind.LAB_RESULT, EventKind.OBSERVATION)) & (events["unit"] != "").to_numpy()]


def _item_row(name: str, unit: str, aspect: Aspect) -> _Row:
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
