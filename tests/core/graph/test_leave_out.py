"""Labels left out in closed form against solving again."""

import numpy as np
import pytest

from core.graph.node_graph import Solved, leave_nodes_out


@pytest.mark.parametrize("block", [[3], [0, 5, 9]])
@pytest.mark.parametrize("g", [0.0, 0.4])
def test_leaving_nodes_out_equals_solving_again_without_their_labels(block, g):
    random = np.random.default_rng(0)
    W = np.triu(random.random((12, 12)), 1)
    W += W.T
    v, y, c = random.uniform(0.3, 3, 12), random.choice([-1.0, 1.0], 12), 0.7
    weighted = v[:, None] * W * v
    laplacian = np.diag(weighted.sum(axis=1)) - weighted
    inverse = np.linalg.inv(laplacian + np.diag((c + g) * v))
    h = c * inverse @ (v * y)
    trust = np.full(12, c)
    trust[block] = 0.0
    inverse_again = np.linalg.inv(laplacian + np.diag((trust + g) * v))
    left = leave_nodes_out(Solved(inverse, h, y, v, c), np.array(block))
    np.testing.assert_allclose(inverse + left.columns @ left.solved, inverse_again, atol=1e-7)
    np.testing.assert_allclose(left.soft_labels, inverse_again @ (trust * v * y), atol=1e-7)
    # On the block itself the closed form of the method's description.
    inside, weight = inverse[np.ix_(block, block)], c * v[block]
    closed = np.linalg.solve(np.eye(len(block)) - inside * weight, h[block] - inside @ (weight * y[block]))
    np.testing.assert_allclose(left.soft_labels[block], closed, atol=1e-7)


def test_a_node_that_hangs_on_nothing_stays_solvable():
    labels = np.array([1.0, -1.0])
    left = leave_nodes_out(Solved(np.eye(2), labels, labels, np.ones(2), 1.0), np.array([0]))
    assert np.isfinite(left.soft_labels).all()
    assert left.soft_labels[1] == -1.0
