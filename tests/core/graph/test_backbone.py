"""Balanced nodes with the prior set back, and centroids."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InvalidInputError
from core.graph.backbone import centroid_nodes, sample_balanced_nodes


@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 50), st.integers(0, 1000))
@settings(deadline=None)
def test_nodes_are_balanced_and_multiplicities_give_back_the_prior(n_positive, n_negative, n_nodes, seed):
    y = np.random.default_rng(seed).permutation(np.r_[np.ones(n_positive), -np.ones(n_negative)])
    nodes = sample_balanced_nodes(y, n_nodes, np.random.default_rng(seed))
    assert len(nodes.rows) == min(n_nodes, len(y))
    assert (np.diff(nodes.rows) > 0).all()
    positive = y[nodes.rows] > 0
    smaller_half = min(n_nodes // 2, n_positive, n_negative)
    assert min(positive.sum(), (~positive).sum()) >= smaller_half
    assert nodes.multiplicities.mean() == pytest.approx(1)
    assert nodes.multiplicities[positive].sum() / nodes.multiplicities.sum() == pytest.approx(n_positive / len(y))
    assert len(np.unique(nodes.multiplicities[positive])) == 1


def test_the_same_seed_draws_the_same_nodes():
    y = np.where(np.arange(100) % 3 == 0, 1.0, -1.0)
    one, again, other = (sample_balanced_nodes(y, 20, np.random.default_rng(seed)).rows for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@pytest.mark.parametrize(
    ("y", "n_nodes", "words"), [([1.0, 1.0], 2, "one class only"), ([1.0, -1.0], 1, "n_nodes is 1")]
)
def test_an_impossible_backbone_is_refused_by_name(y, n_nodes, words):
    with pytest.raises(InvalidInputError, match=words):
        sample_balanced_nodes(np.array(y), n_nodes, np.random.default_rng(0))


def test_centroids_carry_their_members_mean_point_mean_label_and_number():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(80, 3)), random.choice([-1.0, 1.0], size=80)
    nodes = centroid_nodes(X, y, 7, random_state=0)
    assert nodes.multiplicities.sum() == 80
    for node in range(len(nodes.labels)):
        members = nodes.members == node
        assert members.sum() == nodes.multiplicities[node]
        assert nodes.labels[node] == pytest.approx(y[members].mean())
        np.testing.assert_allclose(nodes.points[node], X[members].mean(axis=0), atol=1e-9)


def test_duplicates_need_no_more_centroids_than_there_are_points():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    assert len(centroid_nodes(X, np.ones(10), 5, random_state=0).labels) == 2
