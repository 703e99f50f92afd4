"""The coordinator's pages over doubles: set-up, acts on a study, runs compared, feedback of a training study."""

import re
from dataclasses import replace

import pytest

from alertreview.review.adjudication import LetteredVote
from alertreview.rights import Actor
from core.errors import ConflictError
from core.statistics.consensus import case_state
from core.vocabulary import Answer, CaseState, Role
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.review import FakeReview
from tests.dashboard.doubles.sign_in import FakeSessions
from tests.dashboard.doubles.studies import FakeAdjudication, FakeStudies


def test_a_draft_is_made_from_what_stands_on_the_page(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("study_setup", double)
    assert nothing_failed(page)
    assert "222 cases of 60 patients" in words(page)
    page.text_input(key="su_title").set_value("ICU panel, spring").run()
    page.multiselect(key="su_readers").set_value([2, 3, 4]).run()
    page.button(key="su_make").click().run()
    ((name, (slug, title, plan, rubric, readers)),) = double.study_desk.done
    assert (name, slug, title, readers) == ("set_up", "icu-panel-spring", "ICU panel, spring", (2, 3, 4))
    assert (plan.n_cases, plan.n_readers, plan.preset) == (222, 3, "as in the paper")
    assert list(rubric.answer_texts) == list(Answer)


@pytest.mark.parametrize("is_reader", [True, False])
def test_only_readers_of_a_study_are_led_to_its_cases(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, is_reader: bool
) -> None:
    queue = FakeReview.queue
    monkeypatch.setattr(FakeReview, "queue", lambda *given: replace(queue(*given), is_reader=is_reader))
    page = open_page("studies", FakeApplication())
    assert nothing_failed(page)
    assert ("st_review" in {button.key for button in page.button}) is is_reader


def test_the_page_says_how_many_alerts_are_hidden_from_whom(open_page: OpenPage) -> None:
    page = open_page("study_setup", double := FakeApplication())
    assert "it hides 31 of the 62 alerts of run 2 from its readers. A case" in words(page)
    page.multiselect(key="su_readers").set_value([2, 3, 4]).run()
    assert "it hides 31 of the 62 alerts of run 2 from its 3 readers" in words(page)
    page.segmented_control(key="su_kind").set_value("Open panel").run()
    assert "it hides" not in words(page), "an open panel shows its alerts"
    assert double.study_desk.done == []


def test_half_of_the_cases_may_come_from_the_largest_stratum(open_page: OpenPage) -> None:
    page = open_page("study_setup", double := FakeApplication())
    page.selectbox(key="su_preset").set_value("own choice").run()
    page.toggle(key="su_half").set_value(True).run()
    page.text_input(key="su_title").set_value("Half").run()
    page.button(key="su_make").click().run()
    ((_, (_, _, plan, _, _)),) = double.study_desk.done
    assert plan.half_in_largest


def test_borders_that_do_not_rise_are_a_sentence_and_no_study_can_be_made(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("study_setup", double)
    page.selectbox(key="su_preset").set_value("own choice").run()
    page.text_input(key="su_edges").set_value("0.7, 0.3").run()
    assert "must rise" in words(page)
    assert page.button(key="su_make").disabled
    assert double.study_desk.done == []


def test_the_width_to_expect_is_said_before_anybody_judged(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("study_setup", double)
    page.number_input(key="su_relevant").set_value(2.5).run()
    page.button(key="su_simulate").click().run()
    assert nothing_failed(page)
    assert double.study_desk.done == [("plan_pilot", (222, 0.75, 0.025, 0.1))]
    rows = page.dataframe[-1].value
    assert rows["Cases are divided"].tolist() == ["as planned", "Neyman's, by size and spread"]
    assert rows["Interval, plus or minus"].tolist() == [0.123, 0.1]
    assert "no relevant case" not in words(page)
    page.number_input(key="su_relevant").set_value(0.5).run()
    page.button(key="su_simulate").click().run()
    assert "most studies would see no relevant case" in words(page)


def test_a_study_is_locked_with_its_reason_and_reopened_with_one(open_page: OpenPage) -> None:
    double = FakeApplication()
    for slug, key, act in (("demo", "sa_lock", "lock_study"), ("ward-2025", "sa_reopen", "reopen_study")):
        page = open_page("studies", double, study=slug)
        page.text_input(key=f"{key}_reason_{slug}").set_value("all is read")
        next(one for one in page.button if one.label in {"Lock the study", "Reopen the study"}).click().run()
        assert double.studies.done[-1] == (act, (slug, "all is read"))


def test_locking_says_what_is_lost_and_asks_why(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("studies", double, study="demo")
    study = double.studies.view("demo")
    n_open = study.n_cases - study.n_complete
    assert n_open
    assert f"{n_open} of {study.n_cases} cases lack answers" in words(page)
    next(one for one in page.button if one.label == "Lock the study").click().run()
    assert "Say why you lock the study now" in words(page)
    assert double.studies.done == []


def test_undecided_cases_are_explained_as_they_are_counted(open_page: OpenPage) -> None:
    page = open_page("studies", FakeApplication(), study="demo")
    names = [tile.label.lower() for tile in page.metric][2:4]
    assert names == [case_state([3, 3, 1, 1], 4), case_state([3, 1, 0], 3)]
    explained = re.findall("as many votes for as against, 2 or more each|too few votes to decide", words(page))
    assert len(explained) == 2
    assert explained[0].startswith("as many")


def test_coordinators_see_done_of_assigned_with_pace_and_the_way_on(open_page: OpenPage) -> None:
    page = open_page("studies", double := FakeApplication(), study="demo")
    assert nothing_failed(page)
    shown = page.dataframe[0].value.set_index("Reader")
    for reader in double.studies.progress("demo").readers:
        queue = double.review.queue("demo", reader.person_id)
        line = shown.loc[reader.name]
        assert line["Cases"] == f"{queue.n_submitted} of {queue.n_mine}"
        assert line["Last answer"] == ("20 Nov 09:00" if queue.n_submitted else "none yet")
    assert {"Per day", "Days to go"} <= set(shown.columns)
    ways = {"demo": {"Review", "Report", "Export"}, "ward-2025": {"Report", "Export"}}
    for slug, wanted in ways.items():
        labels = {one.label for one in open_page("studies", double, study=slug).button}
        assert labels & {"Review", "Report", "Export"} == wanted


def test_coordinators_alone_see_judgments_over_time(open_page: OpenPage) -> None:
    for role, is_shown in ((Role.COORDINATOR, True), (Role.REVIEWER, False)):
        double = FakeApplication()
        double.sessions = FakeSessions(Actor(person_id=1, name="Ada", role=role, session_id=1))
        page = open_page("studies", double, study="demo")
        assert nothing_failed(page)
        for what in ("Judgments over time", "Cases by stratum of score", "Median time per case"):
            assert (what in words(page)) is is_shown


def test_times_and_strata_are_shown_of_no_case_of_one_and_of_many(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = FakeApplication()
    progress = double.studies.progress("demo")
    for seconds, tile in (
        ((), "Median time per case –"),
        ((112.4,), "Median time per case 1 min 52 s"),
        ((30.0, 60.0, 90.0, 4000.0, 100.0), "Median time per case 1 min 30 s"),
    ):
        first, *others = (replace(one, seconds=(), per_day=None) for one in progress.readers)
        shown = replace(progress, readers=(replace(first, seconds=seconds), *others))
        monkeypatch.setattr(FakeStudies, "progress", lambda _, __, shown=shown: shown)
        page = open_page("studies", double, study="demo")
        assert tile in words(page)
        table = next(one.value for one in page.dataframe if "Reader" in one.value)
        assert ("Median time" in table) is bool(seconds)
    assert "middle half 1 min 0 s to 1 min 40 s" in words(page)
    strata = next(one.value for one in page.dataframe if "Stratum" in one.value)
    study = double.studies.view("demo")
    assert strata[["Cases", "Open"]].sum().tolist() == [study.n_cases, study.case_states[CaseState.OPEN]]


def test_strata_are_hidden_from_a_coordinator_who_still_reads(open_page: OpenPage) -> None:
    double = FakeApplication()
    reader = next(one for one in double.site.people() if double.review.is_blinded("demo", one.person_id))
    double.sessions = FakeSessions(Actor(person_id=reader.person_id, name="Ada", role=Role.COORDINATOR, session_id=1))
    page = open_page("studies", double, study="demo")
    assert "Strata are shown once your own cases are judged" in words(page)
    assert not any("Stratum" in one.value for one in page.dataframe)


def test_a_study_that_takes_no_answers_forecasts_nothing(open_page: OpenPage) -> None:
    shown = open_page("studies", FakeApplication(), study="ward-2025").dataframe[0].value
    assert "Last answer" in shown
    assert "Days to go" not in shown


def test_runs_are_laid_side_by_side(open_page: OpenPage) -> None:
    page = open_page("runs", FakeApplication())
    assert nothing_failed(page)
    assert "99 of 100 stayed, 1 entered, 0 left; rank correlation of those that stayed 0.50" in words(page)
    assert "rank correlation of those that stayed not computable" in words(page)


def test_a_training_study_answers_after_the_readers_own_answer_and_a_study_that_counts_never(
    open_page: OpenPage,
) -> None:
    for training in (True, False):
        page = open_page("review", double := FakeApplication(training=training))
        page.button(key=next(b.key for b in page.button if str(b.key).startswith("rv_answer_1"))).click().run()
        page.button(key=next(b.key for b in page.button if str(b.key).startswith("rv_save_"))).click().run()
        assert ("2 of 3 readers answered so" in words(page)) is training
        assert any(votes[-1].answer is Answer.USUAL for key, votes in double.votes.items() if key[1] == 1)


def test_an_adjudicator_sees_letters_and_settles_one_case_after_the_other(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("adjudication", double, study="demo")
    assert nothing_failed(page)
    text = words(page)
    assert "1 of 2 cases waiting for you" in text
    assert "in the 24 h after 08:00 on 27 Nov, day 4 of stay" in text
    assert "71 y, female" in text
    assert "Medical ICU" in text
    assert "**A** Usual" in text
    assert "**C** Cannot judge" in text
    assert not any(name in text for name in ("Reader 1", "Reader 2", "Reader 3"))
    page.button(key="adj_save_1").click().run()
    assert "No answer is chosen" in words(page)
    assert double.adjudication.settled == {}, "nothing is preselected"
    page.button(key="adj_answer_3_1").click().run()
    page.text_input(key="adj_reason_1").set_value("clear from the trend").run()
    page.button(key="adj_save_1").click().run()
    assert double.adjudication.settled[1][:2] == (Answer.RELEVANT, "clear from the trend")
    assert [one.value for one in page.success] == ["Saved: Unusual and relevant."]
    assert "1 of 1 case" in words(page)


def test_an_adjudicator_reads_the_whole_of_a_long_comment_and_of_a_tie(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = FakeAdjudication.case
    letters = "AB"
    votes = tuple(
        LetteredVote(letter, answer, None, "word " * 3_990 + letter)
        for letter, answer in zip(letters, (Answer.USUAL, Answer.RELEVANT), strict=True)
    )
    monkeypatch.setattr(FakeAdjudication, "case", lambda *given: replace(whole(*given), votes=votes))
    page = open_page("adjudication", FakeApplication(), study="demo")
    assert nothing_failed(page)
    for letter in letters:
        assert f"word {letter}]" in words(page), "cut short"


def test_a_failed_adjudication_keeps_choice_and_reason(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.adjudication.fail_with.append(ConflictError("Case 1 was adjudicated meanwhile."))
    page = open_page("adjudication", double, study="demo")
    page.button(key="adj_answer_1_1").click().run()
    page.text_input(key="adj_reason_1").set_value("kept").run()
    page.button(key="adj_save_1").click().run()
    assert "adjudicated meanwhile" in words(page)
    assert page.text_input(key="adj_reason_1").value == "kept"
    page.button(key="adj_save_1").click().run()
    assert double.adjudication.settled[1][:2] == (Answer.USUAL, "kept")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RESEARCHER, Role.ADMINISTRATOR])
def test_whoever_sees_no_other_readers_is_not_told_that_there_are_none(open_page: OpenPage, role: Role) -> None:
    double = FakeApplication()
    double.sessions = FakeSessions(Actor(person_id=6, name="Ada", role=role, session_id=1))
    shown = words(open_page("studies", double))
    assert "No reader has a case" not in shown
    assert "You have no case in this study. Only coordinators see all readers." in shown
