import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.values import clean_values, fill_from_texts, number_in_text
from tests.records import site


@pytest.mark.parametrize(
    ("text", "value"),
    [("4.1", 4.1), ("<0.01", 0.01), (">50", 50), (" >= 3 ", 3), ("-2e3", -2000), (".5", 0.5), ("+7.", 7)],
)
def test_numbers_and_bounds_are_read_from_text(text, value):
    assert number_in_text(text) == value


@pytest.mark.parametrize("text", ["HOLD", "1+", "", "nan", "inf", "1e999", "4,1", "1 2", "<", "0x10", "１２a"])
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
    text = pd.Series(["<5", "<5", "<5", "x"], dtype="category")
    value, n = fill_from_texts(np.array([np.nan, 1.0, np.nan, np.nan]), text, np.array([True, True, False, True]))
    assert n == 1
    np.testing.assert_array_equal(value, [5, 1, np.nan, np.nan])


def clean(rows, **changes):
    table = pd.DataFrame(rows, columns=["item", "unit", "value"])
    item, unit = table["item"].astype("category"), table["unit"].astype("category")
    value = table["value"].to_numpy(dtype=float)
    return clean_values(value, item, unit, np.ones(len(table), dtype=bool), {"G": "Glucose"}, site(**changes))


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
    assert out.unit.tolist() == ["degC"]


def test_numbers_without_a_unit_are_taken_to_be_in_the_item_s():
    out = clean([("G", "mg/dL", 90), ("G", "", 95)])
    assert out.unit.tolist() == ["mg/dL", "mg/dL"]
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
