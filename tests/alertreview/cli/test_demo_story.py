"""The report of the demonstration tells the truth that its simulation knows."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from alertreview.application import Application
from alertreview.cli.demo import SEED, STUDY, DemoSize
from benchmarks.story import HALF_WIDTH, Judged, Told, judged, study, told, true_auc
from core.scoring.scorers import SHARED
from core.studies.make_report import study_report
from core.studies.next_study import plan_next
from core.studies.report import StudyReport
from tests.support import installed
from tests.support.built_once import shared_folder
from tests.support.demo_site import SMALL


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """All candidates of the demonstration that the installed program has built."""
    built = installed.demonstration(shared_folder(tmp_path_factory))
    return judged(Path(shutil.copytree(built, tmp_path_factory.mktemp("shipped") / "home")))


@pytest.fixture(scope="module")
def report(shipped: Judged) -> StudyReport:
    """The report of the shipped seed."""
    return study_report(study(shipped, SEED))


@pytest.fixture(scope="module")
def found(shipped: Judged, report: StudyReport) -> Told:
    """That report against the truth of all candidates."""
    return told(report, shipped, true_auc(shipped))


@pytest.mark.parametrize("what", ["auc_holds", "rate_holds", "ceiling_is_above", "kappa_is_usual", "nothing_withheld"])
def test_the_report_of_the_shipped_seed_tells_one_story(found: Told, what: str) -> None:
    assert getattr(found, what), found


def test_the_study_is_as_large_as_the_planner_asks_of_its_design(report: StudyReport) -> None:
    plans = {plan.allocation: plan for plan in plan_next(report, HALF_WIDTH)}
    plan = plans["half of the cases in the largest stratum"]
    assert plan.n_cases == pytest.approx(DemoSize.n_cases, rel=0.2)
    assert plan.n_cases < plans["the same number in every stratum"].n_cases


def test_the_panel_finds_some_of_what_is_usual_relevant_too(shipped: Judged) -> None:
    label = shipped.label
    usual = shipped.score < np.quantile(shipped.score, 0.9)
    assert 0.02 < np.nanmean(label) < 0.08
    assert 0.005 < np.nanmean(label[usual]) < 0.05
    assert 0.65 < true_auc(shipped) < 0.9


def test_the_panel_of_the_story_is_that_of_the_study(demo_home: Path, application: Application) -> None:
    drawn = study(judged(demo_home), SEED, SMALL.n_cases)
    assert application.worklist.run().scorer == SHARED.key  # type: ignore[union-attr]
    shown = sorted((case.task_key, case.stratum) for case in application.studies.case_rows(STUDY))
    assert sorted(zip(drawn.cases["task_key"], drawn.cases["stratum"], strict=True)) == shown
