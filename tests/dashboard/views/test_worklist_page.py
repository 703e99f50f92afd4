"""The worklist: rows always match the filters that are shown, and the selected alert is the one that is meant."""

from dataclasses import replace
from datetime import date
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from alertreview.alerts.models import AlertDetail, FilterChoices, WorklistFilters, WorklistPage
from alertreview.alerts.preview_model import AlertPreview
from alertreview.alerts.worklist import Worklist
from core.kinds import Kind
from core.vocabulary import Decision
from dashboard import texts
from dashboard.components.filters import FILTERS
from dashboard.components.links import params_of
from tests.dashboard.conftest import OpenPage, address, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.sign_in import guarded_as
from tests.dashboard.doubles.worklist import FakeWorklist


def rows(page: AppTest) -> pd.DataFrame:
    return page.dataframe[0].value


def test_the_first_page_shows_thirteen_alerts_and_previews_the_first(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication())
    assert len(rows(page)) == 13
    assert "**62 alerts** for 612 patient-days" in words(page)
    assert "### Troponin I not ordered" in words(page)
    assert "Lines 1–13, 62 alerts" in words(page)


def test_no_cell_of_a_decision_is_cut_at_the_end_of_its_column(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = FakeApplication()
    listed = double.worklist.page(WorklistFilters(alerts_per_patient_day=5.0), limit=13)
    long = "Basic metabolic panel, blood count, minerals not measured"
    lines = tuple(replace(line, words=long) for line in listed.lines)
    monkeypatch.setattr(type(double.worklist), "page", lambda *_, **__: replace(listed, lines=lines))
    shown = rows(open_page("worklist", double))["decision"]
    assert all(len(words) <= 30 and words.endswith("… not measured") for words in shown), "196 pixels hold 30 letters"


@pytest.mark.parametrize("narrowed", [{}, {"decision": "omission"}, {"unit": "Neuro ICU", "budget": "5"}])
def test_lines_are_numbered_without_gaps_from_page_to_page(open_page: OpenPage, narrowed: dict[str, str]) -> None:
    page = open_page("worklist", FakeApplication(n_alerts=400), **narrowed)
    seen = list(rows(page)["place"])
    for _ in range(13):
        page.button(key="wl_next").click().run()
    seen += list(rows(page)["place"])
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) > 13


def test_filters_from_a_link_show_in_the_widgets_and_in_the_rows(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication(), decision="commission", kind="LAB_ORDER", budget="0.5")
    assert page.get("button_group") is not None
    assert page.session_state["f_decision"] == "Commissions"
    assert page.session_state["f_kind"] == "Labs"
    assert page.session_state["f_budget"] == 0.5
    expected = FakeApplication().worklist.page(
        WorklistFilters(decision=Decision.COMMISSION, kind=Kind.LAB_ORDER, alerts_per_patient_day=0.5)
    )
    assert list(rows(page)["decision"]) == [row.decision_words for row in expected.rows]


def test_a_changed_widget_changes_rows_and_address_together(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication(), after="13", page="2", alert="1020")
    page.selectbox(key="f_unit").select("Neuro ICU").run()
    assert set(rows(page)["unit"]) == {"Neuro ICU"}
    assert address(page) == {"unit": "Neuro ICU"}


def test_what_a_widget_does_not_offer_is_neither_shown_nor_filtered_by(open_page: OpenPage) -> None:
    page = open_page(
        "worklist", FakeApplication(), unit="Nowhere", task="lab:none", decision="x", budget="abc", kind="LABEL"
    )
    assert page.selectbox(key="f_unit").value == ""
    assert page.session_state["f_kind"] == "All"
    assert len(rows(page)) == 13


@pytest.mark.parametrize(
    ("tasks", "found"), [((("LABEL/sepsis", "sepsis"),), Kind.LABEL), ((("LAB_ORDER/k", "K"),), None)]
)
def test_labels_are_a_kind_to_filter_by_where_the_run_has_some(
    tasks: tuple[tuple[str, str]], found: Kind | None
) -> None:
    (of_kind,) = (one for one in FILTERS if one.name == "kind")
    assert of_kind.read("LABEL", FilterChoices((), tasks)) is found
    assert of_kind.read("LAB_ORDER", FilterChoices((), tasks)) is Kind.LAB_ORDER


def test_the_search_finds_a_patient_who_stays_out_of_the_address(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication())
    for typed in ("SIM-0331", " sim-0331 "):
        page.text_input(key="f_find").input(typed).run()
        assert set(rows(page)["patient"].str.split(",").str[0]) == {"SIM-0331"}
        assert address(page) == {}


def test_a_search_of_digits_only_stays_out_of_the_address(open_page: OpenPage) -> None:
    choices = FilterChoices((), (("lab:b12", "Vitamin B12"),))
    assert params_of(WorklistFilters(text="12"), choices).get("find") is None
    assert params_of(WorklistFilters(text="B12"), choices)["find"] == "B12"


def test_the_reason_beside_the_list_is_whole(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("worklist", double)
    row = double.rows()[0]
    whole = " ".join(texts.reason(double.worklist.preview(row.alert_id).compared, row.words, row.sex))
    assert len(whole) > 80
    assert whole in words(page)


def test_the_days_are_in_the_row_of_filters(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication())
    day = date(2026, 11, 25)
    page.date_input(key="f_days").set_value((day, day)).run()
    assert set(rows(page)["day"]) == {"25 Nov 08:00"}
    assert address(page) == {"from": "2026-11-25", "to": "2026-11-25"}


def test_a_search_for_a_task_is_in_the_address(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication())
    page.text_input(key="f_find").input("heparin").run()
    assert rows(page)["decision"].str.contains("Heparin").all()
    assert address(page) == {"find": "heparin"}


def test_a_typed_name_stays_out_of_the_address_but_filters_all_the_same(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication())
    page.text_input(key="f_find").input("Mrs Canary").run()
    assert "find" not in address(page)
    assert "Canary" not in str(page.query_params)
    assert page.text_input(key="f_find").value == "Mrs Canary"
    assert "No alert matches these filters" in words(page)
    page.button(key="undo_text").click().run()
    assert page.text_input(key="f_find").value == ""
    assert len(rows(page)) == 13


def test_an_empty_list_says_which_filter_hides_how_many_and_undoes_it(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication(), decision="commission", task="lab:troponin-i")
    assert nothing_failed(page)
    assert "No alert matches these filters" in words(page)
    assert "Without the decision" in words(page)
    page.button(key="undo_decision").click().run()
    assert set(rows(page)["decision"]) == {"Troponin I not ordered"}
    assert address(page) == {"task": "lab:troponin-i"}


def test_the_budget_can_be_raised_from_the_empty_list(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication(), budget="0.01", unit="Neuro ICU", kind="MEDICATION")
    if page.dataframe:
        pytest.fail("the double has a row here; the scenario needs an empty list")
    page.button(key="raise_budget").click().run()
    assert address(page)["budget"] == "0.02"


def test_the_next_key_moves_the_selection_by_alert_id(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication())
    page.button(key="wl_next").click().run()
    assert address(page)["alert"] == "1001"
    assert "### Vancomycin trough not ordered" in words(page)
    page.button(key="wl_previous").click().run()
    assert address(page)["alert"] == "1000"


def test_after_the_last_row_comes_the_next_page_and_back_again(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication(), alert="1012")
    page.button(key="wl_next").click().run()
    assert "Lines 14–26, 62 alerts" in words(page)
    assert "# Vancomycin trough not ordered" in words(page)
    page.button(key="wl_previous").click().run()
    assert "Lines 1–13, 62 alerts" in words(page)
    assert address(page)["alert"] == "1012"


def test_an_alert_that_is_not_on_the_page_is_shown_all_the_same_and_no_row_is_selected(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication(), alert="1050")
    assert "### Insulin, IV not given" in words(page)
    key, _, _ = page.session_state["worklist_shown"]
    assert page.session_state[key]["selection"]["rows"] == []


def test_an_alert_that_does_not_exist_selects_nothing(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication(), alert="9999")
    assert nothing_failed(page)
    assert "Alert not found" in words(page)
    assert "### " not in words(page)


def test_a_click_is_read_from_the_rows_that_were_shown(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication())
    key, ids, _ = page.session_state["worklist_shown"]
    page.selectbox(key="f_unit").select("Neuro ICU").run()
    new_key, new_ids, _ = page.session_state["worklist_shown"]
    assert key != new_key
    assert ids != new_ids
    assert page.session_state[new_key]["selection"]["rows"] == [0]


def test_every_page_of_every_filter_is_the_applications_own(open_page: OpenPage) -> None:
    double = FakeApplication(n_alerts=30)
    page = open_page("worklist", double, decision="omission")
    shown: list[str] = []
    for _ in range(4):
        shown += list(rows(page)["patient"])
        page.query_params["alert"] = str(page.session_state["worklist_shown"][1][-1])
        page.run()
        if page.button(key="wl_next").disabled:
            break
        page.button(key="wl_next").click().run()
    expected = double.worklist.page(WorklistFilters(decision=Decision.OMISSION), limit=100).rows
    assert [patient.split(",")[0] for patient in shown] == [row.patient_id for row in expected]


def test_open_leads_to_the_alert_with_the_filters_in_its_address(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication(), decision="commission")
    page.button(key="wl_open").click().run()
    assert "# Amylase ordered" in words(page)
    assert address(page) == {"decision": "commission", "alert": "1003"}
    page.button(key="al_back").click().run()
    assert rows(page)["omission"].isna().all()
    assert rows(page)["commission"].notna().all()


def test_each_decision_has_its_own_column_of_scores_that_falls(open_page: OpenPage) -> None:
    frame = rows(open_page("worklist", FakeApplication()))
    for decision in Decision:
        scores = frame[decision.value].dropna()
        assert len(scores) > 1
        assert list(scores) == sorted(scores, reverse=True)
    assert (frame["omission"].isna() ^ frame["commission"].isna()).all()


def test_only_the_columns_of_the_listed_decisions_are_shown(open_page: OpenPage) -> None:
    for chosen, expected in (("", ["omission", "commission"]), ("omission", ["omission"])):
        page = open_page("worklist", FakeApplication(), **({"decision": chosen} if chosen else {}))
        shown = page.dataframe[0].proto.column_order
        assert [name for name in shown if name in {"omission", "commission"}] == expected


@guarded_as(Worklist)
class Counting(FakeWorklist):
    """Notes what pages ask for."""

    asked: list[str]

    def page(self, filters: WorklistFilters, *given: Any, **more: Any) -> WorklistPage:
        self.asked.append("worklist")
        return super().page(filters, *given, **more)

    def preview(self, alert_id: int, *given: Any, **more: Any) -> AlertPreview:
        found = super().preview(alert_id, *given, **more)
        self.asked[-1] = "preview"  # the double makes it from an alert
        return found

    def alert(self, alert_id: int, *given: Any, **more: Any) -> AlertDetail:
        n_before = len(self.asked)
        found = super().alert(alert_id, *given, **more)
        self.asked[n_before:] = ["alert"]
        return found


def test_each_key_asks_for_what_its_page_shows_and_nothing_else(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.worklist = counting = Counting(double)
    counting.asked = asked = []
    page = open_page("worklist", double)
    for press, expected in (
        ("wl_next", ["worklist", "preview"]),
        ("wl_open", ["alert"]),
        ("al_back", ["worklist", "preview"]),
    ):
        asked.clear()
        page.button(key=press).click().run()
        assert nothing_failed(page)
        assert asked == expected, press
