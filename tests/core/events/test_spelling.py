"""What people read as the same is the same: text, units, numbers and times; everything else is refused, not guessed."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events.spelling import (
    COMMA,
    DOUBTFUL,
    PLAIN,
    number_in_text,
    numbers_in_texts,
    shape_of,
    tidy,
    time_in_text,
    unit_spelling,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Créatinine", unicodedata.normalize("NFD", "Créatinine")),
        ("P001", " P001\u00a0 "),
        ("P001", "\ufeffP001"),
        ("P001", "Ｐ００１"),
        ("P001", "P0\u200b01"),
        ("Na-K", "Na\u2011K"),
        ("Ringer's", "Ringer\u2019s"),
        ("5 K", "5\u2002\u212a"),
        ("10^9/L", "10⁹/L"),
        ("a b", "a\t b\n"),
    ],
)
def test_twins_are_one_text(one, other):
    assert tidy(one) == tidy(other) == one


@given(st.text())
def test_tidy_text_stays_as_it_is(text):
    assert tidy(tidy(text)) == tidy(text)
    assert tidy(f" {text}\u00a0") == tidy(text)


@given(st.text())
def test_composed_and_decomposed_texts_are_one(text):
    assert tidy(unicodedata.normalize("NFD", text)) == tidy(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    "spellings",
    [
        ["µmol/L", "μmol/L", "umol/L", "umol/l", "UMOL/L"],
        ["mg/dL", "mg/dl", "MG/DL", " mg / dL"],
        ["10^9/L", "10⁹/L", "10^9/l"],
        ["ug/mL", "mcg/mL", "µg/ml"],
        ["mmol/L", "mmol/l", "MMOL/L"],
    ],
)
def test_spellings_of_one_unit_are_one(spellings):
    assert {unit_spelling(each) for each in spellings} == {unit_spelling(spellings[0])}


@pytest.mark.parametrize(
    ("one", "other"), [("mg", "Mg"), ("mmol/L", "umol/L"), ("pg", "Pg"), ("m/uL", "M/uL"), ("l", "I")]
)
def test_units_that_differ_stay_apart(one, other):
    assert unit_spelling(one) != unit_spelling(other)


@pytest.mark.parametrize(
    ("text", "value"),
    [("≤5", 5), ("<= 5", 5), ("≥ 0,5", 0.5), ("−3", -3), ("４.２", 4.2), ("1.234,5", 1234.5), ("1,234.5", 1234.5)],
)
def test_numbers_are_read_in_every_spelling(text, value):
    assert number_in_text(text) == value


def test_a_thousand_or_a_decimal_is_settled_by_its_neighbours_or_not_at_all():
    values, written = numbers_in_texts(["4,8", "1,234"])
    assert values.tolist() == [4.8, 1.234]
    assert written.tolist() == [COMMA, COMMA]
    for neighbours in (["4.8"], ["4,8", "4.8"], []):
        values, written = numbers_in_texts([*neighbours, "1,234"])
        assert np.isnan(values[-1])
        assert written[-1] == DOUBTFUL
    assert numbers_in_texts(["1,234,567"])[0].tolist() == [1234567]
    assert numbers_in_texts(["12"])[1].tolist() == [PLAIN]


@pytest.mark.parametrize(
    ("text", "iso", "offset"),
    [
        ("2026-01-01 10:00:00-05", "2026-01-01T10:00:00.000000", -18000),
        ("2026-01-01 10:00:00+0000", "2026-01-01T10:00:00.000000", 0),
        ("2026-01-01T10:00Z", "2026-01-01T10:00:00.000000", 0),
        ("2026-01-01 10:00:00.25 +05:30", "2026-01-01T10:00:00.250000", 19800),
        ("2026-01-01 10:00 UTC", "2026-01-01T10:00:00.000000", 0),
        ("2026/01/01 10:00", "2026-01-01T10:00:00.000000", None),
        ("20260101", "2026-01-01T00:00:00.000000", None),
        ("20260101100000-0500", "2026-01-01T10:00:00.000000", -18000),
        ("2026-01-01", "2026-01-01T00:00:00.000000", None),
    ],
)
def test_times_are_read_in_the_spellings_of_the_list(text, iso, offset):
    assert time_in_text(text) == (iso, offset)


@pytest.mark.parametrize(
    "text", ["now", "today", "1.2.2026", "01/02/2026", "2026-1-1", "2026", "Jan 1 2026", "10:00", "1767225600"]
)
def test_a_time_that_leaves_doubt_is_none(text):
    assert time_in_text(text) is None


def test_an_error_shows_the_shape_of_a_value_and_nothing_of_a_patient():
    assert shape_of("28.2.1950 06:15") == "99.9.9999 99:99"
    assert len(shape_of("x" * 500)) < 50
