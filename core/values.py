"""Numbers of results: read from texts, freed of sentinels and impossible values, brought to one unit per item."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.import_report import UnitConflict
from core.mapping import SiteMapping

FloatArray = npt.NDArray[np.float64]

_NUMBER = re.compile(r"\s*[<>]?=?\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*")


def number_in_text(text: str) -> float:
    """Read a number, also a censored one: the bound stands for the value.

    Parameters
    ----------
    text : str
        ``"4.1"``, ``"<0.01"``, ``">50"``; anything else ("HOLD", "1+") has no number.

    Returns
    -------
    float
        NaN when there is no number.

    Examples
    --------
    >>> number_in_text("<0.01")
    0.01
    >>> number_in_text("1+")
    nan
    """
    match = _NUMBER.fullmatch(text)
    value = float(match.group(1)) if match else float("nan")
    return value if np.isfinite(value) else float("nan")


def fill_from_texts(value: FloatArray, text: pd.Series, wanted: npt.NDArray[np.bool_]) -> tuple[FloatArray, int]:
    """Fill missing numbers from the texts beside them.

    Parameters
    ----------
    value : array of shape (n,)
    text : Series of category, shape (n,)
    wanted : array of bool, shape (n,)
        Rows whose numbers matter.

    Returns
    -------
    value : array of shape (n,)
    n_filled : int
    """
    numbers = np.array([number_in_text(str(each)) for each in text.cat.categories] + [np.nan])
    found = numbers[text.cat.codes.to_numpy()]
    fill = wanted & np.isnan(value) & ~np.isnan(found)
    return np.where(fill, found, value), int(fill.sum())


@dataclass(frozen=True)
class CleanValues:
    """Cleaned numbers with their units, and what was done."""

    value: FloatArray
    unit: pd.Series
    unit_conflicts: tuple[UnitConflict, ...]
    n_converted: int
    n_sentinels: int
    implausible: tuple[tuple[str, int], ...]
    n_without_number: int


def clean_values(
    value: FloatArray,
    item: pd.Series,
    unit: pd.Series,
    is_value: npt.NDArray[np.bool_],
    names: dict[str, str],
    mapping: SiteMapping,
    main_units: Mapping[str, str] | None = None,
) -> CleanValues:
    """Take out numbers that mean nothing and bring each item's to one unit.

    Where an item comes in several known units, the most frequent one is kept; numbers in another are converted by the
    mapping or, when it knows no conversion, left without a value. Numbers without a unit are taken to be in the item's.

    Parameters
    ----------
    value : array of shape (n,)
        NaN where there is no number.
    item, unit : Series of category, shape (n,)
        An empty text is an unknown unit.
    is_value : array of bool, shape (n,)
        Rows that are results or observations.
    names : dict
        Item to name, for the report.
    mapping : SiteMapping
    main_units : mapping, optional
        Units that items are known to have, whatever is most frequent here.

    Returns
    -------
    CleanValues
    """
    frame = pd.DataFrame({"item": item, "unit": unit})
    frame["value"] = np.where(is_value, value, np.nan)
    sentinel = np.isin(frame["value"].to_numpy(), np.array(mapping.sentinels, dtype=np.float64))
    frame.loc[sentinel, "value"] = np.nan
    n_converted = _convert(frame, mapping)
    conflicts = _settle_units(frame, names, {**(main_units or {}), **mapping.units})
    implausible = _drop_implausible(frame, names, mapping)
    return CleanValues(
        value=frame["value"].to_numpy(),
        unit=frame["unit"],
        unit_conflicts=conflicts,
        n_converted=n_converted,
        n_sentinels=int(sentinel.sum()),
        implausible=implausible,
        n_without_number=int((is_value & frame["value"].isna().to_numpy()).sum()),
    )


def _rows(column: pd.Series, text: str) -> npt.NDArray[np.bool_]:
    categories = list(column.cat.categories)
    if text not in categories:
        return np.zeros(len(column), dtype=bool)
    return np.asarray(column.cat.codes.to_numpy() == categories.index(text), dtype=bool)


def _convert(frame: pd.DataFrame, mapping: SiteMapping) -> int:
    n_converted = 0
    for rule in mapping.unit_conversions:
        rows = (
            _rows(frame["item"], rule.item) & _rows(frame["unit"], rule.from_unit) & frame["value"].notna().to_numpy()
        )
        if rows.any():
            if rule.to_unit not in frame["unit"].cat.categories:
                frame["unit"] = frame["unit"].cat.add_categories([rule.to_unit])
            frame.loc[rows, "value"] = frame.loc[rows, "value"] * rule.factor + rule.offset
            frame.loc[rows, "unit"] = rule.to_unit
            n_converted += int(rows.sum())
    return n_converted


def _settle_units(frame: pd.DataFrame, names: dict[str, str], wanted: dict[str, str]) -> tuple[UnitConflict, ...]:
    items = list(frame["item"].cat.categories)
    missing = sorted({wanted[item] for item in items if item in wanted} - set(frame["unit"].cat.categories))
    frame["unit"] = frame["unit"].cat.add_categories(missing)
    units = list(frame["unit"].cat.categories)
    known = frame["value"].notna().to_numpy() & ~_rows(frame["unit"], "")
    table = np.zeros((len(items), len(units)), dtype=np.int64)
    item_ids, unit_ids = frame["item"].cat.codes.to_numpy(), frame["unit"].cat.codes.to_numpy()
    np.add.at(table, (item_ids[known], unit_ids[known]), 1)
    main = table.argmax(axis=1) if units else np.zeros(len(items), dtype=np.int64)
    has_unit = table.sum(axis=1) > 0
    for i, item in enumerate(items):
        if item in wanted:
            main[i], has_unit[i] = units.index(wanted[item]), True
    other = known & (unit_ids != main[item_ids])
    frame.loc[other, "value"] = np.nan
    blank = ~known & has_unit[item_ids] & frame["value"].notna().to_numpy()
    frame["unit"] = pd.Categorical.from_codes(np.where(blank, main[item_ids], unit_ids), categories=units)
    return tuple(
        UnitConflict(
            item=items[i],
            name=names.get(items[i], items[i]),
            main_unit=units[main[i]],
            n_main=int(table[i, main[i]]),
            others=tuple((units[j], int(table[i, j])) for j in np.flatnonzero(table[i]) if j != main[i]),
        )
        for i in np.argsort(
            -(table.sum(axis=1) - table[np.arange(len(items)), main] if units else table.sum(axis=1)), kind="stable"
        )
        if (table[i] > 0).sum() > 1
    )


def _drop_implausible(frame: pd.DataFrame, names: dict[str, str], mapping: SiteMapping) -> tuple[tuple[str, int], ...]:
    counts = []
    for rule in mapping.plausible:
        value = frame["value"].to_numpy()
        rows = _rows(frame["item"], rule.item) & ((value < rule.low) | (value > rule.high))
        if rows.any():
            frame.loc[rows, "value"] = np.nan
            counts.append((names.get(rule.item, rule.item), int(rows.sum())))
    return tuple(sorted(counts, key=lambda each: -each[1]))
