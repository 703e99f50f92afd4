"""Compiled loops against plain NumPy: selection with ties, scales, the one-node extension, both ways to multiply."""

import numpy as np
import pytest

from core.graph.extension import extend_rows
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


@pytest.mark.parametrize(("n_nodes", "k", "ties"), [(40, 9, False), (40, 9, True), (90, 9, True), (90, 4, False)])
def test_extension_equals_a_dense_solve(n_nodes, k, ties):
    # 90 nodes for 9 or fewer neighbours take the road of copying the small block together first.
    d2, v, scales, inverse, h = system(n_nodes, ties=ties)
    options = {"is_local": True, "usual_scale": 1.0, "n_neighbors": k, "inverse": inverse, "soft_labels": h}
    a, q = extend_rows(d2, v, scales, **options)
    expected = plain_extension(d2, v, scales, inverse, h, k)
    np.testing.assert_allclose(a, expected[0], atol=1e-11)
    np.testing.assert_allclose(q, expected[1], atol=1e-11)


def test_single_precision_is_close_to_double():
    d2, v, scales, inverse, h = system()
    options = {"is_local": True, "usual_scale": 1.0, "n_neighbors": 9, "inverse": inverse, "soft_labels": h}
    a, q = extend_rows(d2, v, scales, **options)
    a32, q32 = extend_rows(d2.astype(np.float32), v, scales, **options)
    np.testing.assert_allclose(a32, a, rtol=5e-5)
    np.testing.assert_allclose(q32 / a32, q / a, atol=5e-6)


def test_a_common_scale_is_used_as_it_is():
    d2, v, _, inverse, h = system()
    options = {"is_local": False, "usual_scale": 1.5, "n_neighbors": 40, "inverse": inverse, "soft_labels": h}
    a, q = extend_rows(d2, v, np.full(40, 1.5), **options)
    u = v * np.exp(-d2[0] / 1.5**2)
    flow = np.linalg.solve(inverse + np.diag(1 / u), np.ones(40))
    assert a[0] == pytest.approx(flow.sum(), rel=1e-10)
    assert q[0] == pytest.approx(flow @ h, rel=1e-10)


def test_nodes_at_infinity_are_no_neighbours():
    d2, v, scales, inverse, h = system()
    options = {"is_local": True, "usual_scale": 1.0, "n_neighbors": 9, "inverse": inverse, "soft_labels": h}
    far = d2.copy()
    far[:, :5] = np.inf
    moved = d2.copy()
    moved[:, :5] = 1e9
    np.testing.assert_allclose(extend_rows(far, v, scales, **options), extend_rows(moved, v, scales, **options))


def test_a_query_among_duplicates_of_itself_takes_the_usual_scale():
    _, v, scales, inverse, h = system()
    options = {"is_local": True, "usual_scale": 1.0, "n_neighbors": 9, "inverse": inverse, "soft_labels": h}
    a, q = extend_rows(np.zeros((1, 40)), v, scales, **options)
    flow = np.linalg.solve(inverse[:9, :9] + np.diag(1 / v[:9]), np.ones(9))
    assert a[0] == pytest.approx(flow.sum(), rel=1e-10)
    assert q[0] == pytest.approx(flow @ h[:9], rel=1e-10)


def test_no_neighbours_or_no_queries_give_zeros():
    d2, v, scales, inverse, h = system()
    options = {"is_local": True, "usual_scale": 1.0, "inverse": inverse, "soft_labels": h}
    assert not extend_rows(d2, v, scales, n_neighbors=0, **options)[0].any()
    assert extend_rows(d2[:0], v, scales, n_neighbors=5, **options)[0].shape == (0,)
