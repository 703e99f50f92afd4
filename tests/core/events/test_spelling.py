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
    UNREAD,
    identifier,
    is_rounded,
    look_of,
    name_key,
    number_in_text,
    numbers_in_texts,
    shape_of,
    size_of,
    stands_for_nothing,
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
        ["mmol/L", "mmol/l", "MMOL/L", "mmol l-1", "mmol\u00b7L\u207b\u00b9", "mmol/L.", "(mmol/L)", "[mmol/l]"],
        ["mg/dL", "mg per dl", "mg/100 mL", "mg/100ml", "mg%"],
        [
            "10^3/uL",
            "10*3/uL",
            "10**3/ul",
            "10E3/\u00b5L",
            "x10\u00b3/uL",
            "\u00d7 10^3/uL",
            "10^3/mm3",
            "Tsd/\u00b5l",
            "thou/uL",
        ],
        ["mmHg", "mm[Hg]", "mm Hg"],
        ["IU/L", "[iU]/L", "iu/l"],
        ["%", "percent", "\uff05"],
        ["sec", "s", "seconds", "Sek"],
        ["g/dL", "gm/dL", "g%"],
        ["mL/min/1.73m2", "mL/min/{1.73_m2}", "mL/min/1.73 m\u00b2"],
        ["mEq/L", "meq/l", "mval/L"],
        ["INR", "{INR}"],
        ["°C", "Cel", "° C"],
        ["G/L", "G/l", "G/\uff4c"],
        ["g/dL", "G/DL"],
    ],
)
def test_spellings_of_one_unit_are_one(spellings):
    assert {unit_spelling(each) for each in spellings} == {unit_spelling(spellings[0])}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("mg", "Mg"),
            ("mmol/L", "umol/L"),
            ("pg", "Pg"),
            ("m/uL", "M/uL"),
            ("l", "I"),
            ("s", "S"),
            ("vol%", "vol/dL"),
        ),
        *(("G/L", "g/L"), ("G/l", "g/l"), ("T/l", "t/L")),
    ],
)
def test_units_that_differ_stay_apart(one, other):
    assert unit_spelling(one) != unit_spelling(other)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("≤5", 5), ("<= 5", 5), ("=<5", 5), ("≥ 0,5", 0.5), ("> 100", 100), ("&lt;5", 5), ("~5", 5), ("ca. 5", 5)],
        *[
            ("−3", -3),
            ("–3", -3),
            ("+3", 3),
            ("４.２", 4.2),
            ("٤٫٢", 4.2),
            ("4·2", 4.2),
            ("'4.2", 4.2),
            ('="4.2"', 4.2),
        ],
        *[("1.234,5", 1234.5), ("1,234.5", 1234.5), ("1.234.567", 1234567), ("1'234.5", 1234.5), ("1’234", 1234)],
        *[(f"1{blank}234,5", 1234.5) for blank in " \u00a0\u202f\u2009"],
        *[("1e3", 1000), ("1,5E+03", 1500), ("4.2x10^3", 4200), ("4.2×10³", 4200), ("4,2 · 10³", 4200)],
        *[("4.2 H", 4.2), ("4.2 (L)", 4.2), ("4.2*", 4.2), ("4.2 ↑", 4.2), ("4.2 mmol/L", 4.2), ("4,2 %", 4.2)],
    ],
)
def test_numbers_are_read_in_every_spelling(text, value):
    assert number_in_text(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("1+", "1:40", "0-2", "10^5", "1.2.3", "120/80", "5 inch", "4.2-", "(4.2)", "12 34", "1 2345", "1_000", "$5"),
        *("########", " #VALUE!", "#DIV/0!"),
    ],
)
def test_what_begins_like_a_number_and_is_none_is_counted(text):
    values, written, *_ = numbers_in_texts([text])
    assert np.isnan(values[0])
    assert written[0] == UNREAD


@pytest.mark.parametrize(
    ("text", "unit"),
    [("4.2 mmol/l", "mmol/L"), ("73 µmol/L", "umol/L"), ("4,2%", "%"), ("4.2 H", ""), ("4.2", ""), ("7 G/l", "G/L")],
)
def test_a_unit_after_a_number_is_known(text, unit):
    assert numbers_in_texts([text]).units == [unit]


def test_a_point_is_a_thousand_among_decimal_commas_alone():
    assert numbers_in_texts(["4,8", "1.234"]).values.tolist() == [4.8, 1234]
    assert numbers_in_texts(["4,8", "0.123", "1.234"]).values.tolist() == [4.8, 0.123, 1.234]
    assert numbers_in_texts(["7.412"]).values.tolist() == [7.412]


@pytest.mark.parametrize("text", ["NULL", "null", "n/a", "N/A", "-", "\\N", "#N/A", "None", "NaN", "<NA>", ""])
def test_words_for_nothing_are_known(text):
    assert stands_for_nothing(text)


@pytest.mark.parametrize("text", ["00000000", "0", "12", "P1", "Na+", "2026-01-01", "nine"])
def test_other_words_are_something(text):
    assert not stands_for_nothing(text)


@pytest.mark.parametrize("text", ["P7", " P7", "'P7", "\ufeffP7", "Ｐ7"])
def test_an_identifier_has_one_spelling(text):
    assert identifier(text) == "P7"


def test_a_whole_number_that_went_through_a_float_is_whole_again():
    assert identifier("123.0") == identifier("123.00") == "123"
    assert identifier("123.5") == "123.5"
    assert identifier("12345678901234567.0") == "12345678901234567.0"


@pytest.mark.parametrize("text", ["1.23E+11", "1,23E+11", "1e11"])
def test_an_identifier_that_a_spreadsheet_rounded_is_known(text):
    assert is_rounded(text)
    assert not is_rounded("E11")
    assert not is_rounded("1.23")


@pytest.mark.parametrize("twin", ["p007", "P7", "P-7", "\u04207", "P_007", "P 7"])
def test_identifiers_that_people_take_for_one_look_alike(twin):
    assert look_of(twin) == look_of("P007")
    assert look_of(twin) != look_of("P070")


def test_units_of_one_size_are_known():
    assert size_of("K/uL") == size_of("10^9/L") != size_of("10^6/uL")
    assert size_of("mg/dL") == "mg/dL"


def test_a_thousand_or_a_decimal_is_settled_by_its_neighbours_or_not_at_all():
    values, written, *_ = numbers_in_texts(["4,8", "1,234"])
    assert values.tolist() == [4.8, 1.234]
    assert written.tolist() == [COMMA, COMMA]
    for neighbours in (["4.8"], ["4,8", "4.8"], []):
        values, written, *_ = numbers_in_texts([*neighbours, "1,234"])
        assert np.isnan(values[-1])
        assert written[-1] == DOUBTFUL
    assert numbers_in_texts(["1,234,567"]).values.tolist() == [1234567]
    assert numbers_in_texts(["12"]).written.tolist() == [PLAIN]


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
        ("2026-02-28 24:00", "2026-03-01T00:00:00.000000", None),
        ("2026-12-31T24:00:00.0Z", "2027-01-01T00:00:00.000000", 0),
        ("2026.01.01 9:05", "2026-01-01T09:05:00.000000", None),
        ("2026-01-01 12:30:00 AM", "2026-01-01T00:30:00.000000", None),
        ("2026-01-01 12:30 p.m.", "2026-01-01T12:30:00.000000", None),
        ("2026-01-01T10:00:00+01:00[Europe/Berlin]", "2026-01-01T10:00:00.000000", 3600),
        ("'2026-01-01 10:00:00'", "2026-01-01T10:00:00.000000", None),
        ("9999-12-31 24:00", "9999-12-31T00:00:00.000000", None),
        ("infinity", "9999-12-31T00:00:00.000000", None),
        ("-Infinity", "0001-01-01T00:00:00.000000", None),
    ],
)
def test_times_are_read_in_the_spellings_of_the_list(text, iso, offset):
    assert time_in_text(text) == (iso, offset)


@pytest.mark.parametrize(
    "text",
    [
        "now",
        "today",
        "1.2.2026",
        "01/02/2026",
        "2026-1-1",
        "2026",
        "Jan 1 2026",
        "10:00",
        "1767225600",
        "2026-01-01 13:00 PM",
        "2026-01-01 0:30 AM",
        "46023.4",
        "2026-01-01 10:00+25:00",
        "2026-01-01 10:00-05:99",
        "20260101T1000+1700",
    ],
)
def test_a_time_that_leaves_doubt_is_none(text):
    assert time_in_text(text) is None


def test_an_error_shows_the_shape_of_a_value_and_nothing_of_a_patient():
    assert shape_of("28.2.1950 06:15") == "99.9.9999 99:99"
    assert len(shape_of("x" * 500)) < 50


@pytest.mark.parametrize(
    ("text", "number"),
    [("4.8H", 4.8), ("4.8 x10E3", 4800), ("- 4.8", -4.8), ("less than 4.8", 4.8), ("Greater than 4.8", 4.8)]
    + [(f"{flag}4.8", 4.8) for flag in ("H ", "LL ", "(L) ", "*", "** ", "\u2193 ")]
    + [("L <4.8", 4.8), ("H1", np.nan), ("L4", np.nan)],
)
def test_a_flag_a_power_and_a_comparison_leave_the_number(text, number):
    np.testing.assert_equal(numbers_in_texts([text]).values, [number])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Creatinine", "CREATININE", True),
        ("HbA1c", "HBA1C", False),
        ("Creatinine", "\u201ccreatinine\u201d", True),
        ("Creatinine", "Creatinine.", True),
        ("Anti-E", "Anti-e", False),
        ("pH", "PH", False),
        ("Glucose [Blood]", "Glucose [Urine]", False),
        (".", ";", False),
    ],
)
def test_names_are_one_whatever_their_case_quotes_and_points(one, other, same):
    assert (name_key(one) == name_key(other)) is same


@pytest.mark.parametrize("spelled", ["{0F8FAD5B-D9CB-469F-A165-70867728950E}", "0f8fad5b-d9cb-469f-a165-70867728950e"])
def test_a_uuid_is_one_identifier_whatever_its_case(spelled):
    assert identifier(spelled) == "0f8fad5b-d9cb-469f-a165-70867728950e"


def test_an_identifier_with_more_digits_than_a_float_holds_was_rounded():
    assert is_rounded("12345678901234567.0")
    assert not is_rounded("123456789012345.0")
