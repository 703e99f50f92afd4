"""The similarity graph against a plain, slow one; ties, duplicates, dead graphs and bad input."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from core.errors import FewerNodesThanNeighboursWarning, InvalidInputError, NearlyDeadGraphWarning
from core.graph.similarity import dense_similarity, knn_similarity, nearest
from core.numerics.distances import symmetric_squared_distances


def plain_graph(X, k, length_scale, groups=None):
    """The definition, one pair at a time."""
    n = len(X)
    d2 = np.array([[((a - b) ** 2).sum() for b in X] for a in X])
    d = np.sqrt(d2)
    allowed = [[j for j in range(n) if j != i and (groups is None or groups[i] != groups[j])] for i in range(n)]
    chosen = [sorted(allowed[i], key=lambda j: (d2[i, j], j))[:k] for i in range(n)]
    if length_scale == "local":
        s = np.array([d[i, chosen[i][min(7, len(chosen[i])) - 1]] for i in range(n)])
        scale = np.outer(s, s)
    elif length_scale == "paper":
        scale = np.full((n, n), 0.1 * d[~np.eye(n, dtype=bool)].var())
    else:
        scale = np.full((n, n), length_scale**2)
    W = np.zeros((n, n))
    for i in range(n):
        for j in chosen[i]:
            W[i, j] = W[j, i] = np.exp(-d2[i, j] / scale[i, j])
    return W


@pytest.mark.parametrize("length_scale", ["local", "paper", 2.5])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_graph_equals_the_definition(length_scale, as_sparse):
    X = np.random.default_rng(1).normal(size=(40, 3))
    given_X = sparse.csr_matrix(X) if as_sparse else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NearlyDeadGraphWarning)
        graph = knn_similarity(given_X, n_neighbors=9, length_scale=length_scale)
    assert sparse.issparse(graph)
    assert graph.format == "csr"
    np.testing.assert_allclose(graph.toarray(), plain_graph(X, 9, length_scale), atol=1e-12)


def test_graph_of_patients_has_no_edge_inside_a_patient():
    random = np.random.default_rng(2)
    X, patients = random.normal(size=(30, 2)), random.integers(0, 8, 30)
    graph = knn_similarity(X, n_neighbors=6, groups=patients).toarray()
    assert not graph[patients[:, None] == patients].any()
    np.testing.assert_allclose(graph, plain_graph(X, 6, "local", patients), atol=1e-12)


def test_feature_weights_multiply_features_and_zero_weights_drop_them():
    X = np.random.default_rng(3).normal(size=(30, 4))
    weights = np.array([1.0, 0.0, 0.3, 2.0])
    weighted = knn_similarity(X, n_neighbors=5, feature_weights=weights)
    np.testing.assert_allclose(weighted.toarray(), plain_graph(X * weights, 5, "local"), atol=1e-12)


@given(st.integers(2, 25), st.integers(1, 12), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_grid_points_with_many_ties_choose_exactly_k_with_the_lower_index_first(n, k, seed):
    X = np.random.default_rng(seed).integers(0, 3, size=(n, 2)).astype(float)
    k = min(k, n - 1)
    near = nearest(X, X, k, same_rows=True)
    d2 = ((X[:, None] - X) ** 2).sum(axis=2)
    for i in range(n):
        expected = sorted((j for j in range(n) if j != i), key=lambda j: (d2[i, j], j))[:k]
        assert near.indices[i].tolist() == expected


def test_ties_hold_where_matrix_products_differ_in_the_last_bit():
    # Points on a circle with an offset: products of rows round differently for (i, j) and (j, i).
    angles = 2 * np.pi * np.arange(24) / 24
    X = np.column_stack((np.cos(angles), np.sin(angles), np.full(24, 1e3))) * np.pi
    X = np.vstack((X, X))  # every point twice: distances of 0 and exact ties
    graph = knn_similarity(X, n_neighbors=5)
    assert (graph != graph.T).nnz == 0
    near = nearest(X, X, 5, same_rows=True)
    assert (near.indices[:, 0] == (np.arange(48) + 24) % 48).all()
    assert (near.squared_distances[:, 0] == 0).all()


def test_a_graph_is_the_same_whatever_the_order_of_rows_when_nothing_ties():
    random = np.random.default_rng(5)
    X = random.normal(size=(60, 4))
    order = random.permutation(60)
    graph, permuted = knn_similarity(X, n_neighbors=8).toarray(), knn_similarity(X[order], n_neighbors=8).toarray()
    np.testing.assert_array_equal(permuted, graph[np.ix_(order, order)])


def test_blocks_do_not_change_neighbours(monkeypatch):
    X = np.random.default_rng(6).normal(size=(50, 3))
    whole = nearest(X, X, 7, same_rows=True)
    monkeypatch.setattr("core.graph.similarity._BLOCK_ENTRIES", 150)
    parts = nearest(X, X, 7, same_rows=True)
    np.testing.assert_array_equal(whole.indices, parts.indices)
    np.testing.assert_array_equal(whole.squared_distances, parts.squared_distances)


def test_duplicates_get_similarity_one_and_a_positive_scale():
    X = np.vstack((np.zeros((12, 2)), np.random.default_rng(7).normal(size=(20, 2)) + 5))
    graph = knn_similarity(X, n_neighbors=11).toarray()
    assert np.isfinite(graph).all()
    np.testing.assert_array_equal(graph[:12, :12], 1 - np.eye(12))


def test_instances_that_are_all_the_same_are_all_alike():
    graph = knn_similarity(np.ones((9, 3)), n_neighbors=8).toarray()
    np.testing.assert_array_equal(graph, 1 - np.eye(9))


@pytest.mark.parametrize("length_scale", ["local", "paper", 1.7])
def test_the_dense_graph_of_a_backbone_is_the_same_graph(length_scale):
    random = np.random.default_rng(8)
    X = random.integers(0, 4, size=(35, 3)).astype(float)
    patients = random.integers(0, 12, 35)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NearlyDeadGraphWarning)
        expected = knn_similarity(X, n_neighbors=6, length_scale=length_scale, groups=patients).toarray()
    similarity, _ = dense_similarity(symmetric_squared_distances(X), 6, length_scale, patients)
    np.testing.assert_allclose(similarity, expected, atol=1e-12)


def test_a_nearly_dead_graph_is_named():
    X = np.random.default_rng(9).normal(size=(60, 400))
    with pytest.warns(NearlyDeadGraphWarning, match='length_scale="local"'):
        knn_similarity(X, n_neighbors=5, length_scale="paper")


def test_fewer_nodes_than_neighbours_are_named_and_all_used():
    with pytest.warns(FewerNodesThanNeighboursWarning, match="4 neighbours are used"):
        graph = knn_similarity(np.random.default_rng(0).normal(size=(5, 2)), n_neighbors=75)
    assert graph.nnz == 20


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        ([[1.0, np.nan], [0.0, 1.0]], {}, "1 value"),
        ([[1.0, np.inf], [0.0, 1.0]], {}, "NaN or infinity"),
        (sparse.csr_matrix([[np.nan], [1.0]]), {}, "NaN or infinity"),
        ([1.0, 2.0], {}, "1 dimension"),
        ([[1.0]], {}, "at least 2 instances"),
        ([["a"], ["b"]], {}, "not a number"),
        ([[1.0], [2.0]], {"n_neighbors": 0}, "n_neighbors is 0"),
        ([[1.0], [2.0]], {"length_scale": -1.0}, "length_scale is -1.0"),
        ([[1.0], [2.0]], {"length_scale": "wide"}, "length_scale is 'wide'"),
        ([[1.0], [2.0]], {"feature_weights": [0.0]}, "All feature weights vanish"),
        ([[1.0], [2.0]], {"feature_weights": [-1.0]}, "not negative"),
        ([[1.0], [2.0]], {"feature_weights": [1.0, 1.0]}, "shape \\(2,\\)"),
        ([[1.0], [2.0]], {"groups": [1]}, "one group for each of 2"),
    ],
)
def test_bad_input_is_refused_by_name(X, options, words):
    with pytest.raises(InvalidInputError, match=words):
        knn_similarity(X, **{"n_neighbors": 1, **options})


def test_constant_features_change_nothing():
    X = np.random.default_rng(10).normal(size=(30, 2))
    with_constant = np.column_stack((X, np.full(30, 7.0)))
    np.testing.assert_array_equal(
        knn_similarity(X, n_neighbors=4).toarray(), knn_similarity(with_constant, n_neighbors=4).toarray()
    )
