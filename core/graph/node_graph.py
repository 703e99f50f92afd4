"""Labelled nodes joined by similarities: their soft labels, each label left out, and new instances tied in exactly."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

from core.errors import InvalidInputError
from core.graph.kernels import LeftOut
from core.validation import FloatArray, IntArray, Matrix, as_decisions, as_similarity, as_weights

RESIDUAL_LABEL_WEIGHT = 1e-9
"""Share of the label weight that left-out nodes keep: it only keeps nodes solvable that hang on nothing else."""


@dataclass(frozen=True)
class WithoutNodes:
    """A graph whose labels on a block of nodes are unknown; the nodes still join others."""

    # `columns` and `solved`: shape (n_nodes, n_block): the inverse grows by their product.
    columns: FloatArray
    solved: FloatArray
    soft_labels: FloatArray  # shape (n_nodes,): on the block itself l_P = (I - c M_PP V_P)^-1 (h_P - c M_PP V_P y_P)


class Solved(NamedTuple):
    """A graph whose system was solved; all but the inverse, (n_nodes, n_nodes), and c have shape (n_nodes,)."""

    inverse: FloatArray  # M = (L^V + (c + g) V)^-1
    soft_labels: FloatArray  # h = c M V y
    labels: FloatArray  # y
    multiplicities: FloatArray  # the diagonal of V
    label_weight: float  # c


def leave_nodes_out(graph: Solved, block: IntArray) -> WithoutNodes:
    """Leave out the labels of the nodes in `block`, P, in closed form."""
    squares, pulls = _solve_blocks(graph, block[None, :])
    columns = graph.inverse[:, block]
    return WithoutNodes(columns, squares[0] @ columns.T, np.asarray(graph.soft_labels + columns @ pulls[0]))


def leave_blocks_out(graph: Solved, block_of_node: IntArray) -> LeftOut:
    """Leave out the nodes of each block, block by block, in closed form, in float32; otherwise as `leave_nodes_out`.

    `block_of_node` has 0..n_blocks - 1, each with one node or more.
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
        solved, pull = _solve_blocks(graph, nodes[inside])
        squares[square_starts[alike][:, None] + np.arange(size**2)] = solved.reshape(len(alike), -1)
        pulls[inside] = pull
    return LeftOut(starts, nodes, square_starts[:-1], squares, pulls)


def _solve_blocks(graph: Solved, blocks: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return K and t of blocks of one size: without P, M_P K M_P' is added to the inverse and M_P t to the labels.

    K = (R^-1 - M_PP)^-1 with R the label weights taken away, by Woodbury's formula.
    """
    labels = graph.labels[blocks]
    removed = (1 - RESIDUAL_LABEL_WEIGHT) * graph.label_weight * graph.multiplicities[blocks]
    here = graph.inverse[blocks[:, :, None], blocks[:, None, :]]
    system = -here
    places = np.arange(blocks.shape[1])
    system[:, places, places] += 1 / removed
    squares = np.linalg.inv(system)
    # M V y c without the block, read on the block itself.
    known = graph.soft_labels[blocks] - (here @ (removed * labels)[:, :, None])[:, :, 0]
    pulls = (squares @ known[:, :, None])[:, :, 0] - removed * labels
    return np.asarray(squares), np.asarray(pulls)


DENSE_LIMIT = 6000
"""Up to this many nodes the inverse is kept; beyond, every new instance needs a separate solve."""
_SOLVE_TOLERANCE = 1e-13
_QUERIES_AT_ONCE = 256


def solve_soft_labels(
    similarity: Matrix,
    y: ArrayLike,
    *,
    label_weight: ArrayLike = 1.0,
    regularization: float = 1.0,
    multiplicities: ArrayLike | None = None,
) -> FloatArray:
    """Solve (L^V + (c_l + gamma_g) V) l = c_l V y for the soft labels l.

    Conjugate gradients with a Jacobi preconditioner: about 40 products with the sparse matrix at any size. The
    matrix is never factorised, which would fill it.

    Parameters
    ----------
    similarity : sparse or dense matrix of shape (n, n)
        Symmetric, not negative. Self edges are dropped.
    y : array-like of shape (n,)
        Decisions, -1 or +1, or booleans. A node that stands for members with mixed labels takes
        their mean label; its soft label is then the mean over its members.
    label_weight : float or array-like of shape (n,)
        c_l. A larger weight on trusted labels makes gamma_g matter; with one weight for all, only c_l + gamma_g
        orders the soft labels. 0 = the label is unknown.
    regularization : float
        gamma_g, the weight of the edge from every node to a sink of label 0.
    multiplicities : array-like of shape (n,), optional
        V, how many instances each node stands for.

    Returns
    -------
    ndarray of shape (n,)
        In [-1, 1]. A node that nothing reaches has soft label 0.

    Raises
    ------
    InvalidGraphError
        When the similarity matrix is not square, not symmetric, or has negative or non-finite weights.
    InvalidInputError
        For decisions or weights that break a rule.

    References
    ----------
    The paper, eq. (had:sle), and the derivation of the backbone version. Its last line prints ``c_l gamma_g`` where
    only ``gamma_g / c_l`` agrees with a graph in which every node is copied v_i times.

    Examples
    --------
    >>> solve_soft_labels([[0.0, 1.0], [1.0, 0.0]], [1, -1]).round(3)
    array([ 0.25, -0.25])
    """
    graph = as_similarity(similarity)
    n = graph.shape[0]
    labels = as_decisions(y, n=n)
    c = as_weights(label_weight, n, name="label_weight")
    g = as_weights(regularization, n, name="regularization")
    v = np.ones(n) if multiplicities is None else as_weights(multiplicities, n, name="multiplicities", allow_zero=False)
    system = system_matrix(graph, c + g, v)
    return solve_by_gradients(system, c * v * labels)


def system_matrix(graph: sparse.csr_array, ground: FloatArray, v: FloatArray) -> sparse.csr_array:
    """Build L^V + (c + g) V, with `ground` = c + g of each node."""
    weighted = sparse.csr_array(sparse.diags_array(v) @ graph @ sparse.diags_array(v))
    degrees = np.asarray(weighted.sum(axis=1)).ravel()
    return sparse.csr_array(sparse.diags_array(degrees + ground * v) - weighted)


def solve_by_gradients(system: sparse.csr_array, right: FloatArray) -> FloatArray:
    """Solve a system that is positive, or semidefinite where nothing is labelled and the right side is 0."""
    diagonal = system.diagonal()
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    solution, failure = sparse_linalg.cg(
        system, right, rtol=_SOLVE_TOLERANCE, maxiter=20_000, M=sparse.diags_array(inverse)
    )
    if failure:
        raise InvalidInputError(
            f"The soft labels of {len(right)} nodes did not settle in 20,000 steps: label weight and regularisation "
            "are too small beside the similarities. Raise one of them."
        )
    return np.asarray(solution)


@dataclass(frozen=True)
class NodeGraph:
    """Labelled nodes and their similarities, fixed."""

    similarity: sparse.csr_array  # shape (n, n)
    # `labels` and `multiplicities`: shape (n,).
    labels: FloatArray
    multiplicities: FloatArray
    # `label_weight` and `regularization`: c and g.
    label_weight: float
    regularization: float

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    @cached_property
    def system(self) -> sparse.csr_array:
        """The matrix L^V + (c + g) V."""
        ground = np.full(self.n_nodes, self.label_weight + self.regularization)
        return system_matrix(self.similarity, ground, self.multiplicities)

    @cached_property
    def soft_labels(self) -> FloatArray:
        """Soft labels h = c M V y."""
        return solve_by_gradients(self.system, self.label_weight * self.multiplicities * self.labels)

    @cached_property
    def inverse(self) -> FloatArray:
        """M, the inverse of the system; dense."""
        if self.n_nodes > DENSE_LIMIT:
            raise InvalidInputError(
                f"Labels can be left out one by one on graphs of up to {DENSE_LIMIT} nodes; "
                f"this one has {self.n_nodes}. Set n_nodes to use a backbone."
            )
        return np.asarray(np.linalg.inv(self.system.toarray()), dtype=np.float64)

    def left_out(self, groups: IntArray) -> tuple[FloatArray, FloatArray]:
        """Find every node's soft label without the labels of its own group, and its conductance to the others.

        On a group P: l_P = (I - c M_PP V)^-1 (h_P - c M_PP V y_P); a node alone is its own group. A node that nothing
        reaches has soft label 0 and conductance 0.
        """
        c, v, g = self.label_weight, self.multiplicities, self.regularization
        left_out, conductance = np.zeros(self.n_nodes), np.zeros(self.n_nodes)
        order = np.argsort(groups, kind="stable")
        for block in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
            here = self.inverse[np.ix_(block, block)]
            ground = c * v[block]
            if len(block) == 1:
                left, spread = 1 - here * ground, here
                reached = left[0, 0] > 1e-9
                left_inverse = np.array([[1 / left[0, 0] if reached else 0.0]])
            else:
                removed = (1 - 1e-9) * ground
                left_inverse, spread = np.linalg.inv(np.eye(len(block)) - here * removed), here
                reached = True
            left_out[block] = left_inverse @ (self.soft_labels[block] - here @ (ground * self.labels[block]))
            diagonal = np.diag(left_inverse @ spread)
            if reached:
                conductance[block] = np.maximum(1 / diagonal / v[block] - g, 0.0)
        return left_out, conductance

    def tie_in(
        self, chosen: IntArray, similarities: FloatArray, leave_out: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return conductance a and inflow q of new instances, each tied to the fixed graph by itself.

        Exact: with u = v w on the chosen nodes N and G = M, S = G_NN + diag(1 / u), a = 1' S^-1 1, q = 1' S^-1 h_N. The
        soft label of the instance with label y is (c y + q) / (c + g + a). Chosen nodes (-1 = none) and unscaled
        similarities w (0 = no edge) have shape (n_queries, k); the labels of the nodes in `leave_out` are unknown.
        """
        u = np.where(chosen >= 0, similarities * self.multiplicities[chosen], 0.0)
        if self.n_nodes > DENSE_LIMIT and leave_out is None:
            return self._tie_in_by_gradients(chosen, u)
        inverse, h = self.inverse, self.soft_labels
        if leave_out is not None and len(leave_out):
            solved = Solved(inverse, h, self.labels, self.multiplicities, self.label_weight)
            left = leave_nodes_out(solved, leave_out)
            inverse, h = inverse + left.columns @ left.solved, left.soft_labels
        d = np.sqrt(u)
        conductance, inflow = np.zeros(len(chosen)), np.zeros(len(chosen))
        identity = np.eye(chosen.shape[1])
        for start in range(0, len(chosen), _QUERIES_AT_ONCE):
            part = slice(start, start + _QUERIES_AT_ONCE)
            nodes, root = chosen[part], d[part]
            block = inverse[nodes[:, :, None], nodes[:, None, :]]
            scaled = identity + root[:, :, None] * block * root[:, None, :]
            flow = root * np.linalg.solve(scaled, root[:, :, None])[:, :, 0]
            conductance[part] = flow.sum(axis=1)
            inflow[part] = (flow * h[nodes]).sum(axis=1)
        return conductance, inflow

    def _tie_in_by_gradients(self, chosen: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Use a = sum(u) - u't and q = t'b with (A + diag(u)) t = u: one sparse solve for each instance."""
        conductance, inflow = np.zeros(len(chosen)), np.zeros(len(chosen))
        right = self.label_weight * self.multiplicities * self.labels
        for i in range(len(chosen)):
            edges = np.zeros(self.n_nodes)
            np.add.at(edges, chosen[i], u[i])
            t = solve_by_gradients(sparse.csr_array(self.system + sparse.diags_array(edges)), edges)
            conductance[i] = max(edges.sum() - edges @ t, 0.0)
            inflow[i] = t @ right
        return conductance, inflow
