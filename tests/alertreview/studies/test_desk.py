"""The coordinator's desk on a small demonstration: preview, draft, repeats, training, reports kept and renewed."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.application import Application, open_application
from alertreview.cli.demo import SCORERS
from alertreview.reports.documents import ReportFormat, render_report
from alertreview.studies.models import ANSWER_TEXTS, PRESETS, Rubric, StudyPlan
from core.errors import InvalidInputError, NotFoundError, RefusedError
from core.studies.make_report import blinded_report
from core.studies.report_input import STRATA_BY
from core.vocabulary import Answer, CaseState, Role, StudyStatus

RUBRIC = Rubric("Unusual?", {**ANSWER_TEXTS, Answer.CANNOT_JUDGE: "Cannot"}, "As known at 08:00.")


@pytest.fixture
def site(own_home: Path) -> Iterator[Application]:
    """A demonstration that a test may change."""
    with open_application(own_home) as opened:
        yield opened


def readers(site: Application) -> list[int]:
    return [person.person_id for person in site.site.people() if person.role is Role.REVIEWER]


def everything(site: Application, reader: int) -> list[AlertRow]:
    """Every alert of the last run that a reader meets in the worklist."""
    run = site.worklist.run()
    assert run is not None
    filters = WorklistFilters(run_id=run.run_id, reader=reader, alerts_per_patient_day=1e6, include_cut_windows=True)
    return [row for line in site.worklist.page(filters, limit=100_000).lines for row in line.members]


def judge_all(site: Application, slug: str, reader: int, answer: Answer = Answer.RELEVANT) -> int:
    """Let a reader judge until nothing is left; gives how many."""
    n = 0
    while (case := site.review.next_case(slug, reader)) is not None:
        site.review.submit_judgment(
            slug, reader, case.case_id, answer=answer, version_seen=case.version_seen, form_key=case.form_key
        )
        n += 1
    return n


def test_a_preview_is_what_the_study_then_has_and_stores_nothing(site: Application) -> None:
    plan = StudyPlan(n_cases=12, edges=(0.4, 0.7), seed=5)
    preview = site.study_desk.preview(plan)
    assert len(site.studies.all()) == 1, "looking makes no study"
    assert preview.n_chosen == 12 == sum(stratum.n_chosen for stratum in preview.strata)
    assert preview.n_candidates == sum(preview.candidates.counts) == sum(s.n_population for s in preview.strata)
    who = readers(site)[:3]
    before = {row.alert_id for row in everything(site, who[0])}
    made = site.study_desk.set_up("pilot", "Pilot", plan, RUBRIC, who)
    assert (made.status, made.n_cases, made.question) == (StudyStatus.DRAFT, 12, "Unusual?")
    chance = {stratum.name: stratum.inclusion_probability for stratum in preview.strata}
    for case in site.studies.case_rows("pilot"):
        assert case.inclusion_probability == pytest.approx(chance[case.stratum])
        assert set(case.scores) == set(SCORERS)
    assert {row.alert_id for row in everything(site, who[0])} == before, "a draft hides nothing"
    site.studies.open_study("pilot")
    after = {row.alert_id for row in everything(site, who[0])}
    assert len(before - after) == preview.n_alerts > 0
    assert after < before


def test_half_of_the_cases_may_come_from_the_largest_stratum(site: Application) -> None:
    plan = StudyPlan(n_cases=12, edges=(0.4, 0.7), seed=5, half_in_largest=True)
    strata = site.study_desk.preview(plan).strata
    assert max(strata, key=lambda one: one.n_population).n_chosen == 6


def test_a_plan_before_a_pilot_simulates_the_strata_that_would_be_chosen_from(site: Application) -> None:
    plan = StudyPlan(n_cases=60, edges=(0.4, 0.7), balance_decisions=True)
    strata = site.study_desk.preview(plan).strata
    own, designs = site.study_desk.plan_pilot(plan, 0.8, 0.2, 0.15)
    assert (own.allocation, own.n_cases) == ("as planned", 60)
    # Omissions and commissions of one range of scores are one stratum.
    assert own.by_stratum == tuple(a.n_chosen + b.n_chosen for a, b in zip(strata[::2], strata[1::2], strict=True))
    assert own.half_width is not None
    assert len(designs) == 3
    assert all(plan.half_width is not None and plan.half_width <= own.half_width * 1.5 for plan in designs)
    with pytest.raises(InvalidInputError, match="share of relevant candidates 0 is not above 0"):
        site.study_desk.plan_pilot(plan, 0.8, 0.0, 0.15)


def test_strata_may_lie_over_another_scorer_of_the_run(site: Application) -> None:
    plan = StudyPlan(scorer="logistic", n_cases=12, edges=(0.4, 0.7))
    site.study_desk.set_up("other", "Other", plan, RUBRIC, [])
    assert site.study_desk.paper("other").design["strata_by"] == "logistic"
    assert site.reports.report("other").design[STRATA_BY] == "Logistic regression"
    for case in site.studies.case_rows("other"):
        low = case.scores["logistic"].scaled_score < 0.4
        assert low == case.stratum.startswith("low")
    with pytest.raises(InvalidInputError, match=r"no scorer 'oracle'.*softhad"):
        site.study_desk.preview(StudyPlan(scorer="oracle"))


def test_the_papers_design_is_the_first_preset(site: Application) -> None:
    paper = PRESETS[0]
    assert (paper.preset, paper.n_cases, paper.n_readers) == ("as in the paper", 222, 3)
    assert paper.edges == pytest.approx((1 / 3, 2 / 3))
    assert len(site.study_desk.preview(paper).strata) == 3


def test_hidden_repeats_go_to_their_own_readers_and_count_once(site: Application) -> None:
    team = readers(site)[:3]
    site.study_desk.set_up("twice", "Twice", StudyPlan(n_cases=6, n_repeats=2), RUBRIC, team)
    site.studies.open_study("twice")
    assert [judge_all(site, "twice", reader) for reader in team] == [8, 8, 8]
    assert site.studies.view("twice").case_states[CaseState.MAJORITY] == 6
    report = site.reports.report("twice")
    assert (report.n_cases, report.n_votes) == (6, 18), "a repeat is no vote and no case of the AUC"
    assert [(one.n_pairs, one.n_same) for one in site.study_desk.self_agreement("twice")] == [(2, 2)] * 3
    with pytest.raises(InvalidInputError, match="7 hidden repeats are wanted of 6 cases"):
        site.study_desk.set_up("more", "More", StudyPlan(n_cases=6, n_repeats=7), RUBRIC, team)


def test_nobody_who_still_judges_sees_how_readers_agree_with_themselves(site: Application) -> None:
    team = readers(site)[:3]
    site.study_desk.set_up("twice", "Twice", StudyPlan(n_cases=3, n_repeats=1), RUBRIC, team)
    site.studies.open_study("twice")
    with pytest.raises(RefusedError, match="once your own cases are judged"):
        site.study_desk.self_agreement("twice", team[0])


def test_strata_count_every_case_where_it_stands_and_hide_from_who_still_judges(site: Application) -> None:
    strata, cases = site.study_desk.strata("demo"), site.studies.case_rows("demo")
    where = {CaseState.MAJORITY: 1, CaseState.ADJUDICATED: 1, CaseState.OPEN: 3}
    counted = Counter((case.stratum, where.get(case.state, 2)) for case in cases)
    assert {s.name: (s.n_decided, s.n_undecided, s.n_open) for s in strata} == {
        s.name: (counted[s.name, 1], counted[s.name, 2], counted[s.name, 3]) for s in strata
    }
    assert sum(s.n_cases for s in strata) == len(cases)
    scores = [[c.scores["shared"].scaled_score for c in cases if c.stratum == s.name] for s in strata]
    assert all(min(higher) >= max(lower) for higher, lower in pairwise(scores)), "highest first"
    waiting = next(who for who in readers(site) if site.review.is_blinded("demo", who))
    with pytest.raises(RefusedError, match="once your own cases are judged"):
        site.study_desk.strata("demo", waiting)
    site.study_desk.set_up("none", "None", StudyPlan(n_cases=1), RUBRIC, [])
    assert [(s.n_cases, s.n_open) for s in site.study_desk.strata("none")] == [(1, 1)]


def test_training_tells_the_panels_answer_after_the_own_one_and_reports_nothing(site: Application) -> None:
    reader = readers(site)[0]
    with pytest.raises(RefusedError, match="'demo' is open: its answers would be given away"):
        site.study_desk.set_up_training("train", "Training", "demo", 8, [reader])
    site.studies.lock_study("demo", reason="enough")
    made = site.study_desk.set_up_training("train", "Training", "demo", 8, [reader])
    assert (made.is_calibration, made.n_cases, made.n_slots) == (True, 8, 1)
    site.studies.open_study("train")
    case = site.review.next_case("train", reader)
    assert case is not None
    with pytest.raises(RefusedError, match="first your own judgment"):
        site.review.feedback("train", reader, case.case_id)
    site.review.submit_judgment(
        "train", reader, case.case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key
    )
    found = site.review.feedback("train", reader, case.case_id)
    assert found is not None
    assert found[0] in Answer
    assert "readers answered so" in found[1]
    with pytest.raises(RefusedError, match="for calibration"):
        site.reports.report("train")


def test_the_history_says_who_locked_and_reopened_and_why(site: Application) -> None:
    site.studies.lock_study("demo", reason="all read", actor="person 5")
    site.studies.reopen_study("demo", reason="two cases were wrong", actor="person 5")
    history = site.study_desk.paper("demo").history
    assert history[-2].endswith("study locked by person 5, because: all read")
    assert history[-1].endswith("study reopened by person 5, because: two cases were wrong")


def test_a_report_is_computed_again_only_when_a_judgment_has_come_in(site: Application) -> None:
    first = site.reports.report("demo")
    assert site.reports.report("demo") is first
    reader = readers(site)[-1]
    case = site.review.next_case("demo", reader)
    assert case is not None
    site.review.submit_judgment(
        "demo", reader, case.case_id, answer=Answer.RELEVANT, version_seen=case.version_seen, form_key=case.form_key
    )
    again = site.reports.report("demo")
    assert (again is not first, again.n_votes) == (True, first.n_votes + 1)
    assert site.reports.report("demo", reader).hidden, "what is kept is the whole report; hiding comes after it"
    site.review.undo("demo", reader, case.case_id, version_seen=1, form_key="back")
    assert site.reports.report("demo").n_votes == first.n_votes
    site.studies.lock_study("demo")
    assert site.reports.report("demo").locked


def test_a_hidden_report_prints_no_zero_for_what_it_hides(site: Application) -> None:
    hidden = blinded_report(site.reports.report("demo"))
    page = render_report(hidden, ReportFormat.HTML).decode()
    assert "hidden until you have finished" in page
    assert ">0</td>" not in page
    assert ">0</text>" not in page


def test_a_run_compared_with_itself_has_not_moved(site: Application) -> None:
    run = site.worklist.run()
    assert run is not None
    for one in site.run_comparisons.compare(run.run_id, run.run_id, 40):
        assert (one.entered, one.left, one.moved) == ((), (), ())
        assert one.n_common == one.n_before == one.n_after == 40
        assert one.rank_correlation == pytest.approx(1.0)
    with pytest.raises(NotFoundError, match="no scoring run 99"):
        site.run_comparisons.compare(run.run_id, 99)
