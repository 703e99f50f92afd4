"""Folds of a task are joined row by row; what a fold could not score is a gap, not a number."""

import numpy as np
import pytest

from alertreview.scoring.publish import N_BINS, assemble_task
from core.kinds import Kind
from core.scoring.parameters import ScoringParameters
from core.scoring.scores import ScoredTasks, TaskScores
from db.models import Task

TASK = Task(
    id=4, snapshot_id=1, column_index=0, task_key="LAB_ORDER/K", name="Potassium", kind=Kind.LAB_ORDER, order_group=""
)


class Fold(ScoredTasks):
    """A fold with ready scores."""

    def __init__(self, scores: list[float] | None, past: list[float], n_positive: int = 7) -> None:
        object.__setattr__(self, "n_positive", n_positive)
        object.__setattr__(self, "ready", scores)
        object.__setattr__(self, "past", past)
        object.__setattr__(self, "evidence", {} if scores is None else {0: {}})
        object.__setattr__(self, "not_scored", {0: "Task 'Potassium' has 3 positive past instances."})
        object.__setattr__(self, "parameters", ScoringParameters())

    def scores(self, task: int, scorer: str) -> TaskScores:
        recent = np.array(self.ready, dtype=np.float32)
        past = np.array(self.past, dtype=np.float32)
        return TaskScores(
            score=recent,
            scaled_score=recent / 2,
            soft_label=-recent,
            support=recent * 0 + 1,
            past_score=past,
            past_scaled_score=past / 2,
            feature_indices=np.array([2, 1], dtype=np.int32),
            feature_weights=np.array([0.5, 0.25], dtype=np.float32),
            n_past_positive=self.n_positive,
            n_past=len(past),
            scale={"slope": 1.0},
        )


def test_folds_are_joined_in_row_order_and_counted_once() -> None:
    folds = np.array([0, 1, 0, 1], dtype=np.int16)
    result = assemble_task([Fold([0.1, 0.3], [0.9]), Fold([0.2, 0.4], [0.9, 0.9])], folds, TASK, "softhad")
    assert result.score is not None
    assert result.score_histogram is not None
    assert result.score.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert sum(result.score_histogram["counts"]) == 4
    assert result.n_past == 2
    assert result.reason == ""


def test_the_share_of_a_task_is_that_of_all_its_instances_and_of_no_pair_of_folds() -> None:
    # Each of four instances is past twice; one of them is a decision.
    folds = np.array([0, 0, 1, 2], dtype=np.int16)
    parts = [Fold([0.1, 0.3], [0.5] * 2, 1), Fold([0.2], [0.5] * 3, 1), Fold([0.4], [0.5] * 3, 0)]
    result = assemble_task(parts, folds, TASK, "softhad")
    assert (result.n_past, result.n_past_positive) == (3, 1)
    parts = [Fold([0.1], [0.5] * 900, 90), Fold([0.2], [0.5] * 100, 50), Fold([0.3], [0.5] * 900, 90)]
    result = assemble_task(parts, np.array([0, 1, 2], dtype=np.int16), TASK, "softhad")
    assert result.n_past_positive / result.n_past == pytest.approx(230 / 1900, abs=0.001), "not 90 of 900, nor 50"


def test_with_one_fold_the_histogram_counts_past_and_recent() -> None:
    folds = np.array([-1, 0, -1], dtype=np.int16)
    result = assemble_task([Fold([1.5], [0.2, 1.9])], folds, TASK, "softhad-paper")
    assert result.score_histogram is not None
    assert result.scaled_histogram is not None
    assert result.score_histogram["edges"][-1] == 2.0
    assert result.scaled_histogram["edges"][-1] == 1.0
    assert len(result.score_histogram["counts"]) == N_BINS
    assert sum(result.score_histogram["counts"]) == sum(result.scaled_histogram["counts"]) == 3


def test_a_fold_that_could_not_score_leaves_gaps() -> None:
    folds = np.array([0, 1], dtype=np.int16)
    result = assemble_task([Fold([0.1], [0.5]), Fold(None, [])], folds, TASK, "softhad")
    assert result.score is not None
    assert result.score_histogram is not None
    assert np.isnan(result.score).tolist() == [False, True]
    assert result.diagnostics == {"folds_left_out": 1}
    assert sum(result.score_histogram["counts"]) == 1


def test_a_task_that_no_fold_could_score_carries_its_reason() -> None:
    result = assemble_task([Fold(None, [])], np.array([0], dtype=np.int16), TASK, "softhad")
    assert result.reason == "Task 'Potassium' has 3 positive past instances."
    assert result.score is None
