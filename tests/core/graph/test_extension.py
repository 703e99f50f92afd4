"""Instances tied in from sparse features, each without its own patient's nodes, against solving again from scratch."""

import numpy as np
import pytest

from core.graph.backbone import sample_balanced_nodes
from core.graph.feature_rows import FeatureRows
from core.graph.kernels import choose_neighbours, limit_of
from core.scoring.parameters import ScoringParameters
from core.scoring.task_graph import NOBODY, build_task_graph, extend

K = 9


def brute_force(graph, x, group, c, g):
    """Conductance and expectation of one instance by one dense solve with the labels of `group` taken away."""
    points = graph.points.astype(np.float64)
    v, s, y = graph.multiplicities, graph.scales, graph.labels
    own = (graph.groups == group) & (group != NOBODY)
    d2 = ((points - x) ** 2).sum(axis=1)
    near = np.array(sorted(np.flatnonzero(~own), key=lambda j: (d2[j], j))[:K])
    scale = np.sqrt(d2[near][6])
    u = np.zeros(len(v))
    u[near] = v[near] * np.exp(-d2[near] / (scale * s[near]))
    system = np.linalg.inv(graph.inverse) - np.diag(c * v * own * (1 - 1e-9))
    joined = np.block([[system + np.diag(u), -u[:, None]], [-u[None, :], np.array([[u.sum()]])]])
    # With its own label (weight 1) in: l = (y + q) / (1 + g + a); two labels give a and q.
    joined[-1, -1] += 1 + g
    right = np.append(c * v * y * np.where(own, 1e-9, 1.0), 0.0)
    up, zero = (np.linalg.solve(joined, right + np.append(np.zeros(len(v)), label))[-1] for label in (1.0, 0.0))
    a = 1 / (up - zero) - 1 - g
    return a, zero * (1 + g + a)


# 30 nodes are read in whole rows, 120 nodes for 9 neighbours entry by entry.
@pytest.mark.parametrize("n_nodes", [30, 120])
@pytest.mark.parametrize("g", [0.0, 0.4])
def test_every_instance_equals_solving_again_without_its_own_patient(n_nodes, g):
    random = np.random.default_rng(n_nodes)
    features = (random.normal(size=(200, 12)) * (random.random((200, 12)) < 0.5)).astype(np.float32)
    y = np.where(features[:150, 0] + random.normal(size=150) > 0.6, 1.0, -1.0)
    groups = random.integers(0, 70, 200)
    groups[:5] = NOBODY
    nodes = sample_balanced_nodes(y, n_nodes, random)
    parameters = ScoringParameters(n_neighbors=K, label_weight=0.8, regularization=g)
    graph = build_task_graph(features, y, nodes, groups, parameters)
    found = extend(graph, FeatureRows.of_dense(features), groups, K)
    assert np.bincount(np.unique(graph.groups, return_inverse=True)[1]).max() > 1
    for i in range(0, 200, 3):
        a, q = brute_force(graph, features[i].astype(np.float64), groups[i], 0.8, g)
        assert found.conductance[i] == pytest.approx(a, rel=1e-4)
        assert found.inflow[i] == pytest.approx(q, abs=2e-5 * max(a, 1))


def test_dense_and_sparse_features_give_the_same_and_so_does_any_part_of_them():
    random = np.random.default_rng(1)
    features = (random.normal(size=(90, 12)) * (random.random((90, 12)) < 0.5)).astype(np.float32)
    y = np.where(random.random(60) < 0.4, 1.0, -1.0)
    groups = random.integers(0, 40, 90)
    parameters = ScoringParameters(n_neighbors=K)
    graph = build_task_graph(features, y, sample_balanced_nodes(y, 30, random), groups, parameters)
    whole = extend(graph, features, groups, K)
    part = random.permutation(90)[:23]
    found = extend(graph, FeatureRows.of_dense(features[part]), groups[part], K)
    np.testing.assert_allclose(found.inflow, whole.inflow[part], rtol=1e-5, atol=1e-6)


def test_a_patient_who_owns_every_node_is_tied_to_nothing():
    random = np.random.default_rng(2)
    features = random.normal(size=(20, 3)).astype(np.float32)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    parameters = ScoringParameters(n_neighbors=5, regularization=0.1)
    graph = build_task_graph(
        features, y, sample_balanced_nodes(y, 10, random), np.zeros(20, dtype=np.int64), parameters
    )
    assert not extend(graph, features, np.zeros(20, dtype=np.int64), 5).conductance.any()


def test_duplicates_and_more_neighbours_than_nodes_are_tied_in():
    features = np.repeat(np.array([[0.0, 1.0], [2.0, 0.0]], dtype=np.float32), 15, axis=0)
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    parameters = ScoringParameters(n_neighbors=75)
    graph = build_task_graph(features, y, sample_balanced_nodes(y, 12, np.random.default_rng(4)), None, parameters)
    found = extend(graph, features, np.full(30, NOBODY), 75)
    assert (found.conductance > 0).all()
    assert np.ptp(found.inflow[:15]) == np.ptp(found.inflow[15:]) == 0
    assert (np.abs(found.inflow) <= found.conductance + 1e-6).all()


@pytest.mark.parametrize("begin", [0, 1 << 20, 1 << 30, (1 << 31) - 1])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_nearest_are_those_of_a_stable_sort_wherever_the_search_begins(begin, kind):
    random = np.random.default_rng(3)
    infinity = int(np.array(np.inf, dtype=kind).view(f"i{np.dtype(kind).itemsize}"))
    for _ in range(150):
        row = random.integers(0, random.integers(2, 30), random.integers(2, 60)).astype(kind) * kind(0.7)
        row[1:][random.random(len(row) - 1) < 0.2] = np.inf
        k = int(random.integers(1, np.isfinite(row).sum() + 1))
        bits = row.view(f"i{row.itemsize}")
        chosen = np.zeros(len(row) + 1, dtype=np.uint32)
        choose_neighbours(bits, limit_of(bits, k, infinity, np.array([begin, 1])), k, chosen)
        assert sorted(chosen[:k]) == sorted(np.argsort(row, kind="stable")[:k])
