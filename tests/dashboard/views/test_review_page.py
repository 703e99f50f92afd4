"""The blinded review: saved or visibly not saved, nothing preselected, nothing lost, nothing of anybody else."""

import json

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from alertreview.review.models import DraftView
from core.errors import ConflictError, DatabaseUnavailableError
from core.vocabulary import Answer, Certainty
from dashboard.components import cards, case_view
from dashboard.components.review import answers
from dashboard.context import NEUTRAL_SENTENCE
from tests.dashboard.conftest import OpenPage, address, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.records import HOSTILE

ME = 1


def case_id(page: AppTest) -> int:
    return page.session_state["review"].case.case_id


def press(page: AppTest, name: str) -> AppTest:
    """Press a button of the case that is shown."""
    return page.button(key=f"rv_{name}_{case_id(page)}").click().run()


def comment(page: AppTest) -> object:
    return page.text_input(key=f"rv_comment_{case_id(page)}")


def mine(double: FakeApplication) -> dict[int, list[int]]:
    return {
        case: [int(v.answer) for v in votes] for (s, p, case), votes in double.votes.items() if (s, p) == ("demo", ME)
    }


def test_nothing_is_preselected_and_saving_without_an_answer_is_refused(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    answers = [page.button(key=f"rv_answer_{code}_{here}") for code in (1, 2, 3, 0)]
    assert [a.label for a in answers] == ["Usual", "Unusual, not relevant", "Unusual and relevant", "Cannot judge"]
    assert all(a.proto.type == "secondary" for a in answers)
    assert page.button(key=f"rv_save_{here}").proto.type == "secondary"
    press(page, "save")
    assert "No answer is chosen" in words(page)
    assert mine(double) == {}
    assert case_id(page) == here


def test_every_answer_has_its_key_and_none_is_a_global_one(open_page: OpenPage) -> None:
    page = open_page("review", FakeApplication())
    keys = {button.key: button.proto.shortcut for button in page.button if button.proto.shortcut}
    here = case_id(page)
    assert [keys[f"rv_answer_{code}_{here}"] for code in (1, 2, 3, 0)] == ["1", "2", "3", "0"]
    assert keys[f"rv_save_{here}"].lower() == "s"
    assert keys[f"rv_save_enter_{here}"].lower() == "ctrl+enter"
    assert keys[f"rv_undo_{here}"].lower() == "z"
    assert keys[f"rv_later_{here}"].lower() == "l"
    assert not {key.lower() for key in keys.values()} & {"c", "r", "enter"}
    assert len(set(keys.values())) == len(keys)


def test_two_keys_save_a_case_and_show_the_next(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    first = case_id(page)
    press(page, "answer_3")
    assert page.button(key=f"rv_answer_3_{first}").proto.type == "primary"
    press(page, "save")
    assert mine(double) == {first: [3]}
    assert case_id(page) != first
    assert "Saved" in words(page)
    assert comment(page).value == ""
    assert page.button(key=f"rv_save_{case_id(page)}").proto.type == "secondary"


def test_the_figure_is_sent_last_so_that_words_and_answers_do_not_wait_for_it(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    for name in ("title", "last_values", "drugs_now", "timeline_card"):
        monkeypatch.setattr(case_view, name, lambda *_args, _name=name, **_named: drawn.append(_name))
    monkeypatch.setattr(answers, "certainty", lambda *_: drawn.append("answers"))
    monkeypatch.setattr(cards, "words_first", lambda: drawn.append("pause"))
    open_page("review", FakeApplication())
    assert drawn == ["title", "answers", "pause", "last_values", "drugs_now", "timeline_card"]


def test_the_saved_mark_comes_only_after_the_application_answered(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    press(page, "answer_1")
    assert "Saved" not in words(page)
    double.fail_with = [DatabaseUnavailableError("The database is full. Nothing was kept.")]
    press(page, "save")
    assert "Saved" not in words(page)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            DatabaseUnavailableError("The database is full. Nothing was kept."),
            "The database is full. Nothing was kept.",
        ),
        (OSError("disk Canary-Patient-4711"), NEUTRAL_SENTENCE),
    ],
)
def test_a_failed_save_says_so_and_keeps_case_answer_and_comment(
    open_page: OpenPage, error: Exception, sentence: str
) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    press(page, "answer_2")
    comment(page).input("seen with the ward").run()
    double.fail_with = [error]
    press(page, "save")
    assert sentence in words(page)
    assert "Canary" not in words(page)
    assert case_id(page) == here
    assert comment(page).value == "seen with the ward"
    assert page.button(key=f"rv_answer_2_{here}").proto.type == "primary"
    assert mine(double) == {}
    press(page, "save")
    assert mine(double) == {here: [2]}
    assert nothing_failed(page)


def test_every_second_save_fails_and_as_many_are_said_to_be_saved_as_are(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    for number in range(6):
        here = case_id(page)
        press(page, "answer_1")
        if number % 2:
            double.fail_with = [DatabaseUnavailableError("Busy.")]
        press(page, "save")
        assert (case_id(page) != here) == (here in mine(double))
        if number % 2:
            press(page, "save")
    assert len(mine(double)) == 6


def test_a_second_press_of_save_stores_nothing_more(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    press(page, "answer_3")
    page.button(key=f"rv_save_{here}").click()
    page.button(key=f"rv_save_enter_{here}").click()
    page.run()
    assert nothing_failed(page)
    assert mine(double) == {here: [3]}


def test_an_answer_interrupted_after_the_commit_is_not_saved_twice(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here, shown = case_id(page), page.session_state["review"].case
    press(page, "answer_3")
    double.review.submit_judgment(
        "demo", ME, here, answer=Answer.RELEVANT, version_seen=0, form_key=shown.form_key
    )  # what an interrupted press leaves behind
    press(page, "save")
    assert nothing_failed(page)
    assert mine(double) == {here: [3]}
    assert case_id(page) != here


def test_the_answer_and_comment_are_drafts_in_the_application(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    press(page, "answer_2")
    page.segmented_control(key=f"rv_certainty_{here}").set_value(Certainty.UNCERTAIN).run()
    comment(page).input("3 1 z n").run()
    assert double.drafts["demo", ME, here] == DraftView(Answer.UNUSUAL, Certainty.UNCERTAIN, "3 1 z n")
    again = open_page("review", double)
    assert case_id(again) == here
    assert comment(again).value == "3 1 z n"
    assert again.button(key=f"rv_answer_2_{here}").proto.type == "primary"
    assert again.button(key=f"rv_answer_3_{here}").proto.type == "secondary"


def test_a_draft_that_cannot_be_kept_is_said_and_stays_on_the_page(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    double.fail_with = [DatabaseUnavailableError("The database is read-only. Nothing was kept.")]
    press(page, "answer_2")
    assert "read-only" in words(page)
    assert page.button(key=f"rv_answer_2_{case_id(page)}").proto.type == "primary"


def test_cannot_judge_needs_a_reason(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    press(page, "answer_0")
    assert "required" in comment(page).placeholder
    press(page, "save")
    assert "needs a reason" in words(page)
    assert mine(double) == {}
    comment(page).input("no laboratory data").run()
    press(page, "save")
    assert mine(double) == {here: [0]}


def test_another_window_that_answered_first_is_heard(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    press(page, "answer_3")
    comment(page).input("mine").run()
    double.review.submit_judgment("demo", ME, here, answer=Answer.USUAL, version_seen=0, form_key="other-window")
    press(page, "save")
    assert "changed meanwhile" in words(page)
    assert mine(double) == {here: [1]}
    assert comment(page).value == "mine"
    page.button(key=f"rv_reload_{here}").click().run()
    assert nothing_failed(page)
    assert page.session_state["review"].case.version_seen == 1


def test_undo_takes_back_the_choice_first_and_the_saved_answer_after_it(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    first = case_id(page)
    press(page, "answer_3")
    press(page, "undo")
    assert double.drafts["demo", ME, first].answer is None
    press(page, "answer_3")
    press(page, "save")
    press(page, "undo")
    assert case_id(page) == first
    press(page, "answer_1")
    press(page, "save")
    assert nothing_failed(page)
    assert mine(double)[first] == [3, 1]
    reasons = [values[5] for name, values in double.calls if name == "submit_judgment"]
    assert reasons == ["", ""], "what was taken back is open again: a new answer needs no reason"
    assert [values[3] for name, values in double.calls if name == "undo"] == [1], "taken back once, in the application"


def test_changing_a_saved_answer_needs_a_reason(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.review.submit_judgment("demo", ME, 7, answer=Answer.USUAL, version_seen=0, form_key="before")
    page = open_page("review", double, study="demo", case="7")
    press(page, "answer_3")
    press(page, "save")
    assert "Say why it changes" in words(page)
    page.text_input(key="rv_reason_7").input("looked again at the potassium").run()
    press(page, "save")
    assert mine(double)[7] == [1, 3]


def test_later_puts_a_case_aside_and_goes_on(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    press(page, "later")
    assert ("demo", ME, here) in double.later
    assert case_id(page) != here


def test_arrows_leave_the_draft_where_it_is(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    first = case_id(page)
    press(page, "answer_2")
    page.button(key="rv_right").click().run()
    second = case_id(page)
    assert second != first
    assert page.button(key=f"rv_answer_2_{second}").proto.type == "secondary"
    page.button(key="rv_left").click().run()
    assert case_id(page) == first
    assert page.button(key=f"rv_answer_2_{first}").proto.type == "primary"
    page.button(key="rv_left").click().run()
    assert "first case of your list" in words(page)


def test_a_link_names_the_case_and_a_reload_comes_back_to_it(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double, study="demo", case="5")
    assert case_id(page) == 5
    assert address(page) == {"study": "demo", "case": "5"}
    assert case_id(open_page("review", double, study="demo", case="5")) == 5


@pytest.mark.parametrize("other", ["studies", "my-judgments"])
def test_whoever_comes_back_from_another_page_finds_the_case_and_its_name_in_the_address(
    open_page: OpenPage, other: str
) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    page.button(key="rv_right").click().run()
    here = case_id(page)
    for name in (other, "review"):
        page._page_hash = calc_hash(name)
        page.query_params.clear()
        if name == "review":
            page.query_params["study"] = "demo"
        page.run()
    assert case_id(page) == here
    assert address(page) == {"study": "demo", "case": str(here)}


def test_two_readers_in_one_process_never_meet(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    press(page, "answer_3")
    comment(page).input("secret of reader one").run()
    page.selectbox(key="w_person").select(4).run()
    assert nothing_failed(page)
    assert "secret of reader one" not in repr(page)
    assert page.session_state["review"].person_id == 4
    assert page.button(key=f"rv_save_{case_id(page)}").proto.type == "secondary"


def test_all_read_says_so(open_page: OpenPage) -> None:
    double = FakeApplication(n_cases=2)
    page = open_page("review", double)
    for _ in range(2):
        press(page, "answer_1")
        press(page, "save")
    assert "All read" in words(page)
    assert "2 of 2" in words(page)
    page.button(key="rv_undo").click().run()
    assert page.session_state["review"].case is not None


def test_a_reader_without_cases_hears_whom_to_ask(open_page: OpenPage) -> None:
    page = open_page("review", FakeApplication())
    page.selectbox(key="w_person").select(5).run()
    assert nothing_failed(page)
    assert "Nothing assigned yet" in words(page)
    assert "Ask the coordinator" in words(page)


def test_a_locked_study_takes_no_judgment(open_page: OpenPage) -> None:
    page = open_page("review", FakeApplication(), study="ward-2025")
    assert "locked and accepts no judgments" in words(page)
    assert not [b for b in page.button if b.key and b.key.startswith("rv_answer")]


def test_a_study_locked_meanwhile_refuses_the_save_and_keeps_the_comment(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    press(page, "answer_1")
    double.fail_with = [ConflictError("The study was locked meanwhile.")]
    press(page, "save")
    assert "locked meanwhile" in words(page)


@pytest.mark.parametrize("text", ["3 1 z n", "ä ö 漢字 🩺", HOSTILE[:1500], "تروبونين", "=HYPERLINK(1)"])
def test_any_comment_is_kept_letter_for_letter(open_page: OpenPage, text: str) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    press(page, "answer_1")
    comment(page).input(text).run()
    press(page, "save")
    assert double.votes["demo", ME, here][-1].comment == text
    assert mine(double)[here] == [1]


def test_a_blinded_page_holds_no_score_rank_or_peer(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    shown = page.session_state["review"].case
    everything = words(page) + json.dumps([f.proto.spec for f in page.get("plotly_chart")])
    for frame in page.dataframe:
        everything += frame.value.to_string()
    for banned in ("score", "rank", "stratum", "peer-comment", "soft label", "support"):
        assert banned not in everything.lower()
    assert not {"score", "scaled_score", "rank", "stratum", "support"} & set(vars(shown))


def test_active_time_counts_no_absence(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashboard.components.review import session

    seconds = iter([0.0, 10.0, 4000.0, 4005.0, 4005.0, 4005.0, 4005.0])
    monkeypatch.setattr(session.time, "monotonic", lambda: next(seconds, 5000.0))
    double = FakeApplication()
    page = open_page("review", double)
    press(page, "answer_1")
    press(page, "save")
    spent = next(values[6] for name, values in double.calls if name == "submit_judgment")
    assert spent <= 10.0 + session.IDLE_SECONDS


def test_undo_takes_up_the_case_that_was_put_aside_last(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    press(page, "later")
    assert case_id(page) != here
    press(page, "undo")
    assert case_id(page) == here
    assert ("demo", ME, here) not in double.later
    press(page, "undo")
    assert "There is nothing to undo" in words(page)


def test_a_key_goes_through_the_certainties(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    here = case_id(page)
    seen = []
    for _ in range(3):
        press(page, "certainty_key")
        seen.append(double.drafts["demo", ME, here].certainty)
    assert seen == [*Certainty, None]


def test_going_back_in_the_browser_shows_the_case_of_the_address(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_seconds = "dashboard.components.review.session.FRESH_SECONDS"
    monkeypatch.setattr(fresh_seconds, 3600.0)
    page = open_page("review", FakeApplication())
    here = case_id(page)
    press(page, "answer_1")
    press(page, "save")
    following = case_id(page)
    page.query_params["case"] = str(here)
    page.run()
    assert case_id(page) == following, "a key pressed at once comes with the address of the case before"
    monkeypatch.setattr(fresh_seconds, 0.0)
    page.query_params["case"] = str(here)
    page.run()
    assert case_id(page) == here
    assert address(page)["case"] == str(here)


def test_a_comment_of_any_length_can_be_pasted_and_its_limit_is_said(open_page: OpenPage) -> None:
    page = open_page("review", FakeApplication())
    assert not comment(page).proto.max_chars
