"""Nearest past instances against the plain formula, and which features make them near."""

import numpy as np
import pytest
from scipy import sparse

from core.errors import InvalidInputError
from core.features import SparseStandardizer
from core.graph.explain import nearest_past


@pytest.fixture
def past():
    random = np.random.default_rng(0)
    X = random.normal(loc=5, size=(60, 6)) * (random.random((60, 6)) < 0.7)
    return sparse.csr_matrix(X, dtype=np.float32)


IS_FLAG = np.array([False, False, True, True, False, False])
KEPT, PSI = np.array([4, 0, 2]), np.array([0.5, 0.4, 0.1])


def plain(past, x, n):
    standardizer = SparseStandardizer().fit(past, IS_FLAG)
    weights = np.zeros(6)
    weights[KEPT] = PSI / PSI.mean()
    points = standardizer.transform(past).toarray() * weights
    query = standardizer.transform(x).toarray()[0] * weights
    d = np.sqrt(((points - query) ** 2).sum(axis=1))
    all_d = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    np.fill_diagonal(all_d, np.inf)
    s = np.sort(all_d, axis=1)[:, 6]
    rows = np.argsort(d, kind="stable")[:n]
    return rows, np.exp(-(d[rows] ** 2) / (np.sort(d)[6] * s[rows]))


def test_nearest_instances_and_similarities_equal_the_formula(past):
    x = past[7] * np.float32(1.1)
    found = nearest_past(past, x, KEPT, PSI, is_flag=IS_FLAG, n_nearest=5)
    rows, similarities = plain(past, x, 5)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.similarities, similarities, rtol=1e-5)
    assert (np.diff(found.similarities) <= 1).all()


def test_the_same_state_has_similarity_one(past):
    found = nearest_past(past, past[7], KEPT, PSI, is_flag=IS_FLAG, n_nearest=3)
    assert found.rows[0] == 7
    assert found.similarities[0] == 1.0
    assert ((found.similarities > 0) & (found.similarities <= 1)).all()


def test_excluded_instances_are_not_shown(past):
    excluded = np.zeros(60, dtype=bool)
    excluded[:50] = True
    found = nearest_past(past, past[7], KEPT, PSI, is_flag=IS_FLAG, n_nearest=20, excluded=excluded)
    assert sorted(found.rows.tolist()) == list(range(50, 60))


def test_shares_add_up_to_one_and_point_to_the_features_that_are_near():
    random = np.random.default_rng(1)
    X = random.normal(size=(400, 3)) + 10
    X[:10, 0] = X[0, 0]  # the nearest agree on feature 0 exactly
    weights = np.array([1.0, 1.0, 1.0])
    X[:10, 1:] += random.normal(scale=0.2, size=(10, 2)) - (X[:10, 1:] - 10) * 0.5
    found = nearest_past(
        sparse.csr_matrix(X), sparse.csr_matrix(X[:1]), [0, 1, 2], weights, is_flag=np.zeros(3, dtype=bool), n_nearest=5
    )
    assert found.feature_shares.sum() == pytest.approx(1)
    assert found.feature_shares[0] > 0.2
    assert (found.feature_shares >= 0).all()


@pytest.mark.parametrize(
    ("features", "weights", "excluded", "words"),
    [
        ([], [], None, "0 features"),
        ([1, 2], [0.5], None, "2 features came with 1 weights"),
        ([1], [1.0], np.ones(60, dtype=bool), "Every past instance is excluded"),
    ],
)
def test_bad_input_is_refused_by_name(past, features, weights, excluded, words):
    with pytest.raises(InvalidInputError, match=words):
        nearest_past(past, past[0], features, weights, is_flag=IS_FLAG, excluded=excluded)
