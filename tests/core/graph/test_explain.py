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
    # The seventh neighbour, or the last where there are fewer; an instance is none of its own.
    s = np.sort(all_d, axis=1)[:, min(6, len(d) - 2)]
    rows = np.argsort(d, kind="stable")[:n]
    return rows, np.exp(-(d[rows] ** 2) / (np.sort(d)[min(6, len(d) - 1)] * s[rows]))


@pytest.mark.parametrize(("n_past", "n_nearest"), [(60, 5), (60, 12), (8, 5), (5, 12)])
def test_nearest_instances_and_similarities_equal_the_formula(past, n_past, n_nearest):
    past, x = past[:n_past], past[7] * np.float32(1.1)
    found = nearest_past(past, x, KEPT, PSI, is_flag=IS_FLAG, n_nearest=n_nearest)
    rows, similarities = plain(past, x, n_nearest)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.similarities, similarities, rtol=1e-5)


def test_the_same_state_has_similarity_one(past):
    found = nearest_past(past, past[7], KEPT, PSI, is_flag=IS_FLAG, n_nearest=3)
    assert found.rows[0] == 7
    assert found.similarities[0] == 1.0
    assert ((found.similarities > 0) & (found.similarities <= 1)).all()


@pytest.mark.parametrize(
    ("features", "weights", "words"),
    [([], [], "0 features"), ([1, 2], [0.5], "2 features came with 1 weights")],
)
def test_bad_input_is_refused_by_name(past, features, weights, words):
    with pytest.raises(InvalidInputError, match=words):
        nearest_past(past, past[0], features, weights, is_flag=IS_FLAG)
