"""Numbers, units and implausible values as records hold them."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events.spelling import number_in_text, numbers_in_texts, unit_spelling
from core.events.value_cleaner import ValueCleaner, fill_from_texts, known_units
from tests.support.records import site


@pytest.mark.parametrize(
    ("text", "value"),
    [("4.1", 4.1), ("<0.01", 0.01), (">50", 50), (" >= 3 ", 3), ("-2e3", -2000), (".5", 0.5), ("+7.", 7)],
)
def test_numbers_and_bounds_are_read_from_text(text, value):
    assert number_in_text(text) == value


@pytest.mark.parametrize("text", ["HOLD", "1+", "", "nan", "inf", "1e999", "4,100", "1 2", "<", "0x10", "１２a"])
def test_what_is_no_number_stays_without_one(text):
    assert math.isnan(number_in_text(text))


@given(st.text())
def test_any_text_gives_a_finite_number_or_none(text):
    value = number_in_text(text)
    assert math.isnan(value) or math.isfinite(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_is_read_back(value):
    assert number_in_text(repr(value)) == value


def test_only_missing_numbers_of_wanted_rows_are_filled():
    found = numbers_in_texts(["<5", "<5", "<5", "x"]).values
    value, n = fill_from_texts(np.array([np.nan, 1.0, np.nan, np.nan]), found, np.array([True, True, False, True]))
    assert n == 1
    np.testing.assert_array_equal(value, [5, 1, np.nan, np.nan])


@dataclass(frozen=True)
class Cleaned:
    value: np.ndarray
    unit: list[str]
    unit_conflicts: tuple
    n_converted: int
    n_sentinels: int
    implausible: tuple
    n_without_number: int


def clean(rows, n_parts=1, **changes):
    """Clean (item, unit, value) rows, cut into parts."""
    mapping = site(**changes)
    items = sorted({item for item, _, _ in rows})
    units = sorted({unit for _, unit, _ in rows} | known_units(mapping, {}))
    item = np.array([items.index(each) for each, _, _ in rows], dtype=np.int32)
    unit = np.array([units.index(each) for _, each, _ in rows], dtype=np.int32)
    value = np.array([each for _, _, each in rows], dtype=float)
    cleaner = ValueCleaner(items, units, mapping)
    parts = np.array_split(np.arange(len(rows)), n_parts)
    always = np.ones(len(rows), dtype=bool)
    looked = [cleaner.look(value[part], item[part], unit[part], always[part]) for part in parts]
    settled = [
        cleaner.settle(number, item[part], its_unit, always[part])
        for part, (number, its_unit) in zip(parts, looked, strict=True)
    ]
    names = {"G": "Glucose"}
    return Cleaned(
        np.concatenate([each for each, _ in settled]),
        [units[i] for _, each in settled for i in each],
        cleaner.unit_conflicts(names),
        cleaner.n_converted,
        cleaner.n_sentinels,
        cleaner.implausible(names),
        cleaner.n_without_number,
    )


def test_numbers_in_a_rarer_unit_without_conversion_are_left_out_and_named():
    out = clean([("G", "mg/dL", 90), ("G", "mg/dL", 95), ("G", "mmol/L", 5.1), ("K", "mmol/L", 4)])
    np.testing.assert_array_equal(out.value, [90, 95, np.nan, 4])
    (conflict,) = out.unit_conflicts
    assert (conflict.name, conflict.main_unit, conflict.others) == ("Glucose", "mg/dL", (("mmol/L", 1),))


def test_a_conversion_settles_the_conflict():
    rule = {"item": "G", "from_unit": "mmol/L", "to_unit": "mg/dL", "factor": 18.0}
    out = clean([("G", "mg/dL", 90), ("G", "mmol/L", 5)], unit_conversions=[rule])
    np.testing.assert_array_equal(out.value, [90, 90])
    assert (out.n_converted, out.unit_conflicts) == (1, ())


def test_a_conversion_may_bring_in_a_unit_that_no_row_had():
    rule = {"item": "T", "from_unit": "degF", "to_unit": "degC", "factor": 5 / 9, "offset": -160 / 9}
    out = clean([("T", "degF", 212.0)], unit_conversions=[rule])
    assert out.value[0] == pytest.approx(100)
    assert out.unit == ["degC"]


def test_numbers_without_a_unit_are_taken_to_be_in_the_item_s():
    out = clean([("G", "mg/dL", 90), ("G", "", 95)])
    assert out.unit == ["mg/dL", "mg/dL"]
    np.testing.assert_array_equal(out.value, [90, 95])


def test_sentinels_and_implausible_values_lose_their_number_and_are_counted():
    out = clean(
        [("K", "", 999999), ("K", "", 70), ("K", "", 4)],
        sentinels=[999999],
        plausible=[{"item": "K", "low": 1, "high": 12}],
    )
    np.testing.assert_array_equal(out.value, [np.nan, np.nan, 4])
    assert (out.n_sentinels, out.implausible, out.n_without_number) == (1, (("K", 1),), 2)


def test_a_column_without_any_number_passes():
    assert np.isnan(clean([("K", "", np.nan)]).value).all()


@pytest.mark.parametrize(
    ("main", "twin"),
    [("K/uL", "10*9/L"), ("10^3/uL", "Tsd/\u00b5l"), ("ng/mL", "ug/L"), ("U/L", "[iU]/L"), ("fL", "\u00b5m\u00b3")],
)
def test_units_of_one_size_lose_no_value(main, twin):
    rows = [("A", main, 4.0), ("A", main, 5.0), ("A", unit_spelling(twin), 6.0), ("A", "mg/dL", 7.0)]
    cleaned = clean(rows)
    np.testing.assert_array_equal(cleaned.value, [4, 5, 6, np.nan])
    assert cleaned.unit[:3] == [cleaned.unit[0]] * 3
    (conflict,) = cleaned.unit_conflicts
    assert (conflict.n_main, conflict.others) == (3, (("mg/dL", 1),))
    assert not clean(rows[:3]).unit_conflicts


def test_two_sizes_stay_apart():
    cleaned = clean([("A", "mg/L", 4.0), ("A", "mg/L", 5.0), ("A", "mg/dL", 6.0)])
    np.testing.assert_array_equal(cleaned.value, [4, 5, np.nan])
