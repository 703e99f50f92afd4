"""Other methods: one interface, known special cases, and all of them find switched labels where classes part."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from core.baselines import (
    PAPER_BASELINES,
    Logistic,
    NeighbourDistanceDifference,
    QuadraticDiscriminant,
    WeightedNeighbours,
    consistency_method,
    hard_harmonic,
)
from core.errors import FewerNodesThanNeighboursWarning, InvalidInputError, NearlyDeadGraphWarning
from core.evaluation import rank_auc
from core.graph.similarity import knn_similarity
from core.scoring.variants import DETECTORS, CalibratedSoftHAD, JointSoftHAD, PairedSoftHAD
from core.softhad import SoftHAD, solve_soft_labels


def classes(n=120, seed=0):
    random = np.random.default_rng(seed)
    y = np.where(random.random(n) < 0.5, 1.0, -1.0)
    flipped = random.random(n) < 0.08
    X = random.normal(size=(n, 3)) + y[:, None] * 2
    return X, np.where(flipped, -y, y), flipped


@pytest.mark.parametrize("name", DETECTORS)
def test_every_method_finds_switched_labels_of_classes_that_part(name):
    X, y, _ = classes()
    recent, decisions, flipped = classes(seed=1)
    with warnings.catch_warnings():
        for category in (FewerNodesThanNeighboursWarning, NearlyDeadGraphWarning):
            warnings.simplefilter("ignore", category)
        detector = DETECTORS[name]().fit(X, y)
        scores = detector.score_samples(recent, decisions)
        again = detector.score_samples(recent[::-1], decisions[::-1])
    assert scores.shape == (120,)
    assert np.isfinite(scores).all()
    assert rank_auc(flipped, scores) > 0.9
    np.testing.assert_allclose(again[::-1], scores, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", DETECTORS)
def test_every_method_refuses_one_class_and_sparse_is_welcome(name):
    X, y, _ = classes(60)
    detector = DETECTORS[name]()
    with pytest.raises(InvalidInputError, match="one class only"):
        detector.fit(X, np.ones(60))
    dense = detector.fit(X, y).score_samples(X, y)
    np.testing.assert_allclose(detector.fit(sparse.csr_matrix(X), y).score_samples(sparse.csr_matrix(X), y), dense)


def test_the_paper_compares_with_four():
    assert list(PAPER_BASELINES) == ["QDA", "SVM", "1-class SVM", "weighted k-NN"]


@pytest.mark.parametrize("length_scale", ["local", "paper"])
def test_weighted_neighbours_use_the_weights_of_the_graph(length_scale):
    X, y, _ = classes(50)
    x = np.array([[0.1, 0.2, 0.3]])
    d2 = ((X - x) ** 2).sum(axis=1)
    near = np.argsort(d2, kind="stable")[:9]
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    if length_scale == "local":
        scale = np.sqrt(d2[near[6]]) * np.sort(distances, axis=1)[near, 7]
    else:
        scale = 0.1 * distances[~np.eye(50, dtype=bool)].var()
    w = np.exp(-d2[near] / scale)
    model = WeightedNeighbours(n_neighbors=9, length_scale=length_scale).fit(X, y)
    assert model.score_samples(x, [1.0])[0] == pytest.approx(abs(w @ y[near] / w.sum() - 1.0), rel=1e-6)


def test_distance_difference_is_own_minus_other():
    X, y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    model = NeighbourDistanceDifference(n_neighbors=2).fit(X, y)
    np.testing.assert_allclose(model.score_samples([[0.5], [0.5]], [1.0, -1.0]), [4.5, -4.5])


def test_the_hard_harmonic_solution_is_weighted_neighbours_and_the_limit_of_large_label_weight():
    X, y, _ = classes(60)
    W = knn_similarity(X, n_neighbors=7)
    hard = hard_harmonic(W, y)
    dense = W.toarray()
    np.testing.assert_allclose(hard, dense @ y / dense.sum(axis=1), atol=1e-12)
    # Node i unlabelled, all others held by an ever larger label weight: the harmonic value of i.
    for i in range(0, 60, 13):
        trust = np.full(60, 1e9)
        trust[i] = 0.0
        limit = solve_soft_labels(W, y, label_weight=trust, regularization=0.0)
        assert hard[i] == pytest.approx(limit[i], abs=1e-6)


def test_the_consistency_method_solves_with_the_normalised_laplacian():
    X, y, _ = classes(40)
    W = knn_similarity(X, n_neighbors=5)
    root = np.sqrt(W.toarray().sum(axis=1))
    K = np.eye(40) - W.toarray() / np.outer(root, root)
    for c in (0.3, 2.0):
        expected = np.linalg.solve(K / c + np.eye(40), y)
        np.testing.assert_allclose(consistency_method(W, y, label_weight=c), expected, atol=1e-10)


def test_an_isolated_node_has_no_hard_label_and_keeps_part_of_its_own_in_the_consistency_method():
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 0] = 1.0
    assert hard_harmonic(W, [1, 1, 1])[2] == 0.0
    assert consistency_method(W, [1, 1, 1])[2] == pytest.approx(0.5)


def test_calibrated_softhad_is_support_times_a_chance():
    X, y, _ = classes()
    recent, decisions, _ = classes(seed=1)
    model = CalibratedSoftHAD(n_neighbors=20, feature_weights=None).fit(X, y)
    one, other = model.score_samples(recent, decisions), model.score_samples(recent, -decisions)
    support = SoftHAD(n_neighbors=20, regularization=0.0).fit(X, y).support(recent)
    np.testing.assert_allclose(one + other, support, atol=1e-12)


def test_the_joint_variant_is_the_estimators_joint_solution():
    X, y, _ = classes(90)
    recent, decisions, _ = classes(40, seed=1)
    joint = JointSoftHAD(n_neighbors=20, length_scale=2.0, regularization=0.5).fit(X, y)
    estimator = SoftHAD(n_neighbors=20, length_scale=2.0, regularization=0.5)
    expected = estimator.fit_score(X, y, recent, decisions)
    np.testing.assert_array_equal(joint.score_samples(recent, decisions), expected)


def test_a_pair_of_fitted_methods_is_the_pair_fitted_anew_and_means_their_log_odds():
    X, y, _ = classes(90)
    recent, decisions, _ = classes(40, seed=1)
    softhad, logistic = CalibratedSoftHAD().fit(X, y), Logistic().fit(X, y)
    scores = PairedSoftHAD.of(softhad, logistic).score_samples(recent, decisions)
    np.testing.assert_array_equal(scores, PairedSoftHAD().fit(X, y).score_samples(recent, decisions))
    other = 1 - logistic.score_samples(recent, decisions)
    logistic_odds = decisions * np.log(other / (1 - other))
    mean = (softhad.log_odds(recent) + logistic_odds) / 2
    np.testing.assert_allclose(scores, softhad.support(recent) / (1 + np.exp(decisions * mean)), rtol=1e-9)


@pytest.mark.parametrize("name", sorted(set(DETECTORS) - {"SoftHAD (paper, literal)"}))
def test_a_decision_with_fewer_instances_than_features_is_scored_all_the_same(name):
    random = np.random.default_rng(0)
    y = np.where(np.arange(90) < 20, 1.0, -1.0)
    X = random.normal(size=(90, 40)) + y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerNodesThanNeighboursWarning)
        scores = DETECTORS[name]().fit(X, y).score_samples(X, -y)
    assert np.isfinite(scores).all()


def test_a_method_that_needs_more_of_a_decision_than_there_is_says_so():
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.where(np.arange(20) == 4, 1.0, -1.0)
    with pytest.raises(InvalidInputError, match=r"holds 1 of its rarer decision; this method needs 2 of each"):
        QuadraticDiscriminant().fit(X, y)
