"""The medical set-up on a small simulated hospital: what methods are given, what curves and histograms are made of."""

import numpy as np
import pytest

from alertreview.reports.figures import settings_curves
from alertreview.reports.plot import draw_svg
from alertreview.reproduce import sensitivity
from alertreview.reproduce.medical import MedicalStudy, TaskData, neighbour_scores, set_up, soft_labels, task_data
from alertreview.reproduce.paper import quiet_graphs
from alertreview.reproduce.scaling import TaskRange, marked_histogram, task_ranges, turned_pairs
from alertreview.reproduce.sensitivity import one_run, overlap
from alertreview.reproduce.synthetic import top_panels
from core.baselines import WeightedNeighbours
from core.graph.similarity import knn_similarity
from core.softhad import solve_soft_labels
from core.statistics.estimate import Estimate


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> MedicalStudy:
    with quiet_graphs():
        found = set_up(tmp_path_factory.mktemp("hospital"), 50, seed=3, n_cases=60)
    # A few tasks are enough to say what is done with each.
    kept = np.flatnonzero(found.case_task < 4)
    return MedicalStudy(
        found.prepared,
        found.tasks[:4],
        found.names[:4],
        found.case_row[kept],
        found.case_task[kept],
        found.label[kept],
        found.planted[:, :4],
    )


@pytest.fixture(scope="module")
def data(study: MedicalStudy) -> TaskData:
    return task_data(study.prepared, study.tasks[0])


def test_past_and_recent_share_no_patient_and_cases_are_recent(study: MedicalStudy) -> None:
    n_past = study.prepared.n_past
    assert not set(study.prepared.groups[:n_past]) & set(study.prepared.groups[n_past:])
    assert study.case_row.max() < len(study.planted) == len(study.prepared.groups) - n_past
    assert set(np.unique(study.label[~np.isnan(study.label)])) <= {0.0, 1.0}


def test_nodes_keep_the_soft_labels_of_their_graph(data: TaskData) -> None:
    nodes = data.nodes(60, 1, 0, 0)
    graph = knn_similarity(data.features[nodes.rows], n_neighbors=20)
    expected = solve_soft_labels(
        graph, data.y[nodes.rows], label_weight=1.0, regularization=0.5, multiplicities=nodes.multiplicities
    )
    found = soft_labels(data, nodes, 0.5, n_neighbors=20)
    np.testing.assert_allclose(found[nodes.rows], expected, atol=1e-5)
    assert (np.abs(found) <= 1).all()


def test_labels_trusted_without_limit_are_the_weighted_vote_of_the_neighbours(data: TaskData) -> None:
    nodes = data.nodes(60, 1, 0, 0)
    vote = WeightedNeighbours(20, multiplicities=nodes.multiplicities)
    vote.fit(data.features[nodes.rows], data.y[nodes.rows])
    expected = vote.score_samples(data.features, data.y)
    np.testing.assert_allclose(neighbour_scores(data, nodes, n_neighbors=20), expected, atol=1e-3)


def test_scaled_scores_of_the_past_range_from_0_to_1(data: TaskData) -> None:
    scaled = data.scaled(np.arange(len(data.y), dtype=float))
    assert (scaled[0], scaled[data.n_past - 1]) == (0.0, 1.0)
    assert scaled[-1] > 1


def test_a_run_measures_every_method_and_setting_and_repeats_itself(
    study: MedicalStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensitivity, "SIZES", (50, 200))
    monkeypatch.setattr(sensitivity, "REGULARIZERS", (0.1, 1.0))
    with quiet_graphs():
        rows = one_run(study, 1, 0)
        again = one_run(study, 1, 0)
    assert rows == again
    settings = {(row["method"], row["setting"], row["scaled"]) for row in rows}
    assert len(settings) == len(rows) == 2 * (2 + 2 + 2 + 2) + 1
    assert all(0 <= row["planted_auc"] <= 1 and len(row["top"]) == 50 for row in rows)
    # With 200 nodes and gamma_g = 1 both curves show the same scores.
    of = {(row["method"], row["setting"], row["scaled"]): row["auc"] for row in rows}
    assert of["SoftHAD by size", 200, True] == of["SoftHAD", 1.0, True]


def test_overlap_counts_what_each_pair_of_runs_shares() -> None:
    assert overlap([[1, 2, 3], [2, 3, 4], [9, 8, 3]]) == [2.0, 1.0, 1.0]


def test_the_clearest_pair_turned_round_by_scaling_comes_first() -> None:
    recent = np.array([0.2, 0.5])
    ranges = [
        TaskRange("wide", recent, 0.1, 0.9, 0.6),
        TaskRange("narrow", recent, 0.25, 0.61, 0.55),
        TaskRange("narrower", recent, 0.40, 0.46, 0.45),
        TaskRange("low", recent, 0.1, 0.9, 0.2),
    ]
    pairs = turned_pairs(ranges)
    assert {(first, second) for _, first, second in pairs} == {(0, 1), (0, 2)}
    assert pairs[0][1:] == (0, 2)
    assert pairs[0][0] == pytest.approx(min(0.6 - 0.45, 0.05 / 0.06 - 0.625))


def test_the_most_unusual_omission_is_marked(study: MedicalStudy) -> None:
    for task, found in zip(study.tasks, task_ranges(study, 1, 0), strict=True):
        data = task_data(study.prepared, task)
        omitted = data.y[data.n_past :] < 0
        assert found.marked == found.recent[omitted].max()
        assert 0 <= found.low < found.high <= 1


def test_figures_say_in_words_what_they_show() -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.5]])
    tops = {"true score": np.array([0, 1]), "a & b": np.array([1, 2])}
    drawing = draw_svg(top_panels(X, np.array([1.0, -1.0, 1.0]), tops, "D3"))
    assert 'aria-label="D3: the 2 most unusual points' in drawing
    assert "a &amp; b shares 1" in drawing
    curves = settings_curves(["1", "2"], {"SoftHAD": [Estimate(0.7, 0.69, 0.71), Estimate(0.8)]}, "nodes", "AUC")
    assert "SoftHAD: 0.70 (0.69–0.71) at 1; 0.80 at 2." in curves.alt
    histogram = marked_histogram(np.array([0.1, 0.9]), 0.61, "Task", "soft label")
    assert "the arrow points to 0.61" in draw_svg(histogram)
