"""The similarity graph: exactly k nearest neighbours, a length scale that keeps it alive, symmetric to the last bit."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from core.errors import FewerNodesThanNeighboursWarning, InvalidInputError, NearlyDeadGraphWarning
from core.numerics.distances import squared_distances_of_pairs
from core.validation import FloatArray, IntArray, Matrix, as_finite_matrix, as_weights, is_sparse

LengthScale: TypeAlias = Literal["local", "paper"] | float

LOCAL_NEIGHBOUR = 7
"""Rank of the neighbour whose distance is the local length scale of a node."""
PAPER_SHARE_OF_VARIANCE = 0.1
DEAD_MEDIAN_DEGREE = 0.1
DEAD_NODE_DEGREE = 1e-3
DEAD_NODE_SHARE = 0.01
_BLOCK_ENTRIES = 4_000_000


@dataclass(frozen=True)
class Neighbourhoods:
    """Nearest base rows of each query row, nearest first; places without a neighbour hold index -1 and infinity."""

    indices: IntArray  # shape (n_queries, k)
    squared_distances: FloatArray  # shape (n_queries, k)


def knn_similarity(
    X: Matrix,
    *,
    n_neighbors: int = 75,
    length_scale: LengthScale = "local",
    feature_weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> sparse.csr_array:
    """Return the graph w_ij = exp(-||x_i - x_j||^2_psi / sigma^2) on the k nearest neighbours.

    Every node chooses exactly `n_neighbors` others (at most n - 1), ties broken by the lower index; an edge stands
    when either end chose the other. There are no self edges. Distances are computed so that d_ij and d_ji are the
    same bits: matrix products differ in the last one, and would make two nodes disagree on a tie.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, n_features)
    n_neighbors : int
        k.
    length_scale : {"local", "paper"} or positive float
        "local": sigma^2 = s_i s_j, with s_i the distance to the 7th neighbour. "paper": sigma^2 is 10 % of the
        variance of all distances. A number is sigma itself, in the unit of the distance.
    feature_weights : array-like of shape (n_features,), optional
        psi; features are multiplied by it. Where all weights vanish there is nothing to compare.
    groups : array-like of shape (n,), optional
        Patients: no edge joins two rows of one group.

    Returns
    -------
    csr_array of shape (n, n)
        Symmetric, weights in [0, 1].

    Raises
    ------
    InvalidInputError
        For features, weights or options that break a rule.

    Warns
    -----
    NearlyDeadGraphWarning
        When the median degree is below 0.1, or over 1 % of the nodes have a degree below 0.001.
    FewerNodesThanNeighboursWarning
        When n <= `n_neighbors`.

    References
    ----------
    The paper, section "Parameters for the graph-based algorithms"; local scaling after Zelnik-Manor and Perona (2004).

    Examples
    --------
    >>> knn_similarity([[0.0], [1.0], [3.0]], n_neighbors=1, length_scale=1.0).nnz
    4
    """
    check_length_scale(length_scale)
    points = weighted_features(X, feature_weights)
    n = points.shape[0]
    k = effective_neighbours(n_neighbors, n)
    codes = None if groups is None else group_codes(groups, n)
    near = nearest(points, points, k, base_groups=codes, query_groups=codes, same_rows=True)
    rows = np.repeat(np.arange(n), k)
    cols, d2 = near.indices.ravel(), near.squared_distances.ravel()
    chosen = cols >= 0
    rows, cols, d2 = rows[chosen], cols[chosen], d2[chosen]
    if length_scale == "local":
        s = local_scales(near)
        weights = np.exp(-d2 / (s[rows] * s[cols]))
    else:
        sigma2 = paper_squared_scale(points) if length_scale == "paper" else float(length_scale) ** 2
        weights = np.exp(-d2 / sigma2)
    directed = sparse.csr_array((weights, (rows, cols)), shape=(n, n))
    graph = sparse.csr_array(directed.maximum(directed.T))
    graph.sort_indices()
    warn_when_nearly_dead(graph)
    return graph


def check_length_scale(length_scale: object) -> None:
    """Refuse a length scale that is neither "local", "paper" nor a positive number."""
    if length_scale in ("local", "paper"):
        return
    is_number = isinstance(length_scale, int | float | np.number) and not isinstance(length_scale, bool)
    if not is_number or not np.isfinite(float(length_scale)) or float(length_scale) <= 0:  # type: ignore[arg-type]
        raise InvalidInputError(f'length_scale is {length_scale!r}; give "local", "paper" or a positive number.')


def effective_neighbours(n_neighbors: int, n: int) -> int:
    """Return k, at most n - 1, and warn when fewer nodes exist than neighbours were asked for."""
    if not isinstance(n_neighbors, int | np.integer) or n_neighbors < 1:
        raise InvalidInputError(f"n_neighbors is {n_neighbors!r}; a whole number of 1 or more is needed.")
    if n < 2:
        raise InvalidInputError(f"A graph of n_samples={n} node has no neighbours; give at least 2 instances.")
    if n_neighbors > n - 1:
        warnings.warn(
            f"n_neighbors={n_neighbors}, but the graph has {n} nodes; {n - 1} neighbours are used. "
            "Lower n_neighbors to silence this.",
            FewerNodesThanNeighboursWarning,
            stacklevel=3,
        )
    return int(min(n_neighbors, n - 1))


def weighted_features(X: Matrix, feature_weights: ArrayLike | None) -> Any:
    """Return the features multiplied by their weights, without the features whose weight is 0."""
    matrix = as_finite_matrix(X)
    if feature_weights is None:
        return matrix
    psi = as_weights(feature_weights, matrix.shape[1], name="feature_weights")
    kept = np.flatnonzero(psi)
    if len(kept) == 0:
        raise InvalidInputError(
            "All feature weights vanish, so every instance looks like every other. "
            "Keep features that differ between decisions, or pass feature_weights=None."
        )
    if is_sparse(matrix):
        return sparse.csr_array(matrix[:, kept] @ sparse.diags_array(psi[kept]))
    return np.ascontiguousarray(matrix[:, kept] * psi[kept])


def group_codes(groups: ArrayLike, n: int) -> IntArray:
    """Return groups (patients) as whole numbers 0..n_groups-1."""
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InvalidInputError(f"groups has shape {values.shape}; one group for each of {n} instances is needed.")
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def nearest(
    base: Any,
    queries: Any,
    k: int,
    *,
    base_groups: IntArray | None = None,
    query_groups: IntArray | None = None,
    same_rows: bool = False,
) -> Neighbourhoods:
    """Find the exactly `k` nearest base rows of every query row, ties by lower index.

    A matrix product finds candidates with a margin above its rounding error; their distances are then summed directly,
    which is symmetric, and the same whatever rows stand beside them. Rows of one group are never neighbours. With
    `same_rows` query i is base row i, and not its own neighbour.
    """
    base_norms, query_norms = _squared_norms(base), _squared_norms(queries)
    n_queries, n_base = queries.shape[0], base.shape[0]
    indices = np.full((n_queries, k), -1, dtype=np.int64)
    squared = np.full((n_queries, k), np.inf)
    # Rounding of a product of p terms is below (p + 2) eps (|x|^2 + |y|^2); twice that parts the certain from the rest.
    unit = 4 * (base.shape[1] + 2) * np.finfo(float).eps
    for rows in _row_blocks(n_queries, n_base):
        approximate = query_norms[rows, None] + base_norms - 2 * _dense(queries[rows] @ base.T)
        margin = unit * (query_norms[rows] + base_norms.max())
        if same_rows:
            approximate[np.arange(len(rows)), rows] = np.inf
        if base_groups is not None and query_groups is not None:
            approximate[query_groups[rows, None] == base_groups] = np.inf
        kth = np.partition(approximate, k - 1, axis=1)[:, k - 1]
        row, col = np.nonzero((approximate <= (kth + 2 * margin)[:, None]) & np.isfinite(approximate))
        exact = _direct_squared_distances(queries, base, rows[row], col)
        order = np.lexsort((col, exact, row))
        row, col, exact = row[order], col[order], exact[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        kept = place < k
        indices[rows[row[kept]], place[kept]] = col[kept]
        squared[rows[row[kept]], place[kept]] = exact[kept]
    return Neighbourhoods(indices, squared)


def _row_blocks(n_rows: int, n_columns: int) -> Iterator[IntArray]:
    size = max(1, _BLOCK_ENTRIES // max(n_columns, 1))
    for start in range(0, n_rows, size):
        yield np.arange(start, min(start + size, n_rows))


def _dense(product: Any) -> FloatArray:
    return np.asarray(product.toarray() if is_sparse(product) else product)


def _squared_norms(matrix: Any) -> FloatArray:
    if is_sparse(matrix):
        return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    return np.asarray((matrix * matrix).sum(axis=1))


def _direct_squared_distances(queries: Any, base: Any, rows: IntArray, cols: IntArray) -> FloatArray:
    """Sum (x - y)^2 feature by feature for the given pairs."""
    if not is_sparse(queries):
        return np.asarray(squared_distances_of_pairs(_floats(queries), _floats(base), rows, cols))
    result = np.empty(len(rows))
    for pairs in _row_blocks(len(rows), base.shape[1]):
        places = np.arange(len(pairs))
        left, right = _dense(queries[rows[pairs]]), _dense(base[cols[pairs]])
        result[pairs] = squared_distances_of_pairs(_floats(left), _floats(right), places, places)
    return result


def _floats(matrix: Any) -> FloatArray:
    return np.ascontiguousarray(matrix, dtype=np.float64)


def local_scales(near: Neighbourhoods) -> FloatArray:
    """Return distance to the 7th neighbour; where duplicates make it 0, to the first neighbour that is no duplicate.

    A node that has only duplicates around it takes the median scale of the others (1 when there is none).
    """
    d2 = near.squared_distances
    found = np.isfinite(d2)
    n_found = found.sum(axis=1)
    place = np.maximum(np.minimum(LOCAL_NEIGHBOUR, n_found) - 1, 0)
    scales = np.sqrt(np.where(n_found > 0, d2[np.arange(len(d2)), place], 0.0))
    return guard_scales(scales, np.where(found, d2, 0.0))


def guard_scales(scales: FloatArray, squared_distances: FloatArray) -> FloatArray:
    """Replace scales of 0 by the smallest positive distance of the row, else by the median scale, else by 1."""
    zero = scales <= 0
    if not zero.any():
        return scales
    positive = np.where(squared_distances > 0, squared_distances, np.inf)[zero]
    smallest = np.sqrt(positive.min(axis=1))
    usual = float(np.median(scales[~zero])) if not zero.all() else 1.0
    guarded = scales.copy()
    guarded[zero] = np.where(np.isfinite(smallest), smallest, usual)
    return guarded


def paper_squared_scale(points: Any) -> float:
    """Return sigma^2 = 0.1 Var(d) over all pairs; 1 if all distances are equal."""
    norms = _squared_norms(points)
    n = points.shape[0]
    total = total_squared = 0.0
    for rows in _row_blocks(n, n):
        d2 = np.maximum(norms[rows, None] + norms - 2 * _dense(points[rows] @ points.T), 0.0)
        d2[np.arange(len(rows)), rows] = 0.0
        total += float(np.sqrt(d2).sum())
        total_squared += float(d2.sum())
    n_pairs = n * (n - 1)
    variance = total_squared / n_pairs - (total / n_pairs) ** 2
    return PAPER_SHARE_OF_VARIANCE * variance if variance > 1e-12 * total_squared / n_pairs else 1.0


def warn_when_nearly_dead(graph: sparse.csr_array) -> None:
    """Warn by name when soft labels can hardly spread."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    median, n_dead = float(np.median(degrees)), int((degrees < DEAD_NODE_DEGREE).sum())
    if median < DEAD_MEDIAN_DEGREE or n_dead > DEAD_NODE_SHARE * len(degrees):
        warnings.warn(
            f"The similarity graph is nearly dead: median degree {median:.2g}, {n_dead} of {len(degrees)} nodes with a "
            f"degree below {DEAD_NODE_DEGREE:g}, so their scores say nothing. "
            'Use length_scale="local", a larger number, or fewer features.',
            NearlyDeadGraphWarning,
            stacklevel=3,
        )


def dense_similarity(
    squared_distances: FloatArray, k: int, length_scale: LengthScale, groups: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the graph of `knn_similarity` and s_i, with sigma^2 = s_i s_j, for some hundred nodes.

    Squared distances, of shape (n, n), are symmetric to the last bit; inside a group there is no edge.
    """
    n = len(squared_distances)
    d2 = squared_distances.copy()
    np.fill_diagonal(d2, np.inf)
    if groups is not None:
        d2[groups[:, None] == groups] = np.inf
    # A stable sort by distance leaves ties in the order of their index.
    order = np.argsort(d2, axis=1, kind="stable")[:, :k]
    near = Neighbourhoods(order, np.take_along_axis(d2, order, axis=1))
    if length_scale == "local":
        scales = local_scales(near)
    else:
        scales = np.full(n, _common_scale(squared_distances, length_scale))
    chosen = np.zeros((n, n), dtype=bool)
    np.put_along_axis(chosen, order, np.isfinite(near.squared_distances), axis=1)
    chosen |= chosen.T
    similarity = np.zeros((n, n))
    similarity[chosen] = np.exp(-squared_distances[chosen] / np.outer(scales, scales)[chosen])
    return similarity, scales


def _common_scale(squared_distances: FloatArray, length_scale: LengthScale) -> float:
    if length_scale != "paper":
        return float(length_scale)
    d = np.sqrt(squared_distances[~np.eye(len(squared_distances), dtype=bool)])
    variance = float(d.var())
    return float(np.sqrt(PAPER_SHARE_OF_VARIANCE * variance)) if variance > 0 else 1.0
