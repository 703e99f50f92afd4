"""Dataclasses to plain values and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from core.errors import InvalidInputError
from core.studies.report import from_plain, to_plain
from core.vocabulary import CaseState


@dataclass(frozen=True)
class Inner:
    value: float | None
    state: CaseState = CaseState.OPEN


@dataclass(frozen=True)
class Outer:
    name: str
    count: int
    flag: bool
    parts: tuple[Inner, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)


WHOLE = Outer("a", 3, True, (Inner(0.5), Inner(None, CaseState.MAJORITY)), {"z": 1.0, "b": 2.0})


def test_the_way_there_and_back_changes_nothing():
    assert from_plain(Outer, to_plain(WHOLE)) == WHOLE


def test_keys_are_always_in_the_same_order():
    assert list(to_plain(WHOLE)["shares"]) == ["b", "z"]
    assert to_plain(WHOLE) == to_plain(Outer("a", 3, True, WHOLE.parts, {"b": 2.0, "z": 1.0}))


def test_a_whole_number_may_stand_for_a_float():
    assert from_plain(Inner, {"value": 1, "state": "open"}).value == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": "3"}, r"Outer\.count is a str; it must be a int"),
        ({"count": True}, r"Outer\.count is a bool"),
        ({"flag": 1}, r"Outer\.flag is a int"),
        ({"parts": [{"value": 0.5, "state": "lost"}]}, r"Outer\.parts\[0\]\.state is 'lost'"),
        ({"parts": {}}, r"Outer\.parts is a dict; it must be a list"),
        ({"extra": 1}, "unknown: extra"),
    ],
)
def test_a_wrong_field_is_named(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        from_plain(Outer, to_plain(WHOLE) | changes)


def test_a_missing_field_is_named():
    plain = to_plain(WHOLE)
    del plain["flag"]
    with pytest.raises(InvalidInputError, match="missing: flag"):
        from_plain(Outer, plain)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_report_cannot_hold_nan(number):
    with pytest.raises(InvalidInputError, match="cannot hold the number"):
        to_plain(Inner(number))


def test_arrays_have_no_plain_form():
    with pytest.raises(InvalidInputError, match="cannot hold a ndarray"):
        to_plain({"a": np.zeros(2)})
