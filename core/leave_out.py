"""Labels left out of a solved graph in closed form, without solving it again."""

from dataclasses import dataclass

import numpy as np

from core.kernels import LeftOut
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
    squares, pulls = _solve_blocks(inverse, soft_labels, labels, multiplicities, label_weight, block[None, :])
    columns = inverse[:, block]
    return WithoutNodes(columns, squares[0] @ columns.T, np.asarray(soft_labels + columns @ pulls[0]))


def leave_blocks_out(
    inverse: FloatArray,
    soft_labels: FloatArray,
    labels: FloatArray,
    multiplicities: FloatArray,
    label_weight: float,
    block_of_node: IntArray,
) -> LeftOut:
    """Leave the nodes of every block out, each block by itself.

    Parameters
    ----------
    inverse, soft_labels, labels, multiplicities, label_weight
        See `leave_nodes_out`.
    block_of_node : int array of shape (n_nodes,)
        0..n_blocks - 1, each with one node or more.

    Returns
    -------
    LeftOut
        In float32.
    """
    nodes = np.argsort(block_of_node, kind="stable")
    sizes = np.bincount(block_of_node)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    square_starts = np.concatenate(([0], np.cumsum(sizes**2)))
    squares = np.empty(square_starts[-1], dtype=np.float32)
    pulls = np.empty(len(nodes), dtype=np.float32)
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        inside = starts[alike][:, None] + np.arange(size)
        solved, pull = _solve_blocks(inverse, soft_labels, labels, multiplicities, label_weight, nodes[inside])
        squares[square_starts[alike][:, None] + np.arange(size**2)] = solved.reshape(len(alike), -1)
        pulls[inside] = pull
    return LeftOut(starts, nodes, square_starts[:-1], squares, pulls)


def _solve_blocks(
    inverse: FloatArray,
    soft_labels: FloatArray,
    labels: FloatArray,
    multiplicities: FloatArray,
    label_weight: float,
    blocks: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Give K and t of blocks of one size: leaving P out adds M_P K M_P' to the inverse and M_P t to the soft labels.

    K = (R^-1 - M_PP)^-1 with R the label weights taken away, by Woodbury's formula.
    """
    removed = (1 - RESIDUAL_LABEL_WEIGHT) * label_weight * multiplicities[blocks]
    here = inverse[blocks[:, :, None], blocks[:, None, :]]
    system = -here
    places = np.arange(blocks.shape[1])
    system[:, places, places] += 1 / removed
    squares = np.linalg.inv(system)
    # M V y c without the block, read on the block itself.
    known = soft_labels[blocks] - (here @ (removed * labels[blocks])[:, :, None])[:, :, 0]
    pulls = (squares @ known[:, :, None])[:, :, 0] - removed * labels[blocks]
    return np.asarray(squares), np.asarray(pulls)
