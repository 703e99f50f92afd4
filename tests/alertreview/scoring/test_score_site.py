"""A scoring run is published whole, can be interrupted and continued, and never runs beside another."""

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application
from alertreview.scoring import publish, splits
from alertreview.scoring import score_site as module
from alertreview.scoring.resume import ScoringRequest, StoredEvidence
from alertreview.scoring.score_site import ScoringOutcome, score_site
from alertreview.settings import Settings, load_settings
from core.cohort.feature_roles import FEATURE_GROUP_WEIGHTS
from core.errors import InvalidInputError, NotFoundError, RefusedError
from core.graph import group_weights
from core.scoring.scores import ScoredTasks
from core.vocabulary import Decision, RunStatus
from db.database import Database
from db.models import TaskResult

REQUEST = ScoringRequest(n_nodes=40, n_graphs=1, seed=5, n_jobs=1)


class Stopped(Exception):  # noqa: N818 - stands for Ctrl+C in the middle of the work
    """The person stops the command."""


@pytest.fixture
def settings(own_home: Path) -> Settings:
    return load_settings(own_home)


@pytest.fixture
def own_database(settings: Settings) -> Database:
    return Database(settings.database_url)


@dataclass(frozen=True)
class Scored:
    """A site with a run that several tests look at and none changes."""

    settings: Settings
    database: Database
    outcome: ScoringOutcome
    evidence: object
    """What the scoring held in memory in the end."""


def scored_once(demo_home: Path, folder: Path, request: ScoringRequest) -> Scored:
    settings = load_settings(Path(shutil.copytree(demo_home, folder / "home")))
    database = Database(settings.database_url)
    kept: list[ScoredTasks] = []
    original = module.score_tasks

    def spy(*arguments: object, **options: object) -> ScoredTasks:
        kept.append(original(*arguments, **options))  # type: ignore[arg-type]
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "score_tasks", spy)
        outcome = score_site(settings, database, request)
    return Scored(settings, database, outcome, kept[0].evidence)


@pytest.fixture(scope="module")
def whole(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Scored:
    """A run with the scorer that is shown first."""
    return scored_once(demo_home, tmp_path_factory.mktemp("whole"), REQUEST)


@pytest.fixture(scope="module")
def several(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Scored:
    """A run with four scorers, one of which was asked for twice."""
    scorers = ("softhad", "day-adjusted", "softhad", "svm", "weighted-knn")
    return scored_once(demo_home, tmp_path_factory.mktemp("several"), replace(REQUEST, scorers=scorers))


def vectors(database: Database, run_id: int) -> dict[int, np.ndarray]:
    with database.read() as uow:
        return dict(uow.runs.vectors(run_id, "scaled_score"))


def test_a_run_holds_the_vectors_of_every_task_and_the_top_of_both_lists(
    settings: Settings, own_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_weights, "N_ROWS", 150)
    learning = replace(REQUEST, learn_weights=True)
    outcome = score_site(settings, own_database, learning)
    with own_database.read() as uow:
        run = uow.runs.get(outcome.run_id)
        summaries = uow.runs.task_results(run.id)
        folds = uow.runs.fold_of_row(run.id)
        top = {
            one: uow.alerts.page(run.id, decision=one, limit=10_000, include_cut_windows=True).rows for one in Decision
        }
    assert run.status is RunStatus.PUBLISHED
    (weights,) = run.parameters["group_weights"]
    assert sum(weights.values()) == pytest.approx(sum(FEATURE_GROUP_WEIGHTS.values()))
    assert module.published_already(settings, own_database, learning) is not None
    assert module.published_already(settings, own_database, REQUEST) is None
    assert run.n_recent == int((folds >= 0).sum())
    assert outcome.n_tasks_scored == sum(summary.reason == "" for summary in summaries)
    scaled = vectors(own_database, run.id)
    for decision, rows in top.items():
        assert len(rows) == outcome.n_alerts[decision]
        position = {row: place for place, row in enumerate(np.flatnonzero(folds >= 0))}
        for row in rows[:20]:
            assert row.scaled_score == pytest.approx(float(scaled[row.task_id][position[row.row_index]]), abs=1e-7)


def test_of_two_jobs_started_at_once_the_later_scores_nothing_twice(
    settings: Settings, own_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found nothing published; the first one ends while the second still reads the import."""
    last_import, published = module.last_import, []

    def read_while_the_other_ends(*given: object) -> object:
        site = last_import(*given)
        if not published:
            published.append(None)
            published[0] = score_site(settings, Database(settings.database_url), REQUEST).run_id
        return site

    monkeypatch.setattr(module, "last_import", read_while_the_other_ends)
    with pytest.raises(RefusedError, match="Another job has just published run"):
        score_site(settings, own_database, REQUEST, again=False)
    with own_database.read() as uow:
        assert uow.runs.latest_published().id == published[0]
    assert score_site(settings, own_database, REQUEST).run_id == published[0] + 1


def test_an_interrupted_run_is_invisible_and_continued_to_the_same_result(
    whole: Scored, settings: Settings, own_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_after_ten(done: int, total: int) -> None:
        if done == 10:
            raise Stopped

    with own_database.read() as uow:
        before = [run.id for run in uow.runs.published()]
    with pytest.raises(Stopped):
        score_site(settings, own_database, REQUEST, stop_after_ten)
    with own_database.read() as uow:
        assert [run.id for run in uow.runs.published()] == before
    kept = list(settings.scoring_checkpoint.rglob("*.npz"))
    assert len(kept) >= 9

    computed: list[int] = []
    original = module.score_tasks

    def spy(*arguments: object, **options: object) -> object:
        computed.append(len(options["store"]))  # type: ignore[arg-type]
        return original(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "score_tasks", spy)
    again = score_site(settings, own_database, REQUEST)
    assert computed == [len(kept)]
    assert not settings.scoring_checkpoint.exists()
    first, second = vectors(whole.database, whole.outcome.run_id), vectors(own_database, again.run_id)
    assert first.keys() == second.keys()
    for task, scores in first.items():
        np.testing.assert_allclose(scores, second[task], rtol=1e-5, atol=1e-6)


def test_other_parameters_do_not_take_over_finished_tasks(settings: Settings, own_database: Database) -> None:
    def stop(done: int, total: int) -> None:
        if done == 5:
            raise Stopped

    with pytest.raises(Stopped):
        score_site(settings, own_database, REQUEST, stop)
    other = ScoringRequest(n_nodes=40, n_graphs=1, seed=6, n_jobs=1)
    n_finished: list[int] = []
    score_site(settings, own_database, other, lambda done, total: n_finished.append(done))
    assert n_finished[0] < 5


def test_a_run_that_fails_while_being_written_leaves_the_published_one_in_place(
    settings: Settings, own_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_database.read() as uow:
        before = uow.runs.latest_published()

    def broken(*_: object, **__: object) -> None:
        raise Stopped

    monkeypatch.setattr(publish, "store_results", broken)
    with pytest.raises(Stopped):
        score_site(settings, own_database, REQUEST)
    with own_database.read() as uow:
        assert uow.runs.latest_published() == before
    monkeypatch.undo()
    assert score_site(settings, own_database, REQUEST).n_tasks_scored > 0


@pytest.mark.checklist("C8")
def test_two_scoring_jobs_at_once_the_second_is_refused(settings: Settings, own_database: Database) -> None:
    with (
        own_database.scoring_job(),
        Database(settings.database_url) as second,
        pytest.raises(RefusedError, match="Another scoring job"),
    ):
        score_site(settings, second, REQUEST)


def test_folds_score_every_instance_once(
    settings: Settings, own_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "N_FOLDS", 2)
    outcome = score_site(settings, own_database, replace(REQUEST, split="folds"))
    with own_database.read() as uow:
        folds = uow.runs.fold_of_row(outcome.run_id)
    assert outcome.n_recent == len(folds)
    assert set(folds) == {0, 1}
    for scores in vectors(own_database, outcome.run_id).values():
        assert np.isfinite(scores).any()


def test_several_scorers_are_stored_side_by_side_and_the_first_is_shown_first(several: Scored) -> None:
    with several.database.read() as uow:
        run = uow.runs.get(several.outcome.run_id)
        alert = uow.alerts.page(run.id, limit=1).rows[0]
        results: list[TaskResult] = [uow.runs.task_result(run.id, alert.task_id, name) for name in ("softhad", "svm")]
    assert run.scorer == "softhad"
    assert set(run.scorers) == {"day-adjusted", "svm", "weighted-knn"}
    assert results[0].scaled_score is not None
    assert results[1].scaled_score is not None
    assert np.isclose(results[0].scaled_score, alert.scaled_score).any()
    assert not np.array_equal(results[0].scaled_score, results[1].scaled_score)


def test_the_outcome_in_lines_names_scorer_split_tasks_time_and_memory(whole: Scored) -> None:
    text = "\n".join(whole.outcome.lines())
    for part in ("scorer shared", "split by time", " labs", " drugs", "omissions", " s and ", "MiB"):
        assert part in text
    one = replace(
        whole.outcome,
        n_recent=1,
        n_tasks_scored=1,
        n_not_asked=1,
        n_alerts=dict.fromkeys(Decision, 1),
        n_tasks_of_kind={},
    )
    assert re.findall(r"\b1 \w+s\b", "\n".join(one.lines())) == []


def test_every_scorer_of_a_run_has_lists_of_its_own(several: Scored) -> None:
    with several.database.read() as uow:
        run = uow.runs.get(several.outcome.run_id)
        folds = uow.runs.fold_of_row(run.id)
        position = {row: place for place, row in enumerate(np.flatnonzero(folds >= 0))}
        for scorer in run.all_scorers:
            scaled = dict(uow.runs.vectors(run.id, "scaled_score", scorer))
            for decision in Decision:
                lists = {"scorer": scorer, "decision": decision, "include_cut_windows": True}
                rows = uow.alerts.page(run.id, limit=10_000, **lists).rows
                assert [row.rank for row in rows] == list(range(1, len(rows) + 1))
                assert len(rows) == run.n_alerts(scorer)[decision] == uow.alerts.count(run.id, **lists)
                scores = [row.scaled_score for row in rows]
                assert scores == sorted(scores, reverse=True)
                assert run.floors(scorer)[decision] == scores[-1]
                assert {row.scorer for row in rows} == {scorer}
                for row in rows[:20]:
                    assert row.scaled_score == float(scaled[row.task_id][position[row.row_index]])
        tops = [
            [(row.row_index, row.task_id) for row in uow.alerts.page(run.id, limit=50, scorer=scorer).rows]
            for scorer in run.all_scorers
        ]
    assert run.all_scorers == ("softhad", "day-adjusted", "svm", "weighted-knn")
    assert tops[0] != tops[1]


def test_an_alert_of_a_further_scorer_opens_with_that_scorer_s_figures(several: Scored) -> None:
    run_id = several.outcome.run_id
    with Application(several.settings, Database(several.settings.database_url)) as application:
        listed = application.worklist.page(WorklistFilters(run_id=run_id, scorer="day-adjusted"), limit=3).rows
        detail = application.worklist.alert(listed[1].alert_id)
        run = application.worklist.run(run_id)
        with pytest.raises(InvalidInputError, match="no scorer 'pair'; it has softhad, day-adjusted, svm"):
            application.worklist.page(WorklistFilters(run_id=run_id, scorer="pair"))
    with several.database.read() as uow:
        task_id = uow.alerts.get(listed[1].alert_id).task_id
        result = uow.runs.task_result(run_id, task_id, "day-adjusted")
    assert result.scaled_histogram is not None
    assert list(detail.scaled_histogram.counts) == result.scaled_histogram["counts"]
    assert (detail.previous_alert_id, detail.next_alert_id) == (listed[0].alert_id, listed[2].alert_id)
    assert run is not None
    assert run.scorers[:2] == ("softhad", "day-adjusted")
    assert "day-adjusted" in run.retrospective_scorers


def test_baselines_are_scorers_of_a_run_like_any_other(several: Scored) -> None:
    outcome = several.outcome
    with several.database.read() as uow:
        for scorer in ("svm", "weighted-knn"):
            task_id, scores = next(iter(uow.runs.vectors(outcome.run_id, "score", scorer)))
            result = uow.runs.task_result(outcome.run_id, task_id, scorer)
            assert result.scaled_score is not None
            scale = result.scaling["0"]
            expected = (scores - scale["low"]) / (scale["high"] - scale["low"])
            np.testing.assert_allclose(result.scaled_score, expected, atol=1e-5)
            assert result.score_histogram is not None
            assert sum(result.score_histogram["counts"]) == outcome.n_past + outcome.n_recent
            assert result.score_histogram["edges"][0] <= scores.min()
    assert "Separate lists: day-adjusted (looks back only), svm, weighted-knn." in list(outcome.lines())


def test_memory_holds_one_task_of_evidence_at_a_time(whole: Scored) -> None:
    assert isinstance(whole.evidence, StoredEvidence)


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01", "01.02.2026"])
def test_a_day_that_is_none_is_named(settings: Settings, own_database: Database, since: str) -> None:
    with pytest.raises(InvalidInputError, match=r"is not a day; write it as 2026-01-31"):
        score_site(settings, own_database, ScoringRequest(split="time", since=since))


def test_a_site_without_records_says_what_to_do(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "empty", create=True)
    with Database(settings.database_url) as database:
        database.upgrade()
        with pytest.raises(NotFoundError, match="alertreview import"):
            score_site(settings, database, REQUEST)
