"""Balanced nodes with the prior set back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InvalidInputError
from core.graph.backbone import sample_balanced_nodes


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
