"""The card of an open panel: one press saves, nothing is said too early, and nothing of a blinded study comes."""

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.application import Application, open_application
from alertreview.review.models import DraftView
from alertreview.rights import Actor
from alertreview.studies.models import ChosenCase
from core.errors import ConflictError, DatabaseUnavailableError
from core.vocabulary import OPEN_PANEL, OPEN_PANEL_LIMIT, Answer, Certainty, Role
from dashboard.context import NEUTRAL_SENTENCE
from tests.dashboard.conftest import OpenPage, address, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.panels import LONG
from tests.dashboard.doubles.sign_in import FakeSessions

ME, ALERT, CASE = 1, "1005", 1
EVERYTHING = WorklistFilters(alerts_per_patient_day=5.0, include_cut_windows=True)


def open_card(open_page: OpenPage, double: FakeApplication, alert: str = ALERT) -> AppTest:
    page = open_page("alert", double, alert=alert)
    assert nothing_failed(page)
    return page


def keys(page: AppTest) -> dict[str, str]:
    return {str(one.key): one.proto.shortcut for one in page.button if one.proto.shortcut}


def press(page: AppTest, name: str) -> AppTest:
    (button,) = [one for one in page.button if str(one.key).startswith(f"pn_{name}_")]
    return button.click().run()


def line(page: AppTest) -> object:
    (found,) = [one for one in page.text_input if str(one.key).startswith("pn_line_")]
    return found


def mine(double: FakeApplication) -> list[tuple[int, str, str]]:
    return [(int(v.answer), v.comment, v.reason) for v in double.votes.get(("panel", ME, CASE), [])]


def test_the_card_says_that_the_score_is_seen_and_nothing_is_preselected(open_page: OpenPage) -> None:
    page = open_card(open_page, FakeApplication(with_panel=True))
    assert "**Panel Ward round** :gray[· open: you see the score]" in words(page)
    answers = [one for one in page.button if str(one.key).startswith("pn_answer_")]
    assert [one.label for one in answers] == list(LONG.values())
    assert all(one.proto.type == "secondary" for one in answers)
    assert "Saved" not in words(page)


def test_every_answer_has_its_key_and_no_key_is_used_twice(open_page: OpenPage) -> None:
    page = press(open_card(open_page, FakeApplication(with_panel=True)), "answer_1")
    found = keys(page)
    assert {name[:11]: key for name, key in found.items() if name.startswith("pn_answer")} == {
        f"pn_answer_{answer:d}": answer.key for answer in Answer
    }
    assert len({key.lower() for key in found.values()}) == len(found)
    assert not {key.lower() for key in found.values()} & {"c", "r", "enter"}


@pytest.mark.parametrize("asked", ["Dismiss", "Snooze"])
def test_while_the_triage_bar_asks_the_keys_are_its_own(open_page: OpenPage, asked: str) -> None:
    page = open_card(open_page, FakeApplication(with_panel=True))
    next(one for one in page.button if one.label == asked).click().run()
    assert not [name for name in keys(page) if name.startswith("pn_")]
    assert sorted(key for key in keys(page).values() if key.isdigit()) == ["1", "2", "3"]
    next(one for one in page.button if one.label == "Back").click().run()
    assert len([name for name in keys(page) if name.startswith("pn_answer_")]) == len(Answer)


def test_one_press_saves_and_the_mark_comes_from_the_store(open_page: OpenPage) -> None:
    double = FakeApplication(with_panel=True)
    page = open_card(open_page, double)
    line(page).input("seen with the ward").run()
    page = press(page, "answer_3")
    assert nothing_failed(page)
    assert mine(double) == [(3, "seen with the ward", "")]
    assert "Saved" in words(page)
    stands = next(one for one in page.button if str(one.key).startswith("pn_answer_3"))
    assert (stands.proto.type, stands.icon) == ("primary", ":material/check:")
    assert line(page).value == ""
    assert [name for name, _ in double.calls] == ["save_draft", "save_draft", "submit_judgment"]


def test_what_was_chosen_and_typed_is_a_draft_and_comes_back(open_page: OpenPage) -> None:
    double = FakeApplication(with_panel=True)
    page = open_card(open_page, double)
    line(page).input("begun").run()
    next(one for one in page.segmented_control if str(one.key).startswith("pn_")).set_value(Certainty.UNCERTAIN).run()
    assert double.drafts["panel", ME, CASE] == DraftView(None, Certainty.UNCERTAIN, "begun")
    again = open_card(open_page, double)
    assert line(again).value == "begun"
    press(again, "answer_1")
    assert mine(double) == [(1, "begun", "")]
    assert double.votes["panel", ME, CASE][0].certainty is Certainty.UNCERTAIN


def test_cannot_judge_needs_a_reason_and_a_change_needs_one(open_page: OpenPage) -> None:
    double = FakeApplication(with_panel=True)
    page = press(open_card(open_page, double), "answer_0")
    assert "needs a reason" in page.error[0].value
    assert "Not saved: **Cannot judge**" in words(page)
    assert "Saved" not in words(page).replace("Not saved", "")
    line(page).input("no lab in the record").run()
    page = press(page, "answer_0")
    assert mine(double) == [(0, "no lab in the record", "no lab in the record")]
    page = press(page, "answer_2")
    assert "Say why it changes" in page.error[0].value
    line(page).input("found it").run()
    press(page, "answer_2")
    assert mine(double)[1] == (2, "no lab in the record", "found it")
    assert "panel" not in str(double.drafts), "a change leaves no draft behind"


def test_the_saved_answer_pressed_again_is_no_change(open_page: OpenPage) -> None:
    double = FakeApplication(with_panel=True)
    page = press(press(open_card(open_page, double), "answer_1"), "answer_1")
    assert nothing_failed(page)
    assert "saved answer already" in words(page)
    assert len(mine(double)) == 1


def test_the_last_own_answer_is_taken_back_once(open_page: OpenPage) -> None:
    double = FakeApplication(with_panel=True)
    page = press(press(open_card(open_page, double), "answer_1"), "undo")
    assert "Undone" in words(page)
    assert "Not saved: **Usual**" in words(page)
    assert not [one for one in page.button if str(one.key).startswith("pn_undo")]
    assert not [one for one in page.button if one.proto.type == "primary" and str(one.key).startswith("pn_answer")]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (DatabaseUnavailableError("The database is full. Nothing was kept."), "The database is full"),
        (ConflictError("This case was changed meanwhile."), "changed meanwhile"),
        (OSError("disk Canary-Patient-4711"), NEUTRAL_SENTENCE),
    ],
)
def test_a_failed_save_says_so_keeps_what_was_typed_and_marks_nothing(
    open_page: OpenPage, error: Exception, sentence: str
) -> None:
    double = FakeApplication(with_panel=True)
    page = open_card(open_page, double)
    line(page).input("typed").run()
    double.fail_with = [error]
    page = press(page, "answer_1")
    assert sentence in words(page)
    assert "Canary" not in words(page)
    assert "Saved" not in words(page)
    assert mine(double) == []
    assert line(page).value == "typed"
    press(page, "answer_1")
    assert mine(double) == [(1, "typed", "")]


def test_the_next_of_the_panel_is_one_press_away_and_takes_no_answer_along(open_page: OpenPage) -> None:
    double = FakeApplication(with_panel=True)
    page = press(press(open_card(open_page, double), "answer_1"), "next")
    following = double.panels.next_alert("panel", ME, CASE)
    assert address(page)["alert"] == str(following) != ALERT
    assert not [one for one in page.button if one.proto.type == "primary" and str(one.key).startswith("pn_answer")]
    assert "Saved" not in words(page)


def test_a_site_without_open_panel_or_place_has_no_card(open_page: OpenPage) -> None:
    for double, alert in ((FakeApplication(), ALERT), (FakeApplication(with_panel=True), "1001")):
        page = open_card(open_page, double, alert)
        assert not [one for one in page.button if str(one.key).startswith("pn_")]


def test_a_phone_has_no_keys(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.components.review.panel_card.is_phone", lambda: True)
    page = open_card(open_page, FakeApplication(with_panel=True))
    assert not [name for name in keys(page) if name.startswith("pn_")]


def test_every_page_of_the_study_says_what_it_is(open_page: OpenPage) -> None:
    double = FakeApplication(with_panel=True)
    for name in ("studies", "export"):
        page = open_page(name, double, study="panel")
        assert nothing_failed(page)
        assert OPEN_PANEL in words(page)
        assert [warning.value.replace("\\", "") for warning in page.warning] == [OPEN_PANEL_LIMIT]
        page = open_page(name, double, study="demo")
        assert not page.warning
        assert OPEN_PANEL not in words(page)
    assert "open panel, here without score" in words(open_page("review", double, study="panel"))
    home = open_page("home", double)
    labels = [link.proto.label.replace("\\", "") for link in home.get("page_link")]
    assert ":primary[Open panel: Ward round]" in labels


def test_the_page_of_the_study_leads_to_the_first_alert(open_page: OpenPage) -> None:
    double = FakeApplication(with_panel=True)
    page = open_page("studies", double, study="panel")
    page.button(key="st_alerts").click().run()
    assert address(page)["alert"] == str(double.panels.next_alert("panel", ME))
    assert "Panel Ward round" in words(page)
    assert "st_alerts" not in [one.key for one in open_page("studies", double, study="demo").button]


def test_the_report_page_says_it_once_before_the_figures(open_page: OpenPage) -> None:
    page = open_page("reports", FakeApplication(with_panel=True), study="panel")
    assert not page.exception
    assert [warning.value.replace("\\", "") for warning in page.warning] == [OPEN_PANEL_LIMIT]
    assert OPEN_PANEL_LIMIT not in words(page)
    assert OPEN_PANEL in words(page)


def test_a_blinded_list_is_offered_before_a_newer_panel(open_page: OpenPage) -> None:
    page = open_page("home", FakeApplication(with_panel=True))
    assert "**ICU pilot 2026** :gray[your reading list]" in words(page)
    assert "ICU pilot 2026 · blinded" in words(open_page("review", FakeApplication(with_panel=True)))


def test_a_panel_is_set_up_with_the_sentence_in_sight_and_without_repeats(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("study_setup", double)
    assert not page.warning
    page.segmented_control(key="su_kind").set_value("Open panel").run()
    assert OPEN_PANEL_LIMIT in page.warning[0].value.replace("\\", "")
    assert "cannot be changed later" in page.warning[0].value
    page.selectbox(key="su_preset").set_value("four strata, finer at the top").run()
    page.text_input(key="su_title").set_value("Ward round").run()
    page.button(key="su_make").click().run()
    ((_, (slug, _, plan, _, _)),) = double.study_desk.done
    assert (slug, plan.n_repeats, double.study_desk.open_panels) == ("ward-round", 0, ["ward-round"])


@pytest.fixture
def own(own_home: Path) -> Application:
    """The demonstration, read by the person whose blinded judgments are missing, who also reads an open panel."""
    opened = open_application(own_home)
    person = next(one for one in opened.site.people() if not one.simulated and one.role is Role.REVIEWER)
    opened.sessions = FakeSessions(Actor(person.person_id, person.name, Role.REVIEWER, session_id=1))  # type: ignore[assignment]
    return opened


def panel_over(own: Application, alerts: list[AlertRow], readers: list[int]) -> None:
    with own.database.read() as uow:
        records = [uow.alerts.get(row.alert_id) for row in alerts]
    chosen = [
        ChosenCase(
            row_index=one.row_index,
            task_key=one.task_key,
            decision=one.decision,
            stratum="canary-stratum",
            stratum_size=2,
            inclusion_probability=1.0,
        )
        for one in records
    ]
    own.studies.create_study("panel", "Ward", records[0].run_id, chosen, n_slots=2, is_open_panel=True)
    own.studies.add_readers("panel", readers)
    own.studies.open_study("panel")


@pytest.mark.checklist("B6")
def test_a_reader_of_both_kinds_judges_one_beside_its_score_and_gets_nothing_of_the_other(
    open_page: OpenPage, own: Application
) -> None:
    me, other = own.sessions.who(None).person_id, next(p.person_id for p in own.site.people() if p.simulated)
    everybody, listed = (own.worklist.page(replace(EVERYTHING, reader=one), limit=5_000).rows for one in (None, me))
    withheld = next(row for row in everybody if row.alert_id not in {one.alert_id for one in listed})
    panel_over(own, [listed[0], withheld], [me, other])
    for case in own.studies.case_rows("panel"):
        own.review.save_draft("panel", other, case.case_id, DraftView(None, None, ""))
        own.review.submit_judgment(
            "panel",
            other,
            case.case_id,
            answer=Answer.RELEVANT,
            comment="canary-comment",
            version_seen=0,
            form_key=f"other-{case.case_id}",
        )
    page = open_page("alert", own, alert=str(withheld.alert_id))
    assert "still to judge this decision in a study" in words(page)
    assert not [one for one in page.button if str(one.key).startswith("pn_")]
    assert f"{withheld.scaled_score:.2f}" not in "".join(metric.value for metric in page.metric)
    page = open_page("alert", own, alert=str(listed[0].alert_id))
    assert nothing_failed(page)
    assert "Panel Ward" in words(page)
    sent = "\n".join(str(element.proto) for element in page.main if hasattr(element, "proto"))
    assert sent
    assert "canary" not in sent + words(page)
    page = press(page, "answer_1")
    assert nothing_failed(page)
    assert "Saved" in words(page)
    vote = next(vote for vote in own.studies.votes("panel") if vote.reviewer_id == me)
    assert (vote.answer, vote.saw_score_before) == (Answer.USUAL, True)
    page = press(page, "next")
    assert "No other case of this panel with an alert is waiting for you" in words(page)
    own.close()
