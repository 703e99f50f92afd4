"""Compiled loops against plain NumPy: selection with ties, scales, the one-node extension, both ways to multiply."""

import numpy as np
import pytest

from core.graph.extension import extend_sparse_rows, graph_nodes, query_of, workspace
from core.graph.feature_rows import FeatureRows
from core.graph.kernels import RESIDUAL, LeftOut, extend_row
from core.graph.similarity import dense_similarity
from core.numerics.distances import symmetric_squared_distances


def system(n_nodes=40, seed=0, ties=False):
    random = np.random.default_rng(seed)
    points = random.integers(0, 3, (n_nodes, 2)).astype(float) if ties else random.normal(size=(n_nodes, 4))
    queries = random.integers(0, 3, (25, 2)).astype(float) if ties else random.normal(size=(25, 4))
    similarity, scales = dense_similarity(symmetric_squared_distances(points), 10, "local")
    v = random.uniform(0.2, 2, n_nodes)
    weighted = v[:, None] * similarity * v
    inverse = np.linalg.inv(np.diag(weighted.sum(axis=1) + v) - weighted)
    y = random.choice([-1.0, 1.0], n_nodes)
    d2 = ((queries[:, None] - points) ** 2).sum(axis=2)
    return d2, v, scales, inverse, inverse @ (v * y)


def plain_extension(d2, v, scales, inverse, h, k):
    a, q = np.zeros(len(d2)), np.zeros(len(d2))
    for i, row in enumerate(d2):
        near = np.array(sorted(range(len(row)), key=lambda j: (row[j], j))[:k])
        ordered = row[near]
        s = np.sqrt(ordered[min(7, k) - 1]) or np.sqrt(min(ordered[ordered > 0], default=1.0))
        u = v[near] * np.exp(-ordered / (s * scales[near]))
        S = inverse[np.ix_(near, near)] + np.diag(1 / u)
        flow = np.linalg.solve(S, np.ones(k))
        a[i], q[i] = flow.sum(), flow @ h[near]
    return a, q


def no_blocks():
    nothing, few = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    return LeftOut(np.zeros(1, dtype=np.int64), nothing, nothing, few, few)


def extended(d2, v, scales, *, is_local, usual_scale, n_neighbors, inverse, soft_labels, residual=1e-6):
    """Conductance and inflow of queries at any distances, row by row, as far as single precision goes."""
    nodes = graph_nodes(v, scales, inverse, soft_labels)
    query = (np.float32(residual), *query_of(is_local, usual_scale)[1:])
    found = []
    for distances in d2.astype(np.float32):
        work = workspace(len(v), n_neighbors)
        found.append(extend_row(distances, distances.view(np.int32), query, nodes, no_blocks(), -1, n_neighbors, work))
    return np.array(found, dtype=float).T


@pytest.mark.parametrize(("n_nodes", "k", "ties"), [(40, 9, False), (40, 9, True), (90, 9, True), (90, 4, False)])
def test_extension_equals_a_dense_solve(n_nodes, k, ties):
    # 90 nodes for 9 or fewer neighbours take the road of copying the small block together first.
    d2, v, scales, inverse, h = system(n_nodes, ties=ties)
    options = {"is_local": True, "usual_scale": 1.0, "n_neighbors": k, "inverse": inverse, "soft_labels": h}
    expected = plain_extension(d2, v, scales, inverse, h, k)
    for residual, exact in ((1e-6, 2e-6), (RESIDUAL, 3e-5)):
        a, q = extended(d2, v, scales, **options, residual=residual)
        np.testing.assert_allclose(a, expected[0], rtol=exact)
        np.testing.assert_allclose(q / a, expected[1] / expected[0], atol=exact)


def test_a_common_scale_is_used_as_it_is():
    d2, v, _, inverse, h = system()
    options = {"is_local": False, "usual_scale": 1.5, "n_neighbors": 40, "inverse": inverse, "soft_labels": h}
    a, q = extended(d2, v, np.full(40, 1.5), **options)
    u = v * np.exp(-d2[0] / 1.5**2)
    flow = np.linalg.solve(inverse + np.diag(1 / u), np.ones(40))
    assert a[0] == pytest.approx(flow.sum(), rel=1e-5)
    assert q[0] == pytest.approx(flow @ h, rel=1e-5)


def test_nodes_at_infinity_are_no_neighbours():
    d2, v, scales, inverse, h = system()
    options = {"is_local": True, "usual_scale": 1.0, "n_neighbors": 9, "inverse": inverse, "soft_labels": h}
    far = d2.copy()
    far[:, :5] = np.inf
    moved = d2.copy()
    moved[:, :5] = 1e9
    np.testing.assert_allclose(extended(far, v, scales, **options), extended(moved, v, scales, **options))


def test_a_query_among_duplicates_of_itself_takes_the_usual_scale():
    _, v, scales, inverse, h = system()
    options = {"is_local": True, "usual_scale": 1.0, "n_neighbors": 9, "inverse": inverse, "soft_labels": h}
    a, q = extended(np.zeros((1, 40)), v, scales, **options)
    flow = np.linalg.solve(inverse[:9, :9] + np.diag(1 / v[:9]), np.ones(9))
    assert a[0] == pytest.approx(flow.sum(), rel=1e-5)
    assert q[0] == pytest.approx(flow @ h[:9], rel=1e-5)


@pytest.mark.parametrize(("n_rows", "n_neighbors"), [(3, 0), (0, 5)])
def test_no_neighbours_or_no_queries_give_zeros(n_rows, n_neighbors):
    _, v, scales, inverse, h = system()
    points, blocks = np.ones((40, 2), dtype=np.float32), np.full(n_rows, -1)
    rows, nodes = FeatureRows.of_dense(points[:n_rows]), graph_nodes(v, scales, inverse, h)
    options = {"is_local": True, "usual_scale": 1.0, "n_neighbors": n_neighbors}
    for found in extend_sparse_rows(rows, points, nodes, no_blocks(), blocks, **options):
        assert found.tolist() == [0.0] * n_rows
