"""The demonstration: honest about being simulated, finds what was planted, can be built twice or after a stop."""

import re
import shutil
from pathlib import Path

from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application, open_application
from alertreview.cli.demo import N_LEFT_OPEN, READERS, STUDY, build_demo, demo_home
from alertreview.settings import default_home, load_settings
from core.vocabulary import Answer, CaseState, Role, StudyStatus
from tests.support.demo_site import SMALL


def test_everything_says_that_it_is_simulated(application: Application) -> None:
    run = application.worklist.run()
    assert run is not None
    assert application.site.simulated
    assert run.simulated
    assert application.studies.view(STUDY).simulated
    assert application.reports.report(STUDY).simulated
    assert {person.name for person in application.site.people() if person.simulated} == set(READERS)
    assert all("(simulated)" in name for name in READERS)


def test_its_records_raise_no_doubt(application: Application) -> None:
    assert application.catalogue.open_checks() == ()


def test_the_study_is_open_with_cases_that_wait_for_the_visitor(application: Application) -> None:
    study = application.studies.view(STUDY)
    assert study.status is StudyStatus.OPEN
    assert study.n_cases == SMALL.n_cases
    assert study.n_complete == SMALL.n_cases - SMALL.n_waiting
    visitor = next(person for person in application.site.people() if not person.simulated)
    assert application.review.queue(STUDY, visitor.person_id).n_left == SMALL.n_waiting


def test_the_simulated_readers_disagree_now_and_then(application: Application) -> None:
    answers: dict[int, set[Answer]] = {}
    for vote in application.studies.votes(STUDY):
        answers.setdefault(vote.case_id, set()).add(vote.answer)
    assert 0 < sum(len(given) > 1 for given in answers.values()) < len(answers)


def test_planted_decisions_are_found_better_than_by_rarity_alone(
    own_home: Path,
) -> None:
    lines = "\n".join(build_demo(load_settings(own_home), SMALL))
    found = re.search(r"scaled score (0\.\d+), of the rarity of the decision in its task alone (0\.\d+)", lines)
    assert found
    by_score, by_rarity = map(float, found.groups())
    assert by_score > 0.9
    assert by_score > by_rarity + 0.05


def test_building_again_adds_nothing(own_home: Path) -> None:
    with open_application(own_home) as own:
        before = (own.worklist.runs(), own.studies.all(), own.studies.votes(STUDY))
    list(build_demo(load_settings(own_home), SMALL))
    with open_application(own_home) as own:
        assert (own.worklist.runs(), own.studies.all(), own.studies.votes(STUDY)) == before


def test_a_build_that_was_stopped_before_the_votes_goes_on(built_demo: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(built_demo / "before-the-votes", tmp_path / "home"))
    with open_application(home) as own:
        before = own.worklist.runs()
        assert len(before) == 1
        assert own.studies.view(STUDY).status is StudyStatus.OPEN
        assert own.studies.votes(STUDY) == ()
    list(build_demo(load_settings(home), SMALL))
    with open_application(home) as own:
        assert own.studies.view(STUDY).n_complete == SMALL.n_cases - SMALL.n_waiting
        assert own.worklist.runs() == before, "nothing is scored a second time"


def test_the_demonstration_never_lands_in_a_real_home() -> None:
    assert demo_home() != default_home()
    assert demo_home().parent == default_home().parent


def test_an_adjudicator_may_settle_what_the_votes_leave_open_and_the_lens_has_another_list(
    application: Application,
) -> None:
    person = next(one for one in application.site.people() if one.role is Role.ADJUDICATOR)
    waiting = application.adjudication.disagreements(STUDY, person.person_id)
    assert len(waiting) >= N_LEFT_OPEN, "the page has something to show, in a small demonstration too"
    left_open = (CaseState.DISPUTED, CaseState.UNDETERMINED)
    assert list(waiting) == [case.case_id for case in application.studies.case_rows(STUDY) if case.state in left_open]
    run = application.worklist.run()
    assert run is not None
    assert "day-adjusted" in run.retrospective_scorers
    independent, adjusted = (
        application.worklist.page(WorklistFilters(scorer=one)).rows for one in ("", "day-adjusted")
    )
    assert adjusted
    assert [row.task_key for row in independent] != [row.task_key for row in adjusted]
