"""Cells as identifiers, times and numbers, or a refusal that names the row."""

import numpy as np
import pyarrow as pa
import pytest

from alertreview.records.sources import cells
from core.errors import SourceError
from tests.support.records import site


@pytest.mark.parametrize("nothing", ["NULL", "n/a", "-", " ", "\\N", "nan"])
def test_words_for_nothing_are_no_time_and_no_number(nothing):
    column = pa.array([nothing, None, "2026-01-02"])
    assert cells.times(column, site(), "a.csv", "time", 2).isna().tolist() == [True, True, False]
    assert cells.whole_numbers(pa.array([nothing, None, "7"]), "a.csv", "id", 2).tolist() == [cells.NO_ID] * 2 + [7]


@pytest.mark.parametrize("nobody", ["NULL", "n/a", "-", "", None])
def test_an_event_of_nobody_is_refused(nobody):
    with pytest.raises(SourceError, match=r"a\.csv: row 4 has no patient"):
        cells.patients(pa.array(["P1", "P2", nobody], pa.string()), "a.csv", 2)


def test_whole_numbers_survive_a_float_column_but_no_rounding():
    assert cells.whole_numbers(pa.array(["7.0", "8"]), "a.csv", "id", 2).tolist() == [7, 8]
    for text in ("7.5", "1.0e18", "12345678901234567.0"):
        with pytest.raises(SourceError, match=r"row 3, column 'id'"):
            cells.whole_numbers(pa.array(["8", text]), "a.csv", "id", 2)
    with pytest.raises(SourceError, match=r"row 3: the patient '9\.99E\+99'.* rounded by a spreadsheet"):
        cells.patients(pa.array(["8", "1.23E+11"]), "a.csv", 2)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_floats_are_identifiers_as_long_as_they_are_exact(kind):
    assert cells.whole_numbers(pa.array([7.0, None], kind), "a", "id", 2).tolist() == [7, cells.NO_ID]
    for number in (2.0**53, -(2.0**60)):
        with pytest.raises(SourceError, match=r"a: row 3, column 'id': holds floating-point numbers"):
            cells.whole_numbers(pa.array([8.0, number], kind), "a", "id", 2)


@pytest.mark.parametrize(
    ("cell", "neighbours", "value"),
    [("1.234", ["4,8"], np.nan), ("1.234", ["4,8", "4.8"], 1.234), ("1.234", ["7"], 1.234), ("0.123", ["4,8"], 0.123)],
)
def test_a_point_among_decimal_commas_is_left_to_the_whole_source(cell, neighbours, value):
    values, texts = cells.numbers(pa.array([cell, *neighbours]))
    np.testing.assert_equal(values[0], value)
    assert texts[0].as_py() == (cell if np.isnan(value) else None)
