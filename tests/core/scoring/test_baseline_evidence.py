"""Baselines of a run: nobody is scored by own days, the draw decides alone, and min-max puts the past on [0, 1]."""

import numpy as np
import pytest
from scipy import sparse

from core.evaluation import rank_auc
from core.graph.backbone import sample_balanced_nodes
from core.scoring.all_tasks import score_tasks
from core.scoring.baseline_evidence import cross_fitted_scores
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import TaskData, prepare_instances
from core.scoring.scorers import COMPARISONS, SCORERS

SMALL = ScoringParameters(
    n_neighbors=10, n_nodes=40, n_graphs=2, n_features_kept=8, min_past_positives=5, n_baseline_past=80
)


@pytest.fixture(scope="module")
def cohort():
    random = np.random.default_rng(4)
    n, p = 220, 10
    patients = np.sort(random.integers(0, 50, n))
    X = random.normal(size=(n, p))
    chance = 1 / (1 + np.exp(-2 * X[:, :2].sum(axis=1)))
    Y = (random.random(n) < chance)[:, None]
    return (
        sparse.csr_matrix(X, dtype=np.float32),
        Y,
        patients,
        np.flatnonzero(patients < 36),
        np.arange(n)[patients >= 36],
    )


def prepare(cohort):
    X, Y, patients, past, recent = cohort
    return prepare_instances(X, Y, np.zeros(X.shape[1], dtype=bool), patients, past, recent, SMALL)


@pytest.fixture(scope="module")
def found(cohort):
    data = TaskData(prepare(cohort), 0, SMALL, 1)
    return {name: scores for scorer in COMPARISONS for name, scores in SCORERS[scorer].evidence(data).items()}


def test_every_baseline_gives_one_finite_score_for_each_instance(cohort, found):
    *_, past, recent = cohort
    assert set(found) == {f"{scorer}_score" for scorer in COMPARISONS}
    for scores in found.values():
        assert scores.shape == (len(past) + len(recent),)
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("scorer", COMPARISONS)
def test_where_one_patient_has_nearly_all_of_a_decision_every_instance_is_scored_all_the_same(cohort, scorer):
    X, _, patients, past, recent = cohort
    whose = np.argmax(np.bincount(patients[past]))
    elsewhere = past[patients[past] != whose]
    # Whether the other patient is scored together with this one is for the parts to say, so some of them are tried.
    for others in ([], *([row] for row in elsewhere[:30:5]), elsewhere[:30:15]):
        rare = (patients == whose)[:, None]
        rare[others] = True
        assert rare[past].sum() >= SMALL.min_past_positives
        points = sparse.csr_matrix(X + 3 * rare, dtype=np.float32)
        found = SCORERS[scorer].evidence(TaskData(prepare((points, rare, patients, past, recent)), 0, SMALL, 1))
        assert np.isfinite(found[f"{scorer}_score"]).all()


class Witness:
    """A method that tells whose days it learned from, and whose it then scored."""

    fewest_of_each = 1

    def __init__(self, patient_of, seen):
        self.patient_of, self.seen = patient_of, seen

    def fit(self, X, y):
        self.learned = {self.patient_of[row.tobytes()] for row in X}
        return self

    def score_samples(self, X, y):
        self.seen.append((self.learned, [self.patient_of[row.tobytes()] for row in X]))
        return np.zeros(len(X))


def test_a_past_instance_is_scored_by_what_was_fitted_without_its_patient(cohort):
    *_, patients, past, _ = cohort
    prepared = prepare(cohort)
    data = TaskData(prepared, 0, SMALL, 1)
    points = data.features.astype(np.float64)
    patient_of = {row.tobytes(): patient for row, patient in zip(points, prepared.groups, strict=True)}
    seen = []
    cross_fitted_scores("score", lambda *_: Witness(patient_of, seen), data)
    assert sorted(patient for _, scored in seen for patient in scored) == sorted(prepared.groups)
    assert all(learned.isdisjoint(scored) for learned, scored in seen)
    assert all(learned <= set(patients[past]) for learned, _ in seen)


def test_weighted_neighbours_vote_on_the_nodes_of_the_graphs(cohort, found):
    *_, past, recent = cohort
    prepared = prepare(cohort)
    points = TaskData(prepared, 0, SMALL, 1).features.astype(float)
    y = np.where(prepared.past_positive(0), 1.0, -1.0)
    expected = np.zeros(len(recent))
    for number in range(SMALL.n_graphs):
        nodes = sample_balanced_nodes(y, SMALL.n_nodes, np.random.default_rng([1, 0, number]))
        at = points[nodes.rows]
        d = np.sqrt(((at[:, None] - at) ** 2).sum(axis=2))
        np.fill_diagonal(d, np.inf)
        s = np.sort(d, axis=1)[:, 6]
        for i in range(len(recent)):
            away = np.sqrt(((at - points[len(past) + i]) ** 2).sum(axis=1))
            near = np.argsort(away, kind="stable")[:10]
            w = np.exp(-(away[near] ** 2) / (away[near[6]] * s[near])) * nodes.multiplicities[near]
            decided = 1.0 if prepared.recent_positive(0)[i] else -1.0
            expected[i] += abs((w * y[nodes.rows][near]).sum() / w.sum() - decided) / SMALL.n_graphs
    np.testing.assert_allclose(found["weighted-knn_score"][len(past) :], expected, rtol=1e-5)


def test_baselines_in_a_run_are_min_max_scaled_on_the_past_and_find_flipped_decisions(cohort):
    X, Y, patients, past, recent = cohort
    flipped = np.zeros(len(Y), dtype=bool)
    flipped[np.random.default_rng(2).choice(recent, 8, replace=False)] = True
    scored = score_tasks(
        X,
        Y ^ flipped[:, None],
        is_flag=np.zeros(X.shape[1], dtype=bool),
        patients=patients,
        past=past,
        recent=recent,
        scorers=("softhad", *COMPARISONS),
        parameters=SMALL,
        seed=1,
    )
    for scorer in COMPARISONS:
        scores = scored.scores(0, scorer)
        low, high = scores.past_score.min(), scores.past_score.max()
        np.testing.assert_allclose(scores.scaled_score, (scores.score - low) / (high - low), atol=1e-5)
        assert scores.scale["n_above"] == (scores.scaled_score > 1).sum()
        assert rank_auc(flipped[recent], scores.score) > (0.5 if scorer == "one-class-svm" else 0.7), scorer
        y = np.where((Y ^ flipped[:, None])[recent, 0], 1.0, -1.0)
        np.testing.assert_allclose(scores.soft_label * y, 1 - 2 * np.clip(scores.scaled_score, 0, 1), atol=1e-5)
        np.testing.assert_allclose(scores.support, scored.scores(0, "softhad").support, rtol=1e-5, atol=1e-6)
