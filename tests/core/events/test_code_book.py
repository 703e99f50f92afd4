"""Which rule of a mapping recognises a code, and what the item is called then."""

import numpy as np
import pytest

from core.errors import MappingError
from core.events.code_book import CodeBook, recognise
from core.kinds import EventKind
from tests.support.records import site

WORDS = {"counts": ["Given"], "does_not_count": ["Not Given"], "stops": ["Taken off"]}


@pytest.mark.parametrize(
    ("code", "kind", "item", "unit"),
    [
        ("LAB//K//mmol/L", EventKind.LAB_RESULT, "K", "mmol/L"),
        ("LAB//K", EventKind.LAB_RESULT, "K", ""),
        ("START//Heparin//", EventKind.MEDICATION_ORDER, "heparin", ""),
        ("START// Insulin  LISPRO ", EventKind.MEDICATION_ORDER, "insulin lispro", ""),
        ("SEX//female", EventKind.SEX, "F", ""),
        ("SEX//other", EventKind.SEX, "", ""),
        ("WARD//ICU  2", EventKind.UNIT, "ICU 2", ""),
    ],
)
def test_codes_are_recognised_with_item_and_unit(code, kind, item, unit):
    found = recognise(code, site())
    assert (found.kind, found.item, found.unit) == (kind, item, unit)


@pytest.mark.parametrize(
    ("word", "kind", "reason"),
    [
        ("given", EventKind.ADMINISTRATION, ""),
        ("Not  given", None, "does not count"),
        ("TAKEN OFF", EventKind.MEDICATION_STOP, ""),
        ("Dreamt of", None, "does not know"),
    ],
)
def test_event_words_decide_whether_a_drug_was_given(word, kind, reason):
    found = recognise(f"GIVE//Aspirin//{word}", site(event_words=WORDS))
    assert found.kind == kind
    assert reason in found.reason


def test_the_first_matching_rule_wins():
    rules = [
        {"code": "LAB//X.*", "kind": "IGNORE", "reason": "chart"},
        {"code": "LAB//(?P<item>.+)", "kind": "LAB_RESULT"},
    ]
    assert recognise("LAB//X1", site(rules=rules)).kind is None
    assert recognise("LAB//Y1", site(rules=rules)).kind is EventKind.LAB_RESULT


def test_a_pattern_must_match_the_whole_code():
    assert recognise("OUTSIDE", site()).kind is None


def book_of(codes: dict[str, int], descriptions: dict[str, str] | None = None, **changes) -> CodeBook:
    book = CodeBook(site(**changes), descriptions or {})
    book.count(np.repeat(book.ids_of(codes), list(codes.values())))
    return book


def test_ignored_items_are_counted_but_left_out():
    book = book_of({"START//UNK": 3, "START//Aspirin": 2, "IN": 1}, ignored_items=["unk"])
    orders = next(count for count in book.kind_counts() if count.kind == "MEDICATION_ORDER")
    assert (orders.n_rows, orders.n_items) == (5, 2)
    assert [(drop.reason, drop.n_rows, drop.examples) for drop in book.dropped()] == [
        ("item that the mapping ignores", 3, (("START//UNK", 3),))
    ]


def test_spellings_and_items_are_counted_apart():
    book = book_of({"START//Aspirin": 1, "START//ASPIRIN ": 4, "IN": 1})
    orders = next(count for count in book.kind_counts() if count.kind == "MEDICATION_ORDER")
    assert (orders.n_codes, orders.n_spellings, orders.n_items) == (2, 2, 1)


def test_names_come_from_mapping_then_description_then_the_commonest_spelling():
    codes = {"LAB//1": 2, "LAB//1//mg": 1, "LAB//2": 1, "START//Aspirin": 1, "START//ASPIRIN": 3}
    names = book_of(codes, {"LAB//1//mg": " Sodium  [Blood] ", "LAB//2": "Iron"}, names={"2": "Ferrum"}).names()
    assert names["1"] == "Sodium [Blood]"
    assert names["2"] == "Ferrum"
    assert names["aspirin"] == "ASPIRIN"


@pytest.mark.parametrize(
    ("described", "items"),
    [
        ({}, 1),
        ({"LAB//12": "Sodium"}, 1),
        ({"LAB//12": "Sodium", "LAB//0012": "SODIUM."}, 1),
        ({"LAB//12": "12", "LAB//0012": "0012"}, 1),
        ({"LAB//12": "Sodium", "LAB//0012": "Iron"}, 2),
    ],
)
def test_numbers_that_differ_by_zeros_are_one_item_unless_described_otherwise(described, items):
    book = book_of({"LAB//12": 2, "LAB//0012": 1, "LAB//13": 1}, described)
    book.join_twins()
    assert len({found.item for found in book.found}) == items + 1


@pytest.mark.parametrize(("names", "items"), [({"12": "Sodium"}, 1), ({"12": "Sodium", "0012": "Iron"}, 2)])
def test_numbers_that_the_mapping_names_apart_stay_apart(names, items):
    book = book_of({"LAB//12": 2, "LAB//0012": 1}, names=names)
    book.join_twins()
    assert len({found.item for found in book.found}) == items


def test_a_known_item_keeps_its_spelling():
    book = book_of({"LAB//12": 2, "LAB//0012": 1}, {"LAB//12": "Sodium"})
    book.join_twins(known=["0012"])
    assert {found.item for found in book.found} == {"0012"}


@pytest.mark.parametrize("code", ["LAB//2E86", "LAB//1E00", "LAB//250.00", "LAB//1.5E+04 IU", "LAB//A50,912"])
def test_what_only_looks_like_a_number_of_a_spreadsheet_stays(code):
    assert recognise(code, site()).spelling == code.partition("//")[2]
    assert not book_of({code: 1}).rounded()


@pytest.mark.parametrize(("codes", "what"), [({"LAB//K": 5}, "admission"), ({"IN": 5, "OUT": 5}, "lab or drug")])
def test_a_mapping_that_recognises_nothing_useful_is_refused(codes, what):
    with pytest.raises(MappingError) as caught:
        book_of({**codes, "HUH": 9}).refuse_useless()
    for part in ("'test'", what, "HUH", "data/README.md"):
        assert part in str(caught.value)
