"""Curves of a run over the small demonstration: at the run's own setting and seed they are the run itself."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alertreview.application import open_application
from alertreview.cli.main import main
from alertreview.reports import sensitivity
from alertreview.reports.sensitivity import compute_sensitivity
from core.errors import NotFoundError, RefusedError
from core.scoring.sensitivity import Varied
from core.vocabulary import Decision


def test_curves_are_stored_beside_the_run_and_read_back(own_home: Path) -> None:
    with open_application(own_home) as own:
        run = own.worklist.run()
        assert run is not None
        assert own.sensitivity.of_run(run.run_id) is None
        own.studies.lock_study("demo", reason="the panel is done")
        done: list[tuple[int, int]] = []
        number, curves = compute_sensitivity(
            own.settings, own.database, sizes=(20, 200), regularizers=(0.0, 10.0), progress=lambda *at: done.append(at)
        )
        stored = own.sensitivity.of_run(run.run_id)
        assert stored is not None
        assert (number, stored.curves) == (run.run_id, curves)
        assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]
        assert stored.computed_at.tzinfo is not None
        assert {(point.scorer, point.varied, point.setting) for point in curves.points} == {
            (scorer, varied, setting)
            for scorer in ("softhad", "softhad-paper")
            for varied, settings in ((Varied.GRAPH_SIZE, (20.0, 200.0)), (Varied.REGULARIZATION, (0.0, 10.0)))
            for setting in settings
        }
        assert all(0.0 <= point.shared <= 1.0 for point in curves.points)
        assert all(point.auc.value is not None and point.auc.n > 10 for point in curves.points)
        of = {(point.scorer, point.varied, point.setting): point for point in curves.points}
        # The default scorer's own setting stands on both curves.
        assert of["softhad", Varied.GRAPH_SIZE, 200.0].shared == of["softhad", Varied.REGULARIZATION, 0.0].shared
        assert of["softhad", Varied.GRAPH_SIZE, 20.0].shared < of["softhad", Varied.GRAPH_SIZE, 200.0].shared
        with pytest.raises(NotFoundError, match="no published scoring run 99"):
            own.sensitivity.of_run(99)


def test_with_the_runs_own_seed_and_setting_the_run_is_found_again(own_home: Path) -> None:
    with open_application(own_home) as own:
        with own.database.read() as uow:
            varied = sensitivity._open(own.settings, uow, None)
            stored = {
                (scorer, task_id): vector
                for scorer in varied.scorers
                for task_id, vector in uow.runs.vectors(varied.run.id, "scaled_score", scorer)
            }
        same = replace(varied, run=replace(varied.run, seed=varied.run.seed - 1))
        scaled = sensitivity._scaled_scores(same, varied.parameters, None)
        recent = np.flatnonzero(varied.folds >= 0)
        column = {task.id: task.column_index for task in varied.tasks}
        for (scorer, task_id), vector in stored.items():
            np.testing.assert_allclose(scaled[scorer][recent, column[task_id]], vector, atol=1e-6)
        for scorer in varied.scorers:
            assert sorted(sensitivity._top(varied, scaled[scorer])) == sorted(varied.tops[scorer])
            for decision in Decision:
                assert sum(one[2] is decision for one in varied.tops[scorer]) == sensitivity.N_TOP


def test_what_cannot_be_varied_says_what_to_do(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_application(own_home) as own:
        with pytest.raises(NotFoundError, match="no published scoring run 99"):
            compute_sensitivity(own.settings, own.database, 99)
        with own.database.read() as uow:
            run = uow.runs.latest_published()
        assert run is not None
        for changed, words in (
            (replace(run, base_run_id=7), "Compute the curves of run 7"),
            (replace(run, scorer="logistic", scorers={}), "no scorer with a graph of a size.*--scorer softhad"),
        ):
            with own.database.read() as uow, pytest.MonkeyPatch.context() as patch:
                patch.setattr(sensitivity, "find_run", lambda *_: changed)  # noqa: B023 - called at once
                with pytest.raises(RefusedError, match=words):
                    sensitivity._open(own.settings, uow, None)
    assert main(["sensitivity", "--run", "99", "--home", str(own_home)]) != 0
    assert "no published scoring run 99" in capsys.readouterr().err
