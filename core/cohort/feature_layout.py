"""Where each feature lives in the sparse matrix, what it is called, and how entries are collected."""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from core.cohort.feature_loops import count_entries, place_entries
from core.events.stream import of_kind
from core.kinds import VALUE_EVENTS, FeatureGroup, Kind

LOOK_BACK_HOURS = 24
"""What came up to a day before admission (emergency room, pre-operative visit) belongs to the stay."""
PENDING_HOURS = 48
"""An order without a result is pending for this long."""
RECENT_HOURS = 24


@dataclass(frozen=True)
class FeatureKind:
    """One thing said about an item."""

    key: str  # stable name, ``"last_value"``
    words: str  # for people, after the item's name: "Potassium, last value"
    meaning: str  # a sentence for the feature dictionary
    is_flag: bool  # a flag or count: not stored means 0. Otherwise not stored means "not measured".
    unit: str  # ``"{unit}"`` is the item's own


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
COURSE_KINDS = (
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
GROUPS: dict[FeatureGroup, tuple[FeatureKind, ...]] = {
    "value": VALUE_KINDS,
    "result": RESULT_KINDS,
    "pending": PENDING_KINDS,
    "course": COURSE_KINDS,
}
_COLUMNS = ["name", "source", "aspect", "meaning", "unit", "is_flag"]
_Row = tuple[str, str, str, str, str, bool]


def block_name(kind: Kind, group: FeatureGroup, *, of_categories: bool = False) -> str:
    """Return the name of the columns of a group of features of a kind of decision, by item or by category."""
    return f"{kind.value} {group}{' of categories' if of_categories else ''}"


def category_group(kind: Kind) -> FeatureGroup:
    """Return the group of features that holds for any member of a category of items."""
    return "course" if "course" in kind.record.features else "result"


class Layout:
    """Columns in order: every feature of every item, the stay's own, care units, kinds of admission, categories."""

    def __init__(
        self, items: Sequence[str], names: Sequence[str], units: Sequence[str], categories: Sequence[str] = ()
    ) -> None:
        self.n_columns = 0
        self._starts: dict[tuple[str, str], int] = {}
        self._describe: list[Callable[[int], _Row]] = []
        for kind in Kind:
            for group in kind.record.features:
                for each in GROUPS[group]:
                    self._add(block_name(kind, group), each.key, len(items), partial(_item_row, each, names, units))
        for source, each in STAY_KINDS:
            self._add("stay", each.key, 1, partial(_stay_row, each, source))
        self._add(UNIT, "", len(items), partial(_name_row, UNIT, "on_unit", "1 if on", items))
        self._add(
            ADMISSION, "", len(items), partial(_name_row, ADMISSION, "admission", "1 if the admission was", items)
        )
        any_of, no_units = [f"Any of {name}" for name in categories], [""] * len(categories)
        for kind in Kind if categories else ():
            group = category_group(kind)
            for each in GROUPS[group]:
                describe = partial(_item_row, each, any_of, no_units)
                self._add(block_name(kind, group, of_categories=True), each.key, len(categories), describe)

    def _add(self, block: str, key: str, n_columns: int, describe: Callable[[int], _Row]) -> None:
        self._starts[block, key] = self.n_columns
        self._describe.append(describe)
        self.n_columns += n_columns

    def column(self, block: str, key: str) -> int:
        """Return the first column of a feature; the item's number is added to it."""
        return self._starts[block, key]

    def dictionary(self, columns: IntArray) -> pd.DataFrame:
        """Describe some columns, in the order given (sorted)."""
        starts = list(self._starts.values())
        blocks = np.searchsorted(starts, columns, side="right") - 1
        rows = [
            self._describe[block](column - starts[block])
            for block, column in zip(blocks.tolist(), columns.tolist(), strict=True)
        ]
        return pd.DataFrame(rows, columns=_COLUMNS)


def _item_row(kind: FeatureKind, names: Sequence[str], units: Sequence[str], item: int) -> _Row:
    name, unit = names[item], units[item]
    own = kind.unit.format(unit=unit) if unit else kind.unit.replace("{unit}/d", "per d").replace("{unit}", "")
    meaning = f"{name}: {kind.meaning[0].lower()}{kind.meaning[1:]}"
    return f"{name}, {kind.words}", name, kind.key, meaning, own, kind.is_flag


def _stay_row(kind: FeatureKind, source: str, _: int) -> _Row:
    return f"{source}: {kind.words}", source, kind.key, kind.meaning, kind.unit, kind.is_flag


def _name_row(source: str, key: str, words: str, items: Sequence[str], item: int) -> _Row:
    return f"{source}: {items[item]}", source, key, f"{words} {items[item]}", "", True


def note_first_texts(events: pd.DataFrame, column: str, into: list[str]) -> None:
    """Write the name or unit at each item's first event into a list by item, where the list has none yet."""
    items, texts = events["item"].cat.codes.to_numpy(), events[column].cat
    first = np.full(len(into), -1, dtype=np.int64)
    # Of rows that are written to one place the last one stays.
    first[items[::-1]] = np.arange(len(items))[::-1]
    found = np.flatnonzero(first >= 0)
    for item, text in zip(found.tolist(), texts.codes.to_numpy()[first[found]].tolist(), strict=True):
        into[item] = into[item] or str(texts.categories[text])


def names_apart(names: list[str], items: list[str], units: list[str]) -> list[str]:
    """Return names of which no two are the same: those of several items show the unit, else the item."""
    times = Counter(name.casefold() for name in names)
    with_unit = [
        f"{name} ({unit})" if unit and times[name.casefold()] > 1 else name
        for name, unit in zip(names, units, strict=True)
    ]
    times = Counter(name.casefold() for name in with_unit)
    return [
        f"{name} [{item}]" if times[name.casefold()] > 1 and name != item else name
        for name, item in zip(with_unit, items, strict=True)
    ]


def apart_name(name: str, item: str, units: Sequence[str], names: Set[str]) -> str:
    """Return which of the names that `names_apart` has made is an item's, whose values have one of some units."""
    with_units = [f"{name} ({unit})" for unit in units if unit]
    made = [*(f"{each} [{item}]" for each in (*with_units, name)), *with_units]
    return next((each for each in made if each in names), name)


def with_unit(events: pd.DataFrame) -> pd.DataFrame:
    """Return item and unit of the rows that tell the unit of an item's values."""
    tells = of_kind(events, VALUE_EVENTS) & (events["unit"] != "").to_numpy()
    return events.loc[tells, ["item", "unit"]]


class Entries:
    """Collects entries of the sparse matrix, one feature of all items at a time."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._found: list[tuple[int, IntArray, IntArray, npt.NDArray[np.float32]]] = []

    def value(self, block: str, key: str, rows: IntArray, item: IntArray | int, values: FloatArray) -> None:
        """Store values; those that are not finite are "not measured" and stay out."""
        self.add(block, key, rows, item, np.where(np.isfinite(values), values, np.nan))

    def flag(self, block: str, key: str, rows: IntArray, item: IntArray | int, values: npt.NDArray[np.generic]) -> None:
        """Store flags or counts; zeros stay out."""
        self.add(block, key, rows, item, np.where(values != 0, values, np.nan))

    def add(self, block: str, key: str, rows: IntArray, item: IntArray | int, values: npt.NDArray[np.floating]) -> None:
        """Store what is not NaN, one value at most for each row and item, items of a row in their order."""
        whole = partial(np.ascontiguousarray, dtype=np.int32)
        items = whole(np.broadcast_to(np.asarray(item, dtype=np.int32), rows.shape))
        self._found.append((self._layout.column(block, key), whole(rows), items, values.astype(np.float32, copy=False)))

    def matrix(self, n_rows: int) -> sparse.csr_matrix:
        """Build the matrix; explicit zeros stay, because a value of 0 was measured."""
        first = np.zeros(n_rows + 1, dtype=np.int64)
        for _, rows, _, values in self._found:
            count_entries(rows, values, first)
        first = np.cumsum(first)
        columns, data = np.empty(first[-1], dtype=np.int32), np.empty(first[-1], dtype=np.float32)
        place = first.copy()
        for column, rows, items, values in sorted(self._found, key=lambda each: each[0]):
            place_entries(rows, items, values, column, place, columns, data)
        return sparse.csr_matrix((data, columns, first), shape=(n_rows, self._layout.n_columns))
