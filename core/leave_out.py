"""Labels left out of a solved graph in closed form, without solving it again."""

from dataclasses import dataclass

import numpy as np

from core.validation import FloatArray, IntArray

RESIDUAL_LABEL_WEIGHT = 1e-9
"""Share of the label weight that left-out nodes keep: it only keeps nodes solvable that hang on nothing else."""


@dataclass(frozen=True)
class WithoutNodes:
    """A graph whose labels on a block of nodes are unknown; the nodes still join others.

    Parameters
    ----------
    columns, solved : float arrays of shape (n_nodes, n_block), (n_block, n_nodes)
        The inverse grows by their product.
    soft_labels : float array of shape (n_nodes,)
        On the block itself l_P = (I - c M_PP V_P)^-1 (h_P - c M_PP V_P y_P).
    """

    columns: FloatArray
    solved: FloatArray
    soft_labels: FloatArray


def leave_nodes_out(
    inverse: FloatArray,
    soft_labels: FloatArray,
    labels: FloatArray,
    multiplicities: FloatArray,
    label_weight: float,
    block: IntArray,
) -> WithoutNodes:
    """Leave the labels of the nodes in `block` out.

    Parameters
    ----------
    inverse : float array of shape (n_nodes, n_nodes)
        M = (L^V + (c + g) V)^-1.
    soft_labels, labels, multiplicities : float arrays of shape (n_nodes,)
        h = c M V y, y and the diagonal of V.
    label_weight : float
        c.
    block : int array
        P.
    """
    removed = (1 - RESIDUAL_LABEL_WEIGHT) * label_weight * multiplicities[block]
    columns = inverse[:, block]
    solved = np.linalg.solve(np.diag(1 / removed) - columns[block], columns.T)
    # c M V y without the block, then what the change of M adds to it.
    start = soft_labels - columns @ (removed * labels[block])
    known = label_weight * multiplicities * labels
    known[block] *= RESIDUAL_LABEL_WEIGHT
    return WithoutNodes(columns, np.asarray(solved, dtype=np.float64), np.asarray(start + columns @ (solved @ known)))
