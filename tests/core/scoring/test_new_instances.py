"""New instances against a stored past: the scores of a whole run with the same past, whoever else is new."""

import dataclasses
import io

import numpy as np
import pytest
from scipy import sparse

from core.graph.backbone import sample_balanced_nodes
from core.scoring.all_tasks import score_tasks
from core.scoring.new_instances import (
    STORED_ARRAYS,
    StoredPast,
    prepare_new_instances,
)
from core.scoring.parameters import ScoringParameters
from core.scoring.scorers import NEW_INSTANCE_SCORERS, new_evidence
from core.scoring.scores import score_by_scale
from core.scoring.stored_past import pack_graphs, unpack_graphs, unpack_points
from core.scoring.task_graph import build_task_graph

SMALL = ScoringParameters(n_neighbors=10, n_nodes=41, n_graphs=2, n_features_kept=12, min_past_positives=5)
N_PAST = 170


@pytest.fixture(scope="module")
def cohort():
    """Patients who are on both sides of the day that parts past from recent."""
    random = np.random.default_rng(6)
    n, p = 240, 25
    patients = random.integers(0, 70, n)
    values = (random.normal(size=(70, p))[patients] + random.normal(size=(n, p))) * (random.random((n, p)) < 0.6)
    is_flag, is_elapsed = np.arange(p) % 3 == 0, np.arange(p) == 4
    values[:, is_flag] = values[:, is_flag] > 0.5
    values[:, is_elapsed] = np.abs(values[:, is_elapsed]) * 30
    chance = 1 / (1 + np.exp(-(values @ random.normal(size=(p, 3)) * 0.4 - 0.5)))
    return sparse.csr_matrix(values, dtype=np.float32), random.random((n, 3)) < chance, is_flag, is_elapsed, patients


def whole_run(cohort, recent, *, exclude, parameters=SMALL, keep_graphs=False):
    X, Y, is_flag, is_elapsed, patients = cohort
    return score_tasks(
        X,
        Y,
        is_flag=is_flag,
        is_elapsed=is_elapsed,
        patients=patients,
        past=np.arange(N_PAST),
        recent=recent,
        scorers=NEW_INSTANCE_SCORERS,
        parameters=parameters,
        seed=4,
        exclude_same_patient=exclude,
        keep_graphs=keep_graphs,
    )


def stored_of(scored, task):
    """The arrays that are stored, through a file."""
    file = io.BytesIO()
    np.savez(file, **{name: a for name, a in scored.evidence[task].items() if name.startswith(STORED_ARRAYS)})
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)


def stored_past(cohort, scored, *, exclude):
    patients = cohort[4].astype(str)
    prepared = scored.prepared
    past = patients[:N_PAST] if exclude else None
    return StoredPast(
        prepared.standardizer, prepared.kept_features, prepared.kept_weights, scored.parameters, past, scored.shared
    )


def scorers_of(exclude):
    """The shared graph cannot leave out a patient afterwards."""
    return tuple(scorer for scorer in NEW_INSTANCE_SCORERS if not (exclude and scorer == "shared"))


def score_new(cohort, base, rows, *, exclude):
    """Scaled scores of new rows by task and scorer."""
    X, Y, *_, patients = cohort
    new = prepare_new_instances(
        stored_past(cohort, base, exclude=exclude), X[rows], sparse.csc_matrix(Y[rows]), patients.astype(str)[rows]
    )
    scores = {}
    for task in base:
        evidence = new_evidence(new, task, stored_of(base, task), scorers_of(exclude))
        y = np.where(Y[rows, task], 1.0, -1.0)
        for scorer in scorers_of(exclude):
            scores[task, scorer] = score_by_scale(evidence, y, scorer, base.scores(task, scorer).scale)
    return scores


@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("changes", [{}, {"regularization": 0.5, "length_scale": 2.0, "paper_length_scale": 1.5}])
def test_new_instances_score_as_in_a_whole_run_with_the_same_past(cohort, exclude, changes):
    parameters = dataclasses.replace(SMALL, **changes)
    rows = np.arange(200, 240)
    base = whole_run(cohort, np.arange(N_PAST, 175), exclude=exclude, parameters=parameters, keep_graphs=True)
    whole = whole_run(cohort, rows, exclude=exclude, parameters=parameters)
    found = score_new(cohort, base, rows, exclude=exclude)
    assert len(base) == 3
    for task in whole:
        for scorer in scorers_of(exclude):
            expected = whole.scores(task, scorer)
            np.testing.assert_allclose(found[task, scorer].scaled_score, expected.scaled_score, atol=1e-5)
            np.testing.assert_allclose(found[task, scorer].soft_label, expected.soft_label, atol=1e-5)


@pytest.mark.parametrize("exclude", [False, True])
def test_a_new_instance_scores_the_same_whoever_else_is_new(cohort, exclude):
    base = whole_run(cohort, np.arange(N_PAST, 175), exclude=exclude, keep_graphs=True)
    rows = np.arange(200, 240)
    together = score_new(cohort, base, rows, exclude=exclude)
    few = score_new(cohort, base, rows[[30, 7]], exclude=exclude)
    for key, scores in few.items():
        np.testing.assert_allclose(scores.scaled_score, together[key].scaled_score[[30, 7]], atol=1e-5)


def test_graphs_come_back_from_arrays_as_they_were():
    random = np.random.default_rng(0)
    features = (random.normal(size=(90, 7)) * (random.random((90, 7)) < 0.4)).astype(np.float32)
    y = np.where(random.random(90) < 0.3, 1.0, -1.0)
    parameters = ScoringParameters(n_neighbors=8, label_weight=0.7, regularization=0.2)
    graphs = [
        build_task_graph(features, y, sample_balanced_nodes(y, size, random), None, parameters) for size in (20, 31)
    ]
    packed = pack_graphs(graphs, "x")
    points = unpack_points(packed, "x", 7)
    back = unpack_graphs(packed, "x", points, parameters)
    for graph, kept in zip(graphs, back, strict=True):
        np.testing.assert_array_equal(kept.points, graph.points)
        np.testing.assert_array_equal(kept.soft_labels(), graph.soft_labels())
        np.testing.assert_allclose(kept.inverse, graph.inverse, rtol=1e-6)
        np.testing.assert_array_equal(kept.inverse, kept.inverse.T)
        assert kept.center == graph.center
        assert not {array.dtype.hasobject for array in packed.values()} - {False}
