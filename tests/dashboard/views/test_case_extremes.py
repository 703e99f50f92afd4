"""Cases as no hospital should have them: the page still tells what is known, and nothing else."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from streamlit.runtime.context import ContextProxy

from alertreview.alerts.models import CaseView, Comparison, LastValue, TimelineDrug, TimelineLab
from core.vocabulary import Decision
from dashboard import texts
from dashboard.components.case_view import bands_in_words
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.records import SNAPSHOT, case_view

LONG = "Coagulation factor " * 27
VALUES = {"Tiny": (0.0001, "0.0001"), "Huge": (1e6, "1,000,000"), "Negative": (-5.25, "−5.25"), "Zero": (0.0, "0")}
USUAL = case_view("Troponin I", Decision.OMISSION, 1, hostile=False)


def lab(name: str, value: float, low: float | None = None, high: float | None = None) -> TimelineLab:
    return TimelineLab(name, "10^9/L", (SNAPSHOT - timedelta(hours=2),), (value,), low, high)


def case_of(*labs: TimelineLab, more: tuple[LastValue, ...] = (), drugs: tuple[TimelineDrug, ...] = ()) -> CaseView:
    shown = replace(USUAL.timeline, labs=labs, drugs=drugs, admitted_at=SNAPSHOT - timedelta(days=400))
    values = tuple(
        LastValue(
            one.name, value, one.unit, one.flag(value), 2.0, low=one.low, high=one.high, trend=one.values
        )
        for one in labs
        for value in one.values
    )  # fmt: skip
    return CaseView(shown, (*values, *more))


GIVEN = replace(USUAL.timeline.drugs[-1], name="Heparin")
CASES = {
    "nothing at all": case_of(),
    "without labs": case_of(drugs=(GIVEN,)),
    "without drugs": case_of(lab("Potassium", 3.1, 3.5, 5.1)),
    "with 400 labs": case_of(*(lab(f"Lab {i}", float(i)) for i in range(400))),
    "a name of 500 characters": case_of(lab(LONG, 1.0), drugs=(replace(GIVEN, name=LONG),)),
    "values from 0.0001 to 10^6, negative ones, no reference range": case_of(
        *(lab(name, value) for name, (value, _) in VALUES.items())
    ),
    "text results": case_of(
        lab("Potassium", 3.1, 3.5, 5.1),
        more=(LastValue("Blood Culture", None, "", "", 30.0, text="no growth"), LastValue("CRP", None, "", "", None)),
    ),
    "a stay of 400 days": case_of(
        TimelineLab("Potassium", "mmol/L", tuple(SNAPSHOT - timedelta(days=i) for i in (400, 200, 1)), (3, 4, 5), 3, 5)
    ),
    "one measurement only": case_of(lab("Potassium", 4.0, 3.5, 5.1)),
    "conflicting units": case_of(
        more=(LastValue("Glucose", None, "", "", 2.0, text="no value", low=70.0, high=180.0, trend=(95.0, 120.0)),)
    ),
}
"""By the entry of the list of bad input."""


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_any_shape_is_drawn(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    case, double = CASES[name], FakeApplication()
    detail = replace(double.worklist.alert(1000), patient=case)
    monkeypatch.setattr(type(double.worklist), "alert", lambda *_: detail)
    page = open_page("alert", double, alert="1000")
    assert nothing_failed(page)
    tables = [one.value for one in page.dataframe if "Value" in one.value.columns]
    assert sum(map(len, tables)) == len(case.last_values), "every value is in the table, also without a lane"
    assert ("Nothing was measured before the snapshot." in words(page)) == (not case.last_values)
    assert ("No drug order runs at the snapshot." in words(page)) == (not case.drugs_now)
    drawn = json.loads(page.get("plotly_chart")[0].proto.spec)["layout"]
    hidden = len(case.timeline.labs) - 4
    assert any(f"+ {hidden} labs" in one["text"] for one in drawn["annotations"]) == (hidden > 0)
    assert all(len(one["text"]) < 200 for one in drawn["annotations"])
    for table in tables:
        shown = dict(zip(table["Lab"], table["Value"], strict=True))
        for each in case.last_values:
            said = shown[next(lab for lab in shown if each.name.startswith(lab.rstrip("…")))]
            if each.name in VALUES:
                assert said == f"{VALUES[each.name][1]} 10⁹/L", "without a range there is no flag"
        if name == "text results":
            assert shown == {"Potassium": "3.1 10⁹/L ↓ low", "Blood Culture": "no growth", "CRP": "not in this stay"}
        if name == "conflicting units":
            assert shown == {"Glucose": "no value"}, "no number without its unit, and no flag"
            assert list(table["Earlier"]) == ["95 → 120"]


@pytest.mark.parametrize("page_name", ["alert", "review"])
def test_a_phone_shows_dose_route_and_start_of_every_drug(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, page_name: str
) -> None:
    monkeypatch.setattr(ContextProxy, "headers", {"User-Agent": "Mobile"})
    page = open_page(page_name, FakeApplication(), **({"alert": "1000"} if page_name == "alert" else {}))
    assert nothing_failed(page)
    (drugs,) = [one.value for one in page.table if "Drug" in one.value]
    drugs = drugs.map(lambda cell: cell.replace(texts.NO_BREAK, " "))
    running = USUAL.drugs_now
    assert list(drugs["Drug"]) == [texts.plain(one.name) for one in running]
    assert dict(zip(drugs["Dose"], drugs["Route"], strict=True))["40 mg daily"] == "PO"
    assert all(drugs["Since"].str.len() > 0)


def test_a_card_with_nothing_to_say_is_not_drawn(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    double = FakeApplication()
    detail = double.worklist.alert(1000)
    for after in (detail.record_after, ()):
        shown = replace(detail, record_after=after)
        monkeypatch.setattr(type(double.worklist), "alert", lambda *_, shown=shown: shown)
        page = words(open_page("alert", double, alert="1000"))
        assert ("What the record shows afterwards" in page) is bool(after)


def test_what_similar_patients_got_is_never_cut(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    double, many = FakeApplication(), 1_234_567
    detail = replace(double.worklist.alert(1000), compared=Comparison(many, many, many, many, many))
    monkeypatch.setattr(type(double.worklist), "alert", lambda *_: detail)
    said = texts.reason(detail.compared, detail.row.words, detail.row.sex)
    page = words(open_page("alert", double, alert="1000"))
    assert all(len(sentence) > 40 and sentence in page for sentence in said)


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ((), ""),
        ((138.0,), "138"),
        ((9.0, 213.0, 246.0), "213 → 246"),
        ((32.1, 35.7), "32.1 → 35.7"),
        ((0.493, 0.606), "0.606"),
        ((-12.5, 1e6), "1,000,000"),
    ],
)
def test_two_earlier_values_stand_only_where_neither_is_cut(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, before: tuple[float, ...], shown: str
) -> None:
    value, double = LastValue("Troponin I", 0.5, "ng/mL", "", 2.0, trend=(*before, 0.5)), FakeApplication()
    detail = replace(double.worklist.alert(1000), patient=case_of(more=(value,)))
    monkeypatch.setattr(type(double.worklist), "alert", lambda *_: detail)
    values = next(one.value for one in open_page("alert", double, alert="1000").dataframe if "Earlier" in one.value)
    assert values.set_index("Lab").loc["Troponin I", "Earlier"] == shown


def test_only_bands_that_are_drawn_are_explained() -> None:
    with_range, bare = lab("Potassium", 3.1, 3.5, 5.1), lab("Sodium", 140.0)
    usual = replace(bare, usual_low=130.0, usual_high=145.0)
    said = {
        (): "",
        (bare,): "no reference range, no flags",
        (usual,): "grey: central 90% here; no reference range, no flags",
        (with_range, bare): "green: reference range",
        (with_range, usual): "green: reference range, grey: central 90% here",
    }
    for labs, words_ in said.items():
        assert bands_in_words(case_of(*labs).timeline) == words_


def test_a_window_cut_short_is_not_said_to_be_that_of_similar_days(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = FakeApplication()
    detail = double.worklist.alert(1000)
    cut = replace(detail.patient.timeline, window_hours=22.0)
    detail = replace(detail, patient=replace(detail.patient, timeline=cut))
    monkeypatch.setattr(type(double.worklist), "alert", lambda *_: detail)
    tables = [one for one in open_page("alert", double, alert="1000").dataframe if "After" in one.value]
    assert [json.loads(one.proto.columns)["After"]["label"] for one in tables] == ["In the next 24 h"]
