"""Triage on the worklist and the alert page: two presses, never another alert, undo, and news from other tabs."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import DatabaseUnavailableError
from core.vocabulary import TriageState
from dashboard.components.filters import PAGE_DEFAULTS
from tests.dashboard.conftest import OpenPage, address, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication


def press(page: AppTest, label: str, *, bar: str = "preview") -> AppTest:
    """Press a button of a bar by what stands on it."""
    (button,) = [one for one in page.button if one.label == label and str(one.key).startswith(bar)]
    return button.click().run()


def dismiss(page: AppTest, *, bar: str = "preview") -> AppTest:
    return press(press(page, "Dismiss", bar=bar), "Fits this patient", bar=bar)


def state(double: FakeApplication, alert_id: int) -> TriageState:
    return double.triage.status(alert_id).state


def test_two_presses_dismiss_the_alert_and_the_next_one_is_selected(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = dismiss(open_page("worklist", double))
    assert nothing_failed(page)
    assert state(double, 1000) is TriageState.DISMISSED
    assert double.triage.acts[1000][0].reason == "Fits this patient"
    assert address(page)["alert"] == "1001"
    assert "### Vancomycin trough not ordered" in words(page)
    assert "Dismissed" in words(page)


def test_the_other_presses_lead_where_they_say(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = press(open_page("worklist", double), "In review")
    assert state(double, 1000) is TriageState.IN_REVIEW
    page = press(page, "Actioned")
    assert state(double, 1000) is TriageState.ACTIONED
    page = press(press(page, "Snooze"), "3 days")
    assert state(double, 1001) is TriageState.SNOOZED


def test_undo_brings_the_alert_back(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = dismiss(open_page("worklist", double))
    page.button(key="triage_undo").click().run()
    assert state(double, 1000) is TriageState.NEW
    assert "Undone: 1 alert" in words(page)


def test_the_slower_of_two_tabs_reads_that_it_changed_meanwhile(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = press(open_page("worklist", double), "Dismiss")
    double.triage.move(1000, TriageState.ACTIONED)
    page = press(page, "Fits this patient")
    assert [error.value for error in page.error] == ["Changed meanwhile\\: somebody was faster\\. Nothing was done\\."]
    assert state(double, 1000) is TriageState.ACTIONED


def test_an_alert_that_another_reader_closed_stays_the_selected_one(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("worklist", double, alert="1003")
    double.triage.move(1003, TriageState.DISMISSED)
    page.run()
    assert address(page)["alert"] == "1003"
    assert "### Amylase ordered" in words(page)
    key, ids, _ = page.session_state["worklist_shown"]
    assert 1003 not in ids
    assert page.session_state[key]["selection"]["rows"] == []


def test_a_button_that_was_drawn_for_one_alert_is_another_button_for_the_next(open_page: OpenPage) -> None:
    page = open_page("worklist", FakeApplication())
    before = {button.key for button in page.button if str(button.key).startswith("preview")}
    page.button(key="wl_next").click().run()
    after = {button.key for button in page.button if str(button.key).startswith("preview")}
    assert before
    assert not before & after


def test_a_save_that_fails_says_so_and_moves_nowhere(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("worklist", double)
    double.triage.fail_with.append(DatabaseUnavailableError("The database is busy. Nothing was kept."))
    page = press(page, "Actioned")
    assert "The database is busy" in page.error[0].value
    assert "### Troponin I not ordered" in words(page)
    assert state(double, 1000) is TriageState.NEW


def test_all_alerts_of_the_list_are_counted_first_then_triaged_then_taken_back(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("worklist", double, unit="Neuro ICU")
    page.button(key="wl_bulk").click().run()
    expected = len(double.within(replace(PAGE_DEFAULTS, unit="Neuro ICU")))
    assert f"**{expected} alerts** of this list" in words(page)
    page = dismiss(page, bar="bulk")
    assert f"{expected} alerts" in words(page)
    assert len(double.triage.acts) == expected
    page.button(key="triage_undo").click().run()
    assert {state(double, alert_id) for alert_id in double.triage.acts} == {TriageState.NEW}


def test_a_link_to_a_dismissed_alert_opens_it_under_default_filters(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.triage.move(1003, TriageState.DISMISSED, reason="Fits this patient", person="Dr Other")
    page = open_page("alert", double, alert="1003")
    assert nothing_failed(page)
    assert "# Amylase ordered" in words(page)
    assert "New → Dismissed: Fits this patient · Dr Other" in words(page)
    page = open_page("worklist", double, alert="1003")
    assert "### Amylase ordered" in words(page)


def test_a_closed_alert_can_be_opened_again_on_its_page(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.triage.move(1003, TriageState.ACTIONED)
    press(open_page("alert", double, alert="1003"), "Open again", bar="alert")
    assert state(double, 1003) is TriageState.NEW


def test_a_note_is_kept_and_shown_and_an_empty_one_refused(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("alert", double, alert="1003")
    page.button(key="note_add").click().run()
    assert "note is empty" in page.error[0].value
    page.text_area(key="note-1003").input("**Called** <b>ward</b>").run()
    page.button(key="note_add").click().run()
    assert double.triage.said[1003][0].text == "**Called** <b>ward</b>"
    assert "**Called** <b>ward</b>" in words(page)
    assert all("<b>" not in one.value for one in page.markdown if not one.allow_html)
    assert page.text_area(key="note-1003").value == ""


def test_the_alert_page_leads_to_all_alerts_of_its_patient(open_page: OpenPage) -> None:
    double = FakeApplication()
    patient = double.rows()[4].patient_id
    page = open_page("alert", double, alert="1004")
    page.button(key="al_patient").click().run()
    assert f"Only patient **{patient}**" in words(page)
    assert patient not in str(page.query_params)
    assert page.session_state["worklist_shown"][1] == [1004]


@pytest.mark.checklist("D6")
def test_the_patient_of_a_list_is_in_no_address_link_or_view(open_page: OpenPage) -> None:
    double = FakeApplication()
    patient = double.rows()[4].patient_id
    page = open_page("worklist", double)
    page.text_input(key="f_patient").input(patient).run()
    assert page.session_state["worklist_shown"][1] == [1004]
    page.text_input(key="view_name").input("Mine").run()
    page.button(key="view_save").click().run()
    assert patient not in str(page.query_params)
    assert [view.address for view in double.saved_views.views.values()] == [{}]
    assert all(patient not in code.value for code in page.code)
    page.button(key="wl_all_patients").click().run()
    assert "Only patient" not in words(page)
    assert len(page.session_state["worklist_shown"][1]) == 13


@pytest.mark.parametrize("shared", [False, True])
def test_a_saved_view_brings_its_filters_back(open_page: OpenPage, shared: bool) -> None:
    double = FakeApplication()
    page = open_page("worklist", double, decision="commission", triage="any")
    page.text_input(key="view_name").input("Commissions")
    page.toggle(key="view_shared").set_value(shared)
    page.button(key="view_save").click().run()
    again = open_page("worklist", double)
    again.button(key="view_open_0").click().run()
    assert address(again) == {"decision": "commission", "triage": "any"}
    assert next(iter(double.saved_views.views.values())).is_shared is shared


def test_rows_match_the_triage_filter_that_is_shown(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.triage.move(1002, TriageState.DISMISSED)
    page = open_page("worklist", double, triage="dismissed")
    assert page.selectbox(key="f_triage").value == "dismissed"
    assert page.session_state["worklist_shown"][1] == [1002]
    page.selectbox(key="f_triage").select("open").run()
    assert 1002 not in page.session_state["worklist_shown"][1]
    assert address(page) == {}
