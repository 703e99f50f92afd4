"""Numbers of results freed of sentinels and impossible values and brought to one unit per item, part by part."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from core.events.import_report import UnitConflict
from core.events.mapping import SiteMapping
from core.events.spelling import size_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
NO_UNIT = ""


def known_units(mapping: SiteMapping, main_units: Mapping[str, str]) -> set[str]:
    """Return the units that cleaning may give to a value, beside those that the source has."""
    return {
        NO_UNIT,
        *(rule.to_unit for rule in mapping.unit_conversions),
        *mapping.units.values(),
        *main_units.values(),
    }


class ValueCleaner:
    """Cleans the numbers of a source in two rounds over its parts: `look` at all of them, then `settle` each.

    Where an item comes in several known units, the most frequent one, or that of `main_units`, is kept; numbers in
    another of the same size (`core.events.spelling.size_of`) stay as they are, other numbers are converted by the
    mapping or, when it knows no conversion, left without a value. Numbers without a unit are taken to be in the item's.
    `items` and `units` say what numbers stand for; `units` holds all of `known_units`.
    """

    def __init__(
        self,
        items: Sequence[str],
        units: Sequence[str],
        mapping: SiteMapping,
        main_units: Mapping[str, str] | None = None,
    ) -> None:
        self._items, self._units = list(items), list(units)
        self._mapping = mapping
        self._item = {item: i for i, item in enumerate(items)}
        self._unit = {unit: i for i, unit in enumerate(units)}
        sizes: dict[str, int] = {}
        self._size = np.array([sizes.setdefault(size_of(unit), i) for i, unit in enumerate(units)], dtype=np.int32)
        """Number of the first unit of the same size."""
        self._sentinels = np.array(mapping.sentinels, dtype=np.float64)
        self._wanted = {**(main_units or {}), **mapping.units}
        self._counts: dict[tuple[int, int], int] = {}
        self._implausible = [0] * len(mapping.plausible)
        self._main: IntArray | None = None
        self.n_sentinels = self.n_converted = self.n_without_number = 0

    def look(
        self, value: FloatArray, item: IntArray, unit: IntArray, is_value: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, IntArray]:
        """Return values and units without sentinels and with the mapping's conversions; count the units of the items.

        All have shape (n,). Rows that are no results or observations lose their number.
        """
        value = np.where(is_value, value, np.nan)
        sentinel = np.isin(value, self._sentinels)
        value[sentinel] = np.nan
        self.n_sentinels += int(sentinel.sum())
        unit = unit.copy()
        for rule in self._mapping.unit_conversions:
            rows = self._rows(item, rule.item, unit, rule.from_unit) & ~np.isnan(value)
            value[rows] = value[rows] * rule.factor + rule.offset
            unit[rows] = self._unit[rule.to_unit]
            self.n_converted += int(rows.sum())
        known = ~np.isnan(value) & (unit != self._unit[NO_UNIT])
        pairs, counts = np.unique(item[known].astype(np.int64) * len(self._units) + unit[known], return_counts=True)
        for pair, n in zip(pairs.tolist(), counts.tolist(), strict=True):
            key = divmod(pair, len(self._units))
            self._counts[key] = self._counts.get(key, 0) + n
        return value, unit

    def _rows(self, item: IntArray, wanted_item: str, unit: IntArray, wanted_unit: str) -> npt.NDArray[np.bool_]:
        i, u = self._item.get(wanted_item, -1), self._unit.get(wanted_unit, -1)
        if i < 0 or u < 0:
            return np.zeros(len(item), dtype=bool)
        return np.asarray((item == i) & (unit == u), dtype=bool)

    def main_units(self) -> IntArray:
        """Return the number of each item's unit, -1 where none is known; final once all parts were looked at."""
        if self._main is None:
            self._main = np.full(len(self._items), -1, dtype=np.int32)
            for (item, unit), _ in sorted(self._counts.items(), key=lambda each: (each[1], -each[0][1])):
                self._main[item] = unit
            for item_text, unit_text in self._wanted.items():
                if item_text in self._item:
                    self._main[self._item[item_text]] = self._unit[unit_text]
        return self._main

    def settle(
        self, value: FloatArray, item: IntArray, unit: IntArray, is_value: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, IntArray]:
        """Return values and units, as `look` returned them, without numbers in another unit and implausible ones."""
        main, none = self.main_units()[item], self._unit[NO_UNIT]
        has_number = ~np.isnan(value)
        known = has_number & (unit != none)
        same = self._size[unit] == self._size[main]
        value = np.where(known & ~same, np.nan, value)
        of_item = (~known | same) & (main >= 0) & has_number
        unit = np.where(of_item, main, unit).astype(np.int32)
        for i, rule in enumerate(self._mapping.plausible):
            if rule.item in self._item:
                rows = (item == self._item[rule.item]) & ((value < rule.low) | (value > rule.high))
                value[rows] = np.nan
                self._implausible[i] += int(rows.sum())
        self.n_without_number += int((is_value & np.isnan(value)).sum())
        return value, unit

    def implausible(self, names: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
        """Return the items by name, with how many of their values were not plausible; most first."""
        counts = [
            (names.get(rule.item, rule.item), n)
            for rule, n in zip(self._mapping.plausible, self._implausible, strict=True)
            if n
        ]
        return tuple(sorted(counts, key=lambda each: -each[1]))

    def unit_conflicts(self, names: Mapping[str, str]) -> tuple[UnitConflict, ...]:
        """Return the items with values in another known unit than the one kept, those with most of them first."""
        found: dict[int, dict[int, int]] = {}
        for (item, unit), n in sorted(self._counts.items()):
            found.setdefault(item, {})[unit] = n
        main = self.main_units()
        conflicts = (
            self._conflict(self._items[item], int(main[item]), units, names)
            for item, units in found.items()
            if {int(self._size[unit]) for unit in units} != {int(self._size[main[item]])}
        )
        return tuple(sorted(conflicts, key=lambda each: -_n_others(each.others)))

    def _conflict(self, item: str, main: int, units: Mapping[int, int], names: Mapping[str, str]) -> UnitConflict:
        return UnitConflict(
            item=item,
            name=names.get(item, item),
            main_unit=self._units[main],
            n_main=sum(n for unit, n in units.items() if self._size[unit] == self._size[main]),
            others=tuple((self._units[unit], n) for unit, n in units.items() if self._size[unit] != self._size[main]),
        )


def _n_others(others: Iterable[tuple[str, int]]) -> int:
    return sum(n for _, n in others)


def fill_from_texts(value: FloatArray, found: FloatArray, wanted: npt.NDArray[np.bool_]) -> tuple[FloatArray, int]:
    """Fill missing numbers that are wanted with those found in the texts beside them; return how many."""
    fill = wanted & np.isnan(value) & ~np.isnan(found)
    return np.where(fill, found, value), int(fill.sum())
