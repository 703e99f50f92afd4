"""Where each feature lives in the sparse matrix, what it is called, and how entries are collected."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from core.events.stream import EventKind, of_kind

LOOK_BACK_HOURS = 24
"""What came up to a day before admission (emergency room, pre-operative visit) belongs to the stay."""
PENDING_HOURS = 48
"""An order without a result is pending for this long."""
RECENT_HOURS = 24


@dataclass(frozen=True)
class FeatureKind:
    """One thing said about an item.

    Parameters
    ----------
    key : str
        Stable name, ``"last_value"``.
    words : str
        For people, after the item's name: "Potassium, last value".
    meaning : str
        A sentence for the feature dictionary.
    is_flag : bool
        A flag or count: not stored means 0. Otherwise not stored means "not measured".
    unit : str
        ``"{unit}"`` is the item's own.
    """

    key: str
    words: str
    meaning: str
    is_flag: bool
    unit: str


VALUE_KINDS = (
    FeatureKind("last_value", "last value", "Last known value", False, "{unit}"),
    FeatureKind("change", "change", "Last known value minus the one before", False, "{unit}"),
    FeatureKind("hours_between", "hours between last two", "Hours between the last two values", False, "h"),
    FeatureKind("slope_24h", "slope over 24 h", "Least-squares slope over the last 24 h", False, "{unit}/d"),
    FeatureKind("slope_stay", "slope over the stay", "Least-squares slope over the stay", False, "{unit}/d"),
    FeatureKind("min_stay", "minimum of the stay", "Smallest value of the stay so far", False, "{unit}"),
    FeatureKind("max_stay", "maximum of the stay", "Largest value of the stay so far", False, "{unit}"),
    FeatureKind("mean_stay", "mean of the stay", "Mean value of the stay so far", False, "{unit}"),
    FeatureKind("first_stay", "first of the stay", "First value of the stay", False, "{unit}"),
    FeatureKind("change_from_first", "change since first", "Last value minus the first of the stay", False, "{unit}"),
    FeatureKind("is_high", "high", "1 if the last value is above the central 90 % at this site", True, ""),
    FeatureKind("is_low", "low", "1 if the last value is below the central 90 % at this site", True, ""),
)
RESULT_KINDS = (
    FeatureKind("hours_since_last", "hours since last", "Hours since the last known result", False, "h"),
    FeatureKind("count_24h", "results in 24 h", "Number of results known in the last 24 h", True, ""),
    FeatureKind("count_stay", "results in the stay", "Number of results known in the stay", True, ""),
    FeatureKind("measured_24h", "measured in 24 h", "1 if a result became known in the last 24 h", True, ""),
    FeatureKind("ever", "ever measured", "1 if a result was ever known", True, ""),
)
PENDING_KINDS = (
    FeatureKind("pending", "pending", "1 if ordered or taken in the last 48 h and not known yet", True, ""),
)
DRUG_KINDS = (
    FeatureKind("on_now", "on now", "1 if ordered in this stay and not stopped, or given in the last 24 h", True, ""),
    FeatureKind(
        "given_24h", "given in 24 h", "1 if given (or, without administrations, ordered) in the last 24 h", True, ""
    ),
    FeatureKind("hours_since_start", "hours since start", "Hours since the last start", False, "h"),
    FeatureKind("hours_since_last", "hours since last", "Hours since it was last started or given", False, "h"),
    FeatureKind(
        "count_starts", "starts in the stay", "Number of starts in the stay (administrations without orders)", True, ""
    ),
    FeatureKind("ever", "ever", "1 if it was ever started or given", True, ""),
)
PATIENT = "Patient"
STAY = "Stay"
UNIT = "Care unit"
ADMISSION = "Admission"
STAY_KINDS = (
    (PATIENT, FeatureKind("age_years", "age", "Age at the snapshot", False, "years")),
    (PATIENT, FeatureKind("is_female", "female", "1 if female", True, "")),
    (PATIENT, FeatureKind("is_male", "male", "1 if male", True, "")),
    (STAY, FeatureKind("hours_since_admission", "hours since admission", "Hours since admission", False, "h")),
    (STAY, FeatureKind("day_of_stay", "day of stay", "Day of the stay, 1 = day of admission", False, "d")),
    (
        STAY,
        FeatureKind("previous_stays", "previous stays", "Number of stays that ended before this one began", True, ""),
    ),
    (
        STAY,
        FeatureKind(
            "hours_since_discharge", "hours since last discharge", "Hours since the stay before ended", False, "h"
        ),
    ),
    (UNIT, FeatureKind("hours_on_unit", "hours on the unit", "Hours since arrival on the care unit", False, "h")),
)


IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
_Row = tuple[str, str, str, str, str, bool]
_COLUMNS = ["name", "source", "aspect", "meaning", "unit", "is_flag"]
_GROUPS = {"value": VALUE_KINDS, "result": RESULT_KINDS, "pending": PENDING_KINDS, "drug": DRUG_KINDS}
_CATEGORY_GROUPS = {"panel": RESULT_KINDS, "class": DRUG_KINDS}


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
        for group, feature_kinds in _GROUPS.items():
            for feature_kind in feature_kinds:
                self._offsets[group, feature_kind.key] = offset
                offset += self.n_items
        for _, feature_kind in STAY_KINDS:
            self._offsets["stay", feature_kind.key] = offset
            offset += 1
        for source in (UNIT, ADMISSION):
            self._offsets[source, ""] = offset
            offset += self.n_items
        for group, feature_kinds in _CATEGORY_GROUPS.items() if categories else ():
            for feature_kind in feature_kinds:
                self._offsets[group, feature_kind.key] = offset
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
            source, each = next((source, each) for source, each in STAY_KINDS if each.key == key)
            return f"{source}: {each.words}", source, each.key, each.meaning, each.unit, each.is_flag
        if group in _CATEGORY_GROUPS:
            feature_kind = next(each for each in _CATEGORY_GROUPS[group] if each.key == key)
            return _item_row(f"Any of {self._categories[item]}", "", feature_kind)
        feature_kind = next(each for each in _GROUPS[group] if each.key == key)
        return _item_row(self._names[item], self._units[item], feature_kind)


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
    """Return the rows that tell the unit of an item's values."""
    return events[of_kind(events, (EventKind.LAB_RESULT, EventKind.OBSERVATION)) & (events["unit"] != "").to_numpy()]


def _item_row(name: str, unit: str, feature_kind: FeatureKind) -> _Row:
    own = (
        feature_kind.unit.format(unit=unit)
        if unit
        else feature_kind.unit.replace("{unit}/d", "per d").replace("{unit}", "")
    )
    meaning = f"{name}: {feature_kind.meaning[0].lower()}{feature_kind.meaning[1:]}"
    return f"{name}, {feature_kind.words}", name, feature_kind.key, meaning, own, feature_kind.is_flag


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
