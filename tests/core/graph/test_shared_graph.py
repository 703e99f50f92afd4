"""One graph for all tasks against plain dense algebra, and what must not change it."""

import numpy as np
import pytest
from scipy import sparse

from core.errors import InvalidInputError
from core.graph.shared_graph import CosineMap, WeightedCosine, soft_labels_of, solve_shared_graph

WEIGHTS = {"a": 0.7, "b": 0.3}
RIDGE = 0.05


def make(n_past=60, n_recent=15, n_features=12, n_tasks=3, seed=0):
    random = np.random.default_rng(seed)
    X = sparse.random_array((n_past + n_recent, n_features), density=0.4, rng=random, format="csr", dtype=np.float32)
    y = random.choice([-1.0, 1.0], (n_past, n_tasks))
    patients = random.integers(0, 20, n_past + n_recent)
    groups = np.array(["a"] * 7 + ["b"] * 4 + ["without a weight"])
    return X, y, patients, groups


def mapped(X, groups, n_past=60, n_landmarks=100, seed=0):
    chosen = CosineMap.fit(X[:n_past], groups, WEIGHTS, n_landmarks, np.random.default_rng(seed))
    return chosen.transform(X)


def plain_cosines(X, groups, n_past):
    dense = X.toarray().astype(float)
    dense -= dense[:n_past].mean(axis=0)
    scaled = np.zeros_like(dense)
    for group, weight in WEIGHTS.items():
        chosen = groups == group
        size = (dense[:n_past][:, chosen] ** 2).sum(axis=1).mean()
        scaled[:, chosen] = dense[:, chosen] * np.sqrt(weight / size)
    scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled @ scaled.T


def plain_left_out(K, y, patients, n_past):
    """Every instance's soft labels, from a solve over the other patients' past alone."""
    K = K + 1e4
    found = np.empty((len(K), y.shape[1]))
    for i in range(len(K)):
        others = np.flatnonzero(patients[:n_past] != patients[i])
        system = K[np.ix_(others, others)] + RIDGE * n_past * np.eye(len(others))
        found[i] = K[i, others] @ np.linalg.solve(system, y[others])
    return found


def test_coordinates_reproduce_the_cosine_of_weighted_groups():
    X, _, _, groups = make()
    coordinates = mapped(X, groups).astype(float)
    np.testing.assert_allclose(coordinates @ coordinates.T, plain_cosines(X, groups, 60), atol=2e-5)


def test_similarities_of_one_instance_are_the_cosines_of_the_graph():
    X, _, _, groups = make()
    cosine = WeightedCosine.fit(X[:60], groups, WEIGHTS)
    expected = plain_cosines(X, groups, 60)
    for row in range(60, 75):
        found = cosine.similarities(X[:60], cosine.lengths(X[:60]), X[[row]])
        np.testing.assert_allclose(found, expected[row, :60], atol=1e-6)


def test_an_instance_at_the_past_mean_is_similar_to_none():
    X, _, _, groups = make()
    cosine = WeightedCosine.fit(X[:60], groups, WEIGHTS)
    mean = np.zeros((1, 12))
    mean[0, cosine.columns] = cosine.center
    found = cosine.similarities(X[:60], cosine.lengths(X[:60]), sparse.csr_array(mean))
    np.testing.assert_array_equal(found, np.zeros(60))


def test_landmarks_keep_their_own_similarities():
    X, _, _, groups = make()
    chosen = CosineMap.fit(X[:60], groups, WEIGHTS, 6, np.random.default_rng(3))
    rows = np.sort(np.random.default_rng(3).choice(60, 6, replace=False))
    coordinates = chosen.transform(X).astype(float)
    expected = plain_cosines(X, groups, 60)
    np.testing.assert_allclose((coordinates @ coordinates.T)[rows], expected[rows], atol=2e-5)


def test_soft_labels_equal_a_dense_solve_without_the_patient():
    X, y, patients, groups = make()
    solved = solve_shared_graph(mapped(X, groups), y, patients, ridge=RIDGE)
    expected = plain_left_out(plain_cosines(X, groups, 60), y, patients, 60)
    np.testing.assert_allclose(solved.soft_labels, expected, atol=2e-3)


def test_support_is_what_the_others_explain_of_the_variance():
    X, y, patients, groups = make()
    found = solve_shared_graph(mapped(X, groups), y, patients, ridge=RIDGE).support
    K = plain_cosines(X, groups, 60)
    for i in range(len(K)):
        others = np.flatnonzero(patients[:60] != patients[i])
        system = K[np.ix_(others, others)] + 1e4 + RIDGE * 60 * np.eye(len(others))
        to_others = K[i, others] + 1e4
        left = K[i, i] + 1e4 - to_others @ np.linalg.solve(system, to_others)
        assert found[i] == pytest.approx(np.clip(1 - left, 0, 1), abs=0.06)


def test_the_labels_of_a_patient_change_nothing_for_the_patient():
    X, y, patients, groups = make()
    coordinates = mapped(X, groups)
    patient = np.intersect1d(patients[:60], patients[60:])[0]
    turned = y.copy()
    turned[patients[:60] == patient] *= -1
    first, second = (solve_shared_graph(coordinates, each, patients, ridge=RIDGE).soft_labels for each in (y, turned))
    own = patients == patient
    assert own[:60].any()
    assert own[60:].any()
    np.testing.assert_allclose(first[own], second[own], atol=1e-3)
    assert np.abs(first[~own] - second[~own]).max() > 0.05


def test_neither_the_order_of_rows_nor_the_batch_matters():
    X, y, patients, groups = make()
    first = solve_shared_graph(mapped(X, groups), y, patients, ridge=RIDGE).soft_labels
    order = np.concatenate(
        (np.random.default_rng(2).permutation(60), 60 + np.random.default_rng(3).permutation(15)[:4])
    )
    again = solve_shared_graph(mapped(X[order], groups), y[order[:60]], patients[order], ridge=RIDGE).soft_labels
    np.testing.assert_allclose(again, first[order], atol=1e-3)


class FewRows:
    """Coordinates that are asked for a few rows at a time."""

    def __init__(self, all_of_them):
        self._all, self.shape, self.most = all_of_them, all_of_them.shape, 0

    def __getitem__(self, rows):
        found = self._all[rows]
        self.most = max(self.most, len(found))
        return found


def test_coordinates_are_read_a_few_rows_at_a_time_whoever_reads_them(monkeypatch):
    X, y, patients, groups = make()
    coordinates = mapped(X, groups)
    whole = solve_shared_graph(coordinates, y, patients, ridge=RIDGE)
    for bound in ("_ROWS_AT_ONCE", "_MEMBERS_AT_ONCE"):
        monkeypatch.setattr(f"core.graph.shared_graph.{bound}", 11)
    few = FewRows(coordinates)
    found = solve_shared_graph(few, y.astype(np.int8), patients, ridge=RIDGE, n_jobs=2)
    assert few.most <= 11
    np.testing.assert_allclose(found.soft_labels, whole.soft_labels, atol=1e-5)
    kept = np.full_like(whole.soft_labels, np.nan)
    without = solve_shared_graph(few, y.astype(np.int8), patients, ridge=RIDGE, keep=kept.__setitem__, n_jobs=2)
    assert without.soft_labels.shape == (0, 3)
    np.testing.assert_array_equal(kept, found.soft_labels)
    np.testing.assert_allclose(found.support, whole.support, atol=1e-6)


def test_a_task_does_not_depend_on_the_other_tasks():
    X, y, patients, groups = make()
    coordinates = mapped(X, groups)
    together = solve_shared_graph(coordinates, y, patients, ridge=RIDGE).soft_labels
    alone = solve_shared_graph(coordinates, y[:, 1:2], patients, ridge=RIDGE).soft_labels
    np.testing.assert_allclose(together[:, 1:2], alone, atol=1e-4)


def test_stored_coefficients_give_the_same_for_new_instances():
    X, y, patients, groups = make()
    fitted = CosineMap.fit(X[:60], groups, WEIGHTS, 100, np.random.default_rng(0))
    fitted = CosineMap.of_arrays(fitted.arrays("map"), "map")
    new = np.where(np.arange(75) < 60, patients, 1000 + np.arange(75))
    solved = solve_shared_graph(fitted.transform(X), y, new, ridge=RIDGE)
    found = soft_labels_of(fitted.transform(X[60:]), solved.coefficients)
    np.testing.assert_allclose(found, solved.soft_labels[60:], atol=1e-5)


def test_an_instance_without_any_feature_is_placed_like_every_other():
    X, _y, _patients, groups = make()
    empty = sparse.vstack((X, sparse.csr_array((1, X.shape[1]), dtype=np.float32)), format="csr")
    coordinates = mapped(empty, groups)
    assert np.isfinite(coordinates).all()
    assert np.linalg.norm(coordinates[-1]) == pytest.approx(1, abs=0.2)


def test_features_that_never_vary_are_refused():
    X = sparse.csr_array((10, 3), dtype=np.float32)
    with pytest.raises(InvalidInputError, match="no two instances can be compared"):
        CosineMap.fit(X, np.array(["a"] * 3), WEIGHTS, 5, np.random.default_rng(0))
